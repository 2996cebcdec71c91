"""Filters of a folder's own, over those of the family."""

import re

from lmms_eval.api.filter import Filter as ApiFilter
from lmms_eval.filters import Filter
from lmms_eval.filters.extraction import (
    ExtendedRegexFilter,
    MultiChoiceRegexFilter,
    RegexFilter,
    SimpleMultiChoiceRegexFilter,
)
from lmms_eval.filters.transformation import MapFilter


def doc_to_visual(doc):
    return []


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    kwargs = lmms_eval_specific_kwargs or {}
    return f"{kwargs.get('pre_prompt', '')}{doc['question']}{kwargs.get('post_prompt', '')}"


def parenthesised(doc):
    return f"I take ({doc['answer']})"


def option_text(doc):
    return doc["text"]


class LastLetter(RegexFilter):
    def __init__(self, regex_pattern=r"[AB]", group_select=-1, fallback="[invalid]"):
        super().__init__(regex_pattern, group_select, fallback)

    def apply(self, resps, docs):
        return [[(self.regex.findall(resp) or [self.fallback])[self.group_select] for resp in one] for one in resps]


class Lettered(MultiChoiceRegexFilter):
    def __init__(self, regex_pattern=r"\(([AB])\)", group_select=0, fallback="[invalid]", **kwargs):
        super().__init__(regex_pattern, group_select, fallback, **kwargs)

    def apply(self, resps, docs):
        return [[(re.findall(self.regex_pattern, resp) or [self.fallback])[0] for resp in one] for one in resps]


class Worded(ExtendedRegexFilter):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

    def apply(self, resps, docs):
        return [[self.letter(resp, doc) for resp in one] for one, doc in zip(resps, docs, strict=True)]

    def letter(self, resp, doc):
        match = self.find_match(self.regex, resp, {"(A)": "A", "(B)": "B"})
        return match or ("B" if self.filter_ignores(doc["text"]) in self.filter_ignores(resp) else self.fallback)


class ByText(SimpleMultiChoiceRegexFilter):
    def apply(self, resps, docs):
        return [[letter] for letter in super().apply(resps, docs)]


class ByName(MapFilter):
    def __init__(self):
        super().__init__({"(A)": "A", "(B)": "B"}, default_value=None)

    def apply(self, resps, docs):
        return [[self.mapping_dict.get(resp[-3:], self.default_value) for resp in one] for one in resps]


class Own(Filter):
    def __init__(self, letters="AB"):
        self.letters = letters

    def apply(self, resps, docs):
        return [[next((sign for sign in resp if sign in self.letters), "") for resp in one] for one in resps]


class Shared(ApiFilter):
    def apply(self, resps, docs):
        return [[resp.strip("I take()") for resp in one] for one in resps]
