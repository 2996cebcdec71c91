"""Vectors of tasks with a picture between two rounds (``family_functions/visual_cot.jsonl``)."""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import Request, Response
from lmms_eval.media import load_image
from lmms_eval.tasks.yaml import exchanges as visual_cot
from tests.painting import png
from tests.parity.compare import agree, decode
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter, pending
from tests.tasks.kit import Function, converse, loaded

NO_RESULTS_RULE = "family_no_results_are_an_empty_answer"
OTHERS = "tests.parity.adapters.family_plugins"
"""Judges the rows of the mixin, which stand in the same file."""
TEMPLATE = "Draw a picture for: {question}"
"""Of the stand-in model by which the rows were recorded."""
CODE = """
from PIL import Image

def pictures(doc):
    if doc["shown"] is None:
        raise OSError("none")
    return [Image.new("RGB", (8, 8), (red, 0, 0)) for red in range(doc["shown"])]
"""
ASKING = {"output_type": "generate_visual_cot", "doc_to_text": "context", "doc_to_visual": Function("utils.pictures")}


def _request(
    context: str, generation: Mapping[str, Any], visuals: Sequence[str] | str, drawn: tuple[Any, list[str]]
) -> dict[str, Any]:
    """Answers, and what each round was given; pictures by their names, which their colours stand for."""
    shown = None if visuals == "none" else list(visuals)
    row = {"context": context, "shown": None if shown is None else len(shown), "question": "", "answer": ""}
    text, names = drawn
    pictures = [generated_image(png(100 + place)) for place in range(len(names))]
    calls: list[dict[str, Any]] = []

    def reply(request: Request) -> Response:
        found = request.build_messages()
        reds = [load_image(url).convert("RGB").getpixel((0, 0))[0] for url in found.extract_media()[0]]
        image = next(((shown or [])[red] for red in reds if red < 100), None)
        calls.append(_call(request, found.text(), image, [names[red - 100] for red in reds if red >= 100]))
        if request.round:
            return Response(request.id, text="answer of stage 2")
        if not generation.get("visual_cot"):
            return Response(request.id, text="plain answer")
        return Response.interleaved(request.id, [text or "", *pictures])

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(visual_cot, "DRAWING_PROMPT", TEMPLATE):
        task = loaded(Path(folder), {**ASKING, "generation_kwargs": dict(generation)}, CODE, rows=[row])
        answer, _ = converse(task, 0, reply)
    return {"answers": [str(answer.value)], "calls": calls}


def _call(request: Request, text: str, image: str | None, drawn: list[str]) -> dict[str, Any]:
    if request.round:
        return {"stage": 2, "question": text, "new_image": drawn[0], "image": image}
    if request.generation.get("visual_cot"):
        return {"stage": 1, "prompt": text, "image": image}
    return {"plain": text, "image": image}


def _results(output_type: str, results: list[Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        task = loaded(Path(folder), {"output_type": output_type})
    assert task._scorer is not None
    return {"seen": task._scorer._results(results)}


FUNCTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "visual_cot_request": _request,
    "results_given_to_process_results": _results,
}


@line_adapter("family_functions/visual_cot.jsonl")
@keyed("function", "args*", "kwargs*", "expected*", "raises", "defect")
def judge(vector: Vector) -> Verdict:
    """Compare answers and calls, or what scoring gets; the reference fails without results, where ours goes on."""
    record = vector.record
    if record["function"] not in FUNCTIONS:
        if importlib.util.find_spec(OTHERS) is None:
            return pending(f"{record['function']} has no adapter")
        verdict: Verdict = importlib.import_module(OTHERS).judge_chat_mixin(vector)
        return verdict
    found = FUNCTIONS[record["function"]](*decode(record["args"]))
    if record.get("raises") == "IndexError":
        return deviates(NO_RESULTS_RULE) if found == {"seen": [""]} else failed(f"{found!r} without results")
    return PASSED if agree(record["expected"], found) else failed(f"{found!r} instead of {record['expected']!r}")
