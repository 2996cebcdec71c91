"""Vectors of the family's verifiers, reasoning variants and mathematics (``family_functions``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.llm_judge import ProviderFactory, Request, Response, ServerConfig, ServerInterface
from lmms_eval.tasks._task_utils import reasoning_utils
from lmms_eval.tasks._task_utils.math_verify_utils import MathVerifyFn
from lmms_eval.utils.records import to_dict
from lmms_eval.verifiers import VerificationPipeline, build_verification_pipeline, parse_binary_response
from lmms_eval.verifiers.openai import OpenAIVerifier, _parse_score_response
from tests.parity.compare import agree, decode, plain
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter, pending

Record = Mapping[str, Any]
BUILT_IN = "<BUILT-IN PROMPT>"
FAILED_JUDGE_RULE = "family_failed_judge_is_no_reply"
ITEM_RULE = "family_reasoning_media_by_their_kind"
NO_MEDIA_RULE = "family_reasoning_without_media"


def _raises(names: Sequence[str], call: Callable[..., Any], *args: Any, **kwargs: Any) -> Verdict | Any:
    """The call's value, or the verdict on the error that the record asks for."""
    try:
        return call(*args, **kwargs)
    except NotEvaluated:
        raise
    except Exception as error:  # noqa: BLE001 - the class is compared
        found = {kind.__name__ for kind in type(error).__mro__}
        return PASSED if found & set(names) else failed(f"{type(error).__name__}: {error}")


def compare(record: Record, call: Callable[..., Any]) -> Verdict:
    """Call with the record's arguments; an error must be of the recorded class."""
    found = _raises([record.get("raises", "")], call, *decode(record["args"]), **decode(record["kwargs"]))
    if isinstance(found, Verdict):
        return found
    if "raises" in record:
        return failed(f"{found!r} instead of {record['raises']}")
    return PASSED if agree(decode(record["expected"]), plain(found)) else failed(f"{plain(found)!r}")


@dataclass
class Judged:
    """Requests that a verifier sent, and the server it asked for."""

    reply: Any
    server_name: str = ""
    config: ServerConfig | None = None
    requests: list[Request] = field(default_factory=list)

    def provider(self, name: str) -> Callable[[ServerConfig], ServerInterface]:
        judged = self

        class Server(ServerInterface):
            """A judge that answers as the record says."""

            def evaluate_batch(self, requests: Sequence[Request]) -> list[Response]:
                judged.requests.extend(requests)
                if isinstance(judged.reply, str):
                    return [Response(judged.reply, "m")] * len(requests)
                if "raises" in judged.reply:
                    raise RuntimeError(judged.reply["raises"])
                return [Response(judged.reply["fails"], "m", success=False)] * len(requests)

        def build(config: ServerConfig) -> ServerInterface:
            self.server_name, self.config = name, config
            return Server(config)

        return build


def _openai_verifier(init: Record, reply: Any, *call: Any) -> dict[str, Any]:
    judged = Judged(reply)
    keywords = call[3] if len(call) > 3 else {}
    with patch.dict(ProviderFactory._providers, {name: judged.provider(name) for name in ("openai", "azure")}):
        result = OpenAIVerifier(**init).verify(*call[:3], **keywords)
    config, requests = to_dict(judged.config), judged.requests
    keys = ("model_name", "temperature", "max_tokens", "num_retries", "retry_delay")
    shown = [list(request.messages) if "custom_prompt" in init else BUILT_IN for request in requests]
    return {
        "result": result,
        "config": {"server_name": judged.server_name} | {key: config[key] for key in keys},
        "messages": shown,
        "images": [request.images for request in requests],
    }


def _judge_openai(record: Record) -> Verdict:
    verdict = compare(record, _openai_verifier)
    init, reply, *_ = record["args"]
    if verdict != PASSED and "custom_prompt" in init and isinstance(reply, Mapping) and "fails" in reply:
        result = {"score": 0.0, "is_correct": False, "raw_output": reply["fails"]}
        wanted = {**result, "metadata": {"model": "m", "judge_failed": True}}
        verdict = compare({**record, "expected": {**record["expected"], "result": wanted}}, _openai_verifier)
        return deviates(FAILED_JUDGE_RULE) if verdict == PASSED else verdict
    return verdict


def _pipeline(config: Record, *call: Any) -> Any:
    keywords = call[3] if len(call) > 3 else {}
    return build_verification_pipeline(config)(*call[:3], **keywords)


def _pipeline_without_output(config: Record, *call: Any) -> Any:
    return {key: value for key, value in plain(_pipeline(config, *call)).items() if key != "raw_output"}


@line_adapter("family_functions/verifiers.jsonl", "harness/functions/verifiers.jsonl")
def judge_verifiers(vector: Vector) -> Verdict:
    """Verify as the record says."""
    record = vector.record
    if record["function"] == "openai_verifier":
        return _judge_openai(record)
    calls: Mapping[str, Callable[..., Any]] = {
        "VerificationPipeline_without_verifier": VerificationPipeline,
        "_parse_score_response": _parse_score_response,
        "build_verification_pipeline": _pipeline,
        "parse_binary_response": parse_binary_response,
        "pipeline": _pipeline_without_output,
    }
    return compare(record, calls[record["function"]])


def _messages(visuals: Any, question: str, *rest: Any) -> Any:
    system_prompt, settings = (*rest, None, None)[:2]
    make = reasoning_utils.make_reasoning_doc_to_messages(lambda _doc: visuals, lambda _doc, _: question, system_prompt)
    return make({}, settings)


def _process_results(doc: Any, results: Any, extra: Any = None, **kwargs: Any) -> Any:
    extra_info_fn = None if extra is None else lambda _doc: extra
    return reasoning_utils.make_reasoning_process_results(
        "data", lambda doc, _: doc.get("question", ""), extra_info_fn=extra_info_fn, **kwargs
    )(doc, results)


def _judge_messages(record: Record) -> Verdict:
    verdict = compare(record, _messages)
    if verdict == PASSED:
        return PASSED
    visuals, question, *rest = record["args"]
    found = _messages(visuals, question, *rest)
    media = found[1]["content"][:-1]
    if visuals is None:
        return deviates(NO_MEDIA_RULE) if media == [] else verdict
    for part in media:
        if part["type"] != "video" or not part["url"].endswith(".mp4"):
            return verdict
        part["type"] = "image"
    return deviates(ITEM_RULE) if agree(record["expected"], found) else verdict


def _unless_absent(judge: Callable[[Record], Verdict]) -> Callable[[Vector], Verdict]:
    """Leave what rests on math-verify pending where it is not installed."""

    def judge_vector(vector: Vector) -> Verdict:
        try:
            return judge(vector.record)
        except NotEvaluated as absent:
            return pending(absent.reason)

    return judge_vector


@line_adapter("family_functions/reasoning.jsonl")
@_unless_absent
def judge_reasoning(record: Record) -> Verdict:
    """Call the function of that name, without a judge."""
    if record["function"] == "reasoning_messages":
        return _judge_messages(record)
    if record["function"] == "reasoning_process_results":
        return compare(record, _process_results)
    return compare(record, getattr(reasoning_utils, record["function"]))


@line_adapter("family_functions/math_verify.jsonl")
@_unless_absent
def judge_math_verify(record: Record) -> Verdict:
    """Compare scores; extracted texts too, which hold for the versions of the record alone."""
    calls: Mapping[str, Callable[..., Any]] = {
        "MathVerifyFn": MathVerifyFn(),
        "MathVerifyFn_scored": MathVerifyFn(correct_score=2, incorrect_score=-1, strict=False),
        "MathVerifyFn.preprocess_answer": MathVerifyFn.preprocess_answer,
    }
    return compare(record, calls[record["function"]])
