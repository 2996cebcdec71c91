"""Extractors and verifiers by rule: what the recorded vectors leave open."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.verifiers import (
    EXTRACTOR_REGISTRY,
    VERIFIER_REGISTRY,
    CompositeVerifier,
    ExactMatchVerifier,
    NumericToleranceVerifier,
    VerificationPipeline,
    build_verification_pipeline,
)

RULES = ("exact_match", "contains", "mcq_match", "numeric")


def test_unknown_types_are_answered_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"'nope'; known are strip_reasoning, regex, mcq, number, strip"):
        build_verification_pipeline({"extractors": [{"type": "nope"}], "verifier": {"type": "numeric"}})
    with pytest.raises(KeyError, match="known are exact_match, contains"):
        build_verification_pipeline({"verifier": {"type": "gemini"}})
    with pytest.raises(KeyError, match="'type' is missing"):
        build_verification_pipeline({"verifier": {"ignore_case": True}})
    with pytest.raises(TypeError):
        build_verification_pipeline({"verifier": {"type": "numeric", "tolerance": 1}})


def test_a_reply_that_is_no_text_is_stripped_in_its_text_form() -> None:
    strip = EXTRACTOR_REGISTRY["strip_reasoning"]()
    assert (strip(None), strip(12)) == ("", "12")


def test_steps_built_in_code_are_those_of_a_configuration() -> None:
    config = {"extractors": [{"type": "number"}], "verifier": {"type": "numeric", "rel_tol": 0.1}}
    made = VerificationPipeline([EXTRACTOR_REGISTRY["number"]()], NumericToleranceVerifier(rel_tol=0.1))
    assert made.verify("q", "about 105", "100") == build_verification_pipeline(config)("q", "about 105", "100")


def test_a_composite_goes_on_to_the_last_that_is_not_sure() -> None:
    composite = CompositeVerifier([ExactMatchVerifier(), NumericToleranceVerifier()])
    assert composite("q", "5.0", "5").raw_output.startswith("numeric")
    assert composite("q", "five", "5").raw_output.startswith("numeric_parse_fail")


@pytest.mark.parametrize("name", RULES)
@given(prediction=st.text(max_size=40), truth=st.text(max_size=40))
def test_rules_take_any_text(name: str, prediction: str, truth: str) -> None:
    result = VERIFIER_REGISTRY[name]()("q", prediction, truth)
    assert result.score == float(result.is_correct)
    assert name == "numeric" or VERIFIER_REGISTRY[name]()("q", truth, truth).is_correct


@pytest.mark.parametrize("name", ["strip_reasoning", "mcq", "number", "strip"])
@given(text=st.text(max_size=80))
def test_extractors_take_any_text(name: str, text: str) -> None:
    assert isinstance(EXTRACTOR_REGISTRY[name]()(text), str)


@given(text=st.lists(st.sampled_from(["\\boxed{", "}", "{", " ", "7", "1,000.5"]), max_size=10).map("".join))
def test_the_number_is_that_of_the_patterns(text: str) -> None:
    boxed = re.search(r"\\boxed\{([^}]+)\}", text)
    numbers = re.findall(r"-?\d+(?:,\d{3})*(?:\.\d+)?", text)
    wanted = boxed[1].strip() if boxed else numbers[-1].replace(",", "") if numbers else ""
    assert EXTRACTOR_REGISTRY["number"]()(text) == wanted
