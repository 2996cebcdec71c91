"""Answers that go through extractors and a verifier."""

from lmms_eval.verifiers import (
    EXTRACTOR_REGISTRY,
    VERIFIER_REGISTRY,
    CompositeVerifier,
    ContainsVerifier,
    ExactMatchVerifier,
    Extractor,
    MCQExtractor,
    MCQMatchVerifier,
    NumberExtractor,
    NumericToleranceVerifier,
    RegexExtractor,
    StripExtractor,
    StripReasoningExtractor,
    VerificationPipeline,
    Verifier,
    VerifyResult,
    build_verification_pipeline,
    parse_binary_response,
)
from lmms_eval.verifiers.openai import OpenAIVerifier


def doc_to_visual(doc):
    return []


def doc_to_text(doc, lmms_eval_specific_kwargs=None):
    kwargs = lmms_eval_specific_kwargs or {}
    return f"{kwargs.get('pre_prompt', '')}{doc['question']}{kwargs.get('post_prompt', '')}"


class LastWord(Extractor):
    def extract(self, response, **kwargs):
        return response.split()[-1] if response.split() else ""


class SameLength(Verifier):
    def verify(self, question, prediction, ground_truth, **kwargs):
        same = len(prediction) == len(ground_truth)
        return VerifyResult(score=float(same), is_correct=same, raw_output="", metadata={"confident": False})


def said(doc):
    return f"<think>Hm.</think> The answer is {doc['answer']}"


def _scored(pipeline, doc, results):
    return {"score": pipeline(doc["question"], results[0], doc["answer"]).score}


def process_exact(doc, results):
    return _scored(VerificationPipeline([StripReasoningExtractor(), LastWord()], ExactMatchVerifier()), doc, results)


def process_contained(doc, results):
    return _scored(VerificationPipeline([StripExtractor()], ContainsVerifier()), doc, results)


def process_letters(doc, results):
    pipeline = VerificationPipeline([MCQExtractor(choices=["A", "B"])], MCQMatchVerifier())
    letter = "B" if doc["answer"] in results[0] and results[0] else "A"
    return {"score": pipeline(doc["question"], f"({letter})", "B").score}


def process_number(doc, results):
    return _scored(VerificationPipeline([NumberExtractor()], NumericToleranceVerifier(rel_tol=0.01)), doc, results)


def process_composite(doc, results):
    either = CompositeVerifier([SameLength(), ExactMatchVerifier()])
    return _scored(VerificationPipeline([RegexExtractor(r"answer is (\S+)")], either), doc, results)


def process_built(doc, results):
    assert "regex" in EXTRACTOR_REGISTRY and "exact_match" in VERIFIER_REGISTRY
    config = {
        "extractors": [{"type": "strip_reasoning"}, {"type": "regex", "pattern": r"answer is (\S+)"}],
        "verifier": {"type": "exact_match"},
    }
    return _scored(build_verification_pipeline(config), doc, results)


def process_judged(doc, results):
    def read(text):
        is_right = text.startswith(doc["answer"])
        return VerifyResult(float(is_right), is_right)

    judge = OpenAIVerifier(
        model="judge",
        custom_prompt="Is {prediction} the right answer to {question}? ANSWER={prediction}",
        response_parser=lambda text: VerifyResult(
            float(text.startswith(doc["answer"])), text.startswith(doc["answer"])
        ),
    )
    return _scored(VerificationPipeline([LastWord()], judge), doc, results)


def process_binary(doc, results):
    reply = "CORRECT" if results[0].endswith(doc["answer"]) else "INCORRECT"
    return {"score": float(parse_binary_response(reply))}
