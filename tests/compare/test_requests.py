"""Notes on what differs between the requests of two runs, in comparisons and gates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import structs

from benchmarks.workload import picture_task
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response, Sight
from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.gate import check_gate, read_policy
from lmms_eval.compare.readers import read_runs
from lmms_eval.compare.requests import request_notes
from lmms_eval.config import build_config
from lmms_eval.evaluation.run import run as evaluate
from lmms_eval.results.sample_text import asked_lines
from tests.cases import for_each
from tests.compare.runs import run, task

BACKEND = {"config": {"model_backend": "lmms_eval.models.openai.model.OpenAI (chat)"}}


def document(**parts: Any) -> dict[str, Any]:
    return {**BACKEND, **parts}


def notes(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    sides = [structs.replace(run(name, task([1, 0])), results=one) for name, one in (("a", first), ("b", second))]
    return request_notes(sides[0], sides[1])


def requests(**parts: Any) -> dict[str, Any]:
    return document(effective_requests={"quiz": {"sha256": "x", **parts}})


@for_each(
    ("first", "second", "said"),
    [
        (requests(options={"max_tokens": 16}), requests(options={"max_tokens": 64}), "max_new_tokens 16 / 64"),
        (requests(options={"stop": ["X"]}), requests(options={}), 'until ["X"] / none'),
        (
            requests(chat_template_kwargs={"enable_thinking": True}),
            requests(),
            "chat_template_kwargs.enable_thinking true / none",
        ),
        (requests(chat_template="1" * 64), requests(chat_template="2" * 64), "chat_template"),
        (requests(media={"max_pixels": 9}), requests(media={"max_pixels": 4}), "max_pixels 9 / 4"),
        (
            document(system_instruction_sha="1", system_instruction="Be brief."),
            document(system_instruction_sha=None, system_instruction=None),
            'other system instructions (--system_instruction): "Be brief." / none',
        ),
        (document(ignored_gen_kwargs=["foo"]), document(), '(--allow_ignored): ["foo"] / []'),
        (
            document(config={"gen_kwargs": "temperature=1"}),
            document(config={"gen_kwargs": ""}),
            'other --gen_kwargs: "temperature=1" / none',
        ),
        (
            document(sent_media={"quiz": {"documents": 2, "tokens": {"min": 1, "median": 256, "max": 400}}}),
            document(sent_media={"quiz": {"documents": 2, "tokens": {"min": 1, "median": 1024, "max": 2000}}}),
            "saw other media (quiz), medians: tokens 256 / 1024",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_differences_are_said(first: dict[str, Any], second: dict[str, Any], said: str) -> None:
    (found,) = notes(first, second)
    assert said in found and "a and b" in found
    assert notes(first, first) == []


def test_the_same_request_of_another_back_end_is_no_difference() -> None:
    local = requests(
        options={"max_new_tokens": 16, "do_sample": False, "num_beams": 1, "until": ["X"]},
        media={"max_num_frames": 32},
        chat_template="1",
        generation_config={"top_k": 5},
    )
    local["config"] = {"model_backend": "lmms_eval.models.hf.model.HuggingFace (chat)"}
    served = requests(
        options={"max_tokens": 16, "temperature": 0, "stop": ["X"]},
        media={"max_frames_num": 32, "image_quality": 85},
    )
    assert notes(local, served) == []
    served["effective_requests"]["quiz"]["options"]["temperature"] = 0.5
    assert "temperature 0 / 0.5" in notes(local, served)[0]


def test_prompts_are_compared_where_all_documents_were_asked_once() -> None:
    def told(prompts: str, failed: int = 0, kind: str = "generate_until") -> dict[str, Any]:
        outcome = {"requested": 2, "not_asked": 0, "failed": failed}
        return document(prompt_fingerprint=prompts, configs={"quiz": {"output_type": kind}}, outcomes={"quiz": outcome})

    assert "prompt_fingerprint" in notes(told("1"), told("2"))[0]
    assert notes(told("1", failed=1), told("2")) == []
    many = "generate_until_multi_round"
    assert notes(told("1", kind=many), told("2", kind=many)) == []


@for_each("hostile", [[], "x", 3, {"quiz": []}, {"quiz": {"options": "x", "media": [1]}}])
def test_hostile_results_are_no_errors(hostile: Any) -> None:
    damaged = document(effective_requests=hostile, sent_media=hostile, configs=hostile, outcomes=hostile)
    assert all(isinstance(note, str) for note in notes(damaged, requests(options={"a": 1})))


class Stub(Model):
    """A local model whose processor makes pictures ``size`` pixels wide, and one token of 16 pixels."""

    def __init__(self, size: int) -> None:
        self.size = size

    def prepare(self, request: Request) -> Request:
        from lmms_eval.media import load_rgb

        pictures = [load_rgb(part.url) for message in request.build_messages().messages for part in message.content
                    if part.type == "image"]  # fmt: skip
        return request.with_payload(len(pictures), 0)

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while taken := stream.take(4):
            for request in taken:
                sight = Sight(((self.size, self.size),) * request.payload, self.size * self.size // 16)
                yield Response(request.id, text="a0", finish_reason="stop", sight=sight)

    def identity(self) -> dict[str, Any]:
        return {"name": "stub"}


def test_a_processor_whose_defaults_change_is_found(tmp_path: Path) -> None:
    """Pictures, options and identity are the same; only what the processor makes of the pictures is not."""
    name = picture_task(tmp_path / "tasks", 4, 2)
    results = []
    for size in (32, 64):
        options = {
            "model": "stub", "tasks": name, "include_path": str(tmp_path / "tasks"), "log_samples": True,
            "output_path": str(tmp_path / str(size)),
        }  # fmt: skip
        results.append(evaluate(build_config(options), Stub(size)).results)
    seen = results[0]["sent_media"][name]
    assert seen["width"] == {"min": 1024, "median": 1024, "max": 1024}
    assert seen["processed_width"]["median"] == 32 and seen["tokens"]["median"] == 64
    runs = read_runs([str(tmp_path / "32"), str(tmp_path / "64")])
    said = [note for note in compare_runs(runs).notes if "saw other media" in note]
    assert len(said) == 1 and "processed_width 32 / 64" in said[0] and "tokens 64 / 256" in said[0]
    policy = tmp_path / "policy.yaml"
    policy.write_text("tasks:\n  '*': {margin: 0.5}\n")
    assert any("tokens 64 / 256" in note for note in check_gate(runs[0], runs[1], read_policy(policy)).notes)
    lines = asked_lines(results[0])
    assert any("processed_width 32" in line and "pictures 1" in line for line in lines)
    assert any(line.startswith("requests of") for line in lines)


def test_baselines_read_no_prompt_and_so_got_no_other_one() -> None:
    outcome = {"requested": 2, "not_asked": 0, "failed": 0}
    facts = {"configs": {"quiz": {"output_type": "generate_until"}}, "outcomes": {"quiz": outcome}}
    sides = [document(prompt_fingerprint=text, config={"model": "baseline"}, **facts) for text in "12"]
    assert notes(*sides) == []
