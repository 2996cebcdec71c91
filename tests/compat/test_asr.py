"""Word error rates of the family's speech tasks."""

from __future__ import annotations

import re
import sys

import jiwer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.tasks.asr_wer_utils import EvaluationTokenizer, compute_wer, remove_sp, zhconv_convert
from tests.cases import for_each
from tests.regular_expressions import ends_within

TAGGED = st.lists(st.sampled_from(["<|", "|>", "<", "|", ">", "a", " ", "\n", ",", "　"]), max_size=16).map("".join)
WORDS = st.lists(st.sampled_from(["one", "two", "three"]), min_size=1, max_size=6).map(" ".join)


@given(TAGGED)
def test_tags_are_removed_as_the_expressions_say(text: str) -> None:
    wanted = re.sub(r"\s+", " ", re.sub(r"<\|.*?\|>", " ", text))
    assert remove_sp(text, "en") == re.sub(" ?([!,.?;:])", r"\1", wanted).lstrip(" ")
    assert remove_sp(text, "zh", no_space_languages=["zh"]) == re.sub(r"\s", "", remove_sp(text, "en"))


@for_each("text", ["<|" * 500_000, "<||>" * 250_000, " " * 1_000_000, " , " * 300_000])
def test_a_megabyte_takes_linear_time(text: str) -> None:
    assert ends_within(3.0, lambda given: remove_sp(given, "en"), text)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4))
def test_the_rate_is_that_of_another_package(pairs: list[tuple[str, str]]) -> None:
    references, transcripts = (list(side) for side in zip(*pairs, strict=True))
    assert compute_wer(references, transcripts, "en") == pytest.approx(jiwer.wer(references, transcripts))


def test_normalisers_by_language() -> None:
    calls: list[str] = []

    def named(name: str):  # type: ignore[no-untyped-def]
        return lambda text, *rest: calls.append("-".join([name, *rest])) or text

    languages = {"yue_languages": ["yue"], "english_languages": ["en"], "chinese_languages": ["zh", "yue"]}
    functions = {f"{name}_normalizer": named(name) for name in ("english", "chinese", "basic")}
    for language, wanted in {
        "en": ["english", "basic"], "zh": ["chinese"], "yue": ["yue-zh-cn", "chinese"], "fr": ["basic"],
    }.items():  # fmt: skip
        calls.clear()
        compute_wer(["a"], ["a"], language, yue_converter=named("yue"), **languages, **functions)  # type: ignore[arg-type]
        assert calls == wanted * 2, language


def test_nothing_to_divide_by_and_too_few_transcripts() -> None:
    with pytest.raises(ZeroDivisionError, match="no error rate"):
        compute_wer(["", "!"], ["a", "b"], "en")
    with pytest.raises(IndexError, match="1 transcripts for 2 references"):
        compute_wer(["a", "b"], ["a"], "en")


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert compute_wer(["a b"], ["a"], "en") == 0.5
    assert capsys.readouterr() == ("", "")


def test_tokenizers_by_name() -> None:
    for kind in (AssertionError, UsageError):
        with pytest.raises(kind, match="ja-mecab"):
            EvaluationTokenizer("bert")
    assert EvaluationTokenizer.SPACE_ESCAPE == "▁"
    assert EvaluationTokenizer("char", lowercase=True).tokenize("Ab") == "a b"


def test_conversion_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zhconv", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"'zhconv' is required .* lmms_eval\[asr\]"):
        zhconv_convert("軟體", "zh-cn")


def test_phrases_are_converted() -> None:
    pytest.importorskip("zhconv")
    assert zhconv_convert("乾隆的軟體", "zh-cn") == "乾隆的软件"
