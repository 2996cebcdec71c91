"""MEGA-Bench: metrics with a judge, replayed with the recorded replies; what is asked is compared too."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from lmms_eval.api.judging import Verdict as Said
from lmms_eval.api.messages import ChatMessages, ChatTextContent
from lmms_eval.api.request import Request
from lmms_eval.judges import DEFAULT_JUDGE_MODEL, Judge, ask
from lmms_eval.judges.providers import ScriptedJudge, register_script
from lmms_eval.tasks.megabench.judge_questions import JudgedQuery, questions
from lmms_eval.tasks.megabench.metrics.judged import gpt_4o_as_judge
from lmms_eval.tasks.megabench.scoring.query import score_query
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec, parse_task_spec
from tests.parity.adapters.megabench import compare, decode, expects_error
from tests.parity.vectors import Vector, Verdict, deviates, failed, line_adapter

ART = "ascii_art_gpt4o_judge"


class Recorded:
    """A judge that gives the recorded replies in order, and keeps what it is asked."""

    def __init__(self, replies: list[Any]) -> None:
        self.replies: Iterator[Any] = iter(replies)
        self.asked: list[dict[str, Any]] = []
        register_script("recorded", self._answer)
        self.judge = Judge(ScriptedJudge("recorded"), "recorded", "scripted")

    def _answer(self, messages: ChatMessages, request: Request) -> str:
        (message,) = messages.messages
        types = ["text" if part.type == "text" else "image_url" for part in message.content]
        text = "".join(part.text for part in message.content if isinstance(part, ChatTextContent))
        self.asked.append({"content_types": types, "temperature": request.generation["temperature"], "text": text})
        reply = next(self.replies)
        return reply if isinstance(reply, str) else ""  # a reply without choices is an empty one


@functools.cache
def picture(name: str) -> Path:
    """A small readable picture in the place of one that a vector names."""
    path = Path(tempfile.mkdtemp(prefix="judged-")) / name
    Image.new("RGB", (8, 8), "red").save(path)
    return path


def verdicts(
    recorded: Recorded, query: Mapping[str, Any], context: Mapping[str, Any], spec: TaskSpec
) -> dict[str, Said]:
    judged = JudgedQuery(query["correct_answer"], query["query_text"], query["images"], context, picture)
    said = ask(recorded.judge, questions(query.get("response"), judged, spec))
    return {verdict.name: verdict for verdict in said}


def wrong_request(recorded: Recorded, record: Mapping[str, Any]) -> str:
    """What differs from the recorded requests, or empty. The text about ASCII art is free."""
    expected = record["expected_judge_requests"]
    if len(expected) != len(recorded.asked):
        return f"{len(recorded.asked)} requests to the judge, expected {len(expected)}"
    for wanted, found in zip(expected, recorded.asked, strict=True):
        if wanted["model"] != DEFAULT_JUDGE_MODEL:
            return f"default judge {DEFAULT_JUDGE_MODEL}, expected {wanted['model']}"
        is_art = wanted["content_types"].count("image_url") == 2
        if is_art and "ASCII art" not in found["text"]:
            return "the question does not say ASCII art"
        keys = ("content_types", "temperature") if is_art else ("content_types", "temperature", "text")
        for key in keys:
            if found[key] != wanted[key]:
                return f"{key} {found[key]!r}, expected {wanted[key]!r}"
    return ""


@line_adapter("megabench/judge_metrics.jsonl")
def judge_line(vector: Vector) -> Verdict:
    record = vector.record
    if record.get("helper") == "judge_reply_parse":
        return _rating(record)
    info = {
        "field_score_function": {"art": record["metric"]},
        "aggregation": {"function": "mean", "field_weights": {"art": 1}},
        "response_parse_function": "json",
    }
    spec = parse_task_spec(info, "vector", ["art"])
    recorded = Recorded([record["judge_output"]])
    answer = {"art": record["correct_answer"]}
    parsed = _json_reply(record["response"])
    query = {"response": parsed, "correct_answer": answer, "query_text": "", "images": []}
    score = score_query(parsed, answer, spec, {}, verdicts(recorded, query, {}, spec))
    if len(recorded.asked) != record["judge_calls"]:
        return failed(f"{len(recorded.asked)} calls, expected {record['judge_calls']}")
    if expects_error(decode(record["expected"])):
        good = score.fields == {"art": 0.0} and "art" in score.scorer_errors
        return deviates("megabench_pair_scorer_error_is_zero") if good else failed(f"got {score}")
    if score.scorer_errors:
        return failed(f"scorer errors {score.scorer_errors}")
    return compare(score.fields["art"], record["expected"])


def _json_reply(response: Any) -> str:
    return f"Answer: {json.dumps({'art': response})}"


def _rating(record: Mapping[str, Any]) -> Verdict:
    found = gpt_4o_as_judge("", "", Said("f", record["text"], accepted=True, model="recorded"))
    if found.info != record["expected_info"]:
        return failed(f"information {found.info!r}, expected {record['expected_info']!r}")
    return compare(found.score, record["expected"])
