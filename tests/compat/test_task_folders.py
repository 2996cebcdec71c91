"""A task folder in the family's style that uses these names is run to a score."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from lmms_eval.evaluator import simple_evaluate
from tests.painting import png

FILTERED = """
task: filtered
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
doc_to_visual: !function utils.pictures
doc_to_text: question
doc_to_target: answer
filter_list:
  - name: choice
    filter:
      - function: !function utils.ChoiceFilter
        group_select: 0
        ignore_case: true
        ignore_punctuation: true
        regex_pattern: "(\\\\([A-Z]\\\\))"
      - function: take_first
  - name: last
    filter: [{function: !function utils.LetterFilter}, {function: !function utils.NameFilter}, {function: take_first}]
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
SPOKEN = """
task: spoken
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
doc_to_visual: !function utils.pictures
doc_to_text: question
doc_to_target: answer
process_results: !function utils.process_spoken
metric_list: [{metric: wer, aggregation: !function utils.spoken_wer, higher_is_better: false}]
"""
UTILS = """
import re

from lmms_eval.api.registry import MODEL_REGISTRY
from lmms_eval.azure_openai_compat import build_client, has_endpoint_support
from lmms_eval.filters.extraction import ExtendedRegexFilter, RegexFilter
from lmms_eval.filters.transformation import MapFilter
from lmms_eval.imports import optional_import, require_package
from lmms_eval.loggers.evaluation_tracker import GeneralConfigTracker
from lmms_eval.tasks._task_utils.media_resolver import resolve_media_reference
from lmms_eval.tasks.asr_wer_utils import EvaluationTokenizer, compute_wer, remove_sp, zhconv_convert

require_package("sacrebleu")
BLEU, HAS_BLEU = optional_import("sacrebleu")


def pictures(doc):
    return [resolve_media_reference(doc["picture"], media_type="image", cache_dir="cache")]


class ChoiceFilter(ExtendedRegexFilter):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

    def apply(self, resps, docs):
        return [[self.chosen(resp, doc["choices"]) for resp in answers] for answers, doc in zip(resps, docs)]

    def chosen(self, resp, choices):
        texts = {self.filter_ignores(text): chr(65 + index) for index, text in enumerate(choices)}
        match = self.find_match(self.regex, resp, {"(A)": "A", "(B)": "B"})
        if not match:
            match = self.find_match(re.compile("|".join(texts)), self.filter_ignores(resp), texts)
        return match or self.fallback


class LetterFilter(RegexFilter):
    def __init__(self, regex_pattern=r"[ab]", group_select=-1, fallback="none"):
        super().__init__(regex_pattern, group_select, fallback)

    def apply(self, resps, docs):
        return [[(self.regex.findall(resp.lower()) or [self.fallback])[self.group_select] for resp in answers]
                for answers in resps]


class NameFilter(MapFilter):
    def __init__(self):
        super().__init__({"a": "A", "b": "B"}, default_value=None)

    def apply(self, resps, docs):
        return [[self.mapping_dict.get(resp, self.default_value) for resp in answers] for answers in resps]


def process_spoken(doc, results):
    name = GeneralConfigTracker._get_model_name("pretrained=org/model,batch_size=1")
    assert name == "org/model" and not has_endpoint_support() and HAS_BLEU and isinstance(MODEL_REGISTRY, dict)
    return {"wer": {"gt": remove_sp("<|en|> the right answer is " + doc["answer"], "en"),
                    "pred": remove_sp("the right  answer is " + results[0], "en")}}


def spoken_wer(items):
    return 100 * compute_wer([item["gt"] for item in items], [item["pred"] for item in items], "en",
                             english_languages=["en"], english_normalizer=str.lower)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for variable in ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_BASE"):
        monkeypatch.delenv(variable, raising=False)
    made = tmp_path / "tasks"
    made.mkdir()
    (tmp_path / "hf/cache").mkdir(parents=True)
    (tmp_path / "hf/cache/p.png").write_bytes(png(9))
    rows = [{"question": f"Question {i}?", "answer": "AB"[i % 2], "choices": ["red", "it's blue"], "picture": "p.png"}
            for i in range(4)]  # fmt: skip
    (made / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (made / "utils.py").write_text(dedent(UTILS))
    (made / "filtered.yaml").write_text(FILTERED)
    (made / "spoken.yaml").write_text(SPOKEN)
    return made


def scores(folder: Path, task: str, model_args: str) -> dict[str, float]:
    made = simple_evaluate("baseline", model_args=model_args, tasks=[task], include_path=str(folder), bootstrap_iters=0)
    return dict(made["results"][task])


@pytest.mark.parametrize(
    ("answer", "choice", "last"), [("It is (A)", 0.5, 0.5), ("Its BLUE!", 0.5, 0.5), ("nothing", 0.0, 0.0)]
)
def test_filters_of_a_folder(folder: Path, answer: str, choice: float, last: float) -> None:
    found = scores(folder, "filtered", f"strategy=constant,text={answer}")
    assert (found["exact_match,choice"], found["exact_match,last"]) == (choice, last)


def test_speech_of_a_folder(folder: Path) -> None:
    assert scores(folder, "spoken", "strategy=constant,text=A")["wer,none"] == 10.0  # two words of four times five


def test_gold_answers_open_the_pictures_that_are_looked_up(folder: Path) -> None:
    assert scores(folder, "spoken", "strategy=gold")["wer,none"] == 0.0
    (folder.parent / "hf/cache/p.png").unlink()
    assert scores(folder, "spoken", "strategy=gold")["wer,none"] is None  # each sample fails by itself
