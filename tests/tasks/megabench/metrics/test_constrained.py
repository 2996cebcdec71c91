from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.conversions.literals import ConversionError
from lmms_eval.tasks.megabench.metrics.constrained import constrained_generation
from lmms_eval.tasks.megabench.metrics.constraints_words import MAX_CHARS
from lmms_eval.tasks.megabench.metrics.values import DetailedScore
from lmms_eval.tasks.megabench.scoring.query import score_query
from lmms_eval.tasks.megabench.scoring.task_spec import parse_task_spec
from tests.cases import for_each
from tests.tasks.linguistic_kit import NLTK_DATA, needs_nltk_data
from tests.tasks.megabench.fuzzing import FUZZ, MEGABYTE, NASTY, cpu_limit, reply_text

LIMIT_S = 3.0  # a tenth is enough on an idle machine; quadratic time takes minutes
CONTEXTS: tuple[dict[str, str], ...] = (
    {"contain": "[boat, hot dog]", "contain2##times": "[cat]##2"},
    {"contain_only##position": "[[dog, puppy], [cat]]##2"},
    {"length": ">5"},
    {"acrostic": "ab", "acrostic_alliteration": "a"},
    {"syllables": "[4,10000]5[5,7]"},
    {"syllables": "[0,1000000000]"},
    {"rhyming_scheme": "AABBA"},
    {"rhyming_scheme": "A" * (MEGABYTE // 14)},
    {"poetry_meter": "iambic"},
)
_RANDOM = random.Random(1)
HOSTILE = {
    **NASTY,
    "ambiguous words": "the fire " * (MEGABYTE // 9),
    "lines of ambiguous words": "the fire hour\n" * (MEGABYTE // 14),
    "unknown words": " ".join(f"zq{number}x" for number in range(120_000)),
    "labels": "(a)" * (MEGABYTE // 3),
    "blanks before a label": "x" + " " * MEGABYTE + "(a)",
    "un": "un" * (MEGABYTE // 2),
    "apostrophes": "'" * MEGABYTE,
    "stars": "*" * MEGABYTE,
    # The rest is just short enough to be searched for words.
    "short sentences": "x! " * (MAX_CHARS // 3),
    "full stops": ". " * (MAX_CHARS // 2),
    "full stops and newlines": ".\n" * (MAX_CHARS // 2),
    "ellipses": "... " * (MAX_CHARS // 4),
    "initials": "A. " * (MAX_CHARS // 3),
    "different sentences": " ".join(f"A{number}x b." for number in range(2490)) + " z" * 10_000,
    "too many sentences": " ".join(f"A{number}x." for number in range(5000)),
    "quotes": '"' * MAX_CHARS,
    "parentheses": "(" * MAX_CHARS,
    "one word": "a" * MAX_CHARS,
    "surrogates": "\ud800" * MAX_CHARS,
    "noise": "".join(_RANDOM.choice("ab.!?'\"-, \n(") for _ in range(MAX_CHARS)),
}


@pytest.fixture
def nltk_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NLTK_DATA", str(NLTK_DATA))


@needs_nltk_data
@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_replies_do_not_stall(text: str, nltk_data: None) -> None:
    constrained_generation("a cat", {"contain": "[cat]", "poetry_meter": "x"})  # reads the dictionaries
    for context in CONTEXTS:
        with cpu_limit(LIMIT_S):
            try:
                assert constrained_generation(text, context).score in (0, 1)
            except (ConversionError, IndexError):  # scored 0 with the error as its information
                continue


@needs_nltk_data
def test_the_least_constraint_counts(nltk_data: None) -> None:
    poem = "There was an old cat on a mat\nWho wore on his head a large hat"
    context = {"contain": "[cats]", "rhyming_scheme": "AA", "length": "", "syllables": "[8,9][8,9]", "acrostic": "tw"}
    info = "contain: 1\trhyming_scheme: 1\tlength: 1\tsyllables: 1\tacrostic: 1"
    assert constrained_generation(poem, context) == DetailedScore(1.0, info)
    assert constrained_generation(poem, {**context, "Length": "<99"}) == DetailedScore(0.0, f"{info}\tLength: 0")


@for_each(
    ("response", "context"),
    [("x", {}), ("x", {"contain": 5}), ("x", {"contain": None}), (None, {"length": ">1"}), (["x"], {"acrostic": "x"})],
    ids=str,
)
def test_what_is_no_text_is_an_error(response: Any, context: Any) -> None:
    with pytest.raises((AttributeError, TypeError, ConversionError)):
        constrained_generation(response, context)


def test_constraints_without_words_need_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    context = {"length1": ">1", "acrostic": "h", "contain": " ", "syllables": "3", "poetry_meter": "iambic"}
    assert constrained_generation("hello there", context).info.startswith("length1: 1\tacrostic: 1\tcontain: 1")
    with pytest.raises(NotEvaluated, match="lmms-eval fetch nltk"):
        constrained_generation("hello there", {"contain": "[hello]"})


def test_a_query_without_data_is_not_evaluated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    info = {
        "field_score_function": {"##poem": "constrained_generation"},
        "aggregation": {"function": "mean", "field_weights": {"##poem": 1}},
        "response_parse_function": "dummy",
    }
    spec = parse_task_spec(info, "poems", ["##poem"])
    score = score_query("a dog", {"##poem": ""}, spec, {"contain": "[dog]"})
    assert score.query is None and not score.scorer_errors
    assert "lmms-eval fetch nltk" in score.not_evaluated["##poem"]


@needs_nltk_data
@FUZZ
@given(
    text=reply_text,
    context=st.dictionaries(
        st.sampled_from(
            [
                "contain",
                "contain1##times",
                "contain_only##position",
                "length",
                "acrostic",
                "acrostic_alliteration",
                "syllables",
                "rhyming_scheme",
                "poetry_meter",
                "other",
            ]
        ),
        st.sampled_from(["", "[a, b]##1", "[[a], [b c]]##2", ">1", "<9", "=1", "a ", "[1,9]5", "AB", "x"]),
        min_size=1,
        max_size=4,
    ),
)
def test_any_reply_keeps_or_breaks(text: str, context: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLTK_DATA", str(NLTK_DATA))
        try:
            scored = constrained_generation(text, context)
        except (ConversionError, IndexError):
            return
    parts = dict(part.rsplit(": ", 1) for part in scored.info.split("\t"))
    assert list(parts) == list(context)
    assert scored.score == min(int(score) for score in parts.values())
    assert all(parts[name] == "1" for name, value in context.items() if not value.strip())
