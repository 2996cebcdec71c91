"""A task folder, configurations over it, and a model that fails at will."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.workload import text_task
from lmms_eval.api.model import Model, RequestStream, lmms
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.config import RunConfig, build_config
from lmms_eval.engine.team import Place
from lmms_eval.evaluation.collect import collect
from lmms_eval.evaluation.inputs import Collected

DOCUMENTS = 6
NAME = "bench_text"


def tasks(tmp: Path, documents: int = DOCUMENTS) -> Path:
    """The folder of a small text task, written anew."""
    text_task(tmp / "tasks", documents)
    return tmp / "tasks"


def config(tmp: Path, **over: Any) -> RunConfig:
    """A run of the baseline that ends well."""
    if not (tmp / "tasks").exists():
        tasks(tmp)
    values = {
        "model": "baseline",
        "tasks": NAME,
        "include_path": str(tmp / "tasks"),
        "output_path": str(tmp / "out"),
        "timezone": "UTC",
        **over,
    }
    return build_config({key: value for key, value in values.items() if value is not None})


def samples(path: Path, scores: Sequence[float | None], **changes: Any) -> Path:
    """Write the samples file of an earlier run of the text task."""
    rows = (
        {"doc_id": doc_id, "filter": "none", "filtered_resps": [""], "exact_match": score, **changes}
        for doc_id, score in enumerate(scores)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def right(request: Request) -> Response:
    return Response(request.id, text=request.context.partition("ANSWER=")[2])


def fails_on(*doc_ids: int) -> Callable[[Request], Response]:
    """Right answers but for these documents, whose requests are given up."""

    def answer(request: Request) -> Response:
        return Response.failure(request.id, "timeout", "no answer") if request.doc_id in doc_ids else right(request)

    return answer


class Told(Model):
    """Answers as told; its identity is its name, so that a later object of the same name goes on."""

    kinds: frozenset[RequestKind] = frozenset({"generate_until"})

    def __init__(self, answer: Callable[[Request], Response] = right, name: str = "told") -> None:
        self.answer, self.name = answer, name
        self.asked: list[int] = []
        self.closed = False

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(1):
            self.asked.append(requests[0].doc_id)
            yield self.answer(requests[0])

    def identity(self) -> dict[str, Any]:
        return {"name": self.name} if self.name else {}

    def close(self) -> None:
        self.closed = True


def inputs_of(chosen: RunConfig, given: Model | lmms | None = None, place: Place | None = None) -> Collected:
    """What a run collects; model and judge are closed already."""
    with ExitStack() as opened:
        return collect(chosen, opened, given, place)


def run_folders(out: Path) -> list[Path]:
    return sorted(path.parent for path in out.rglob("run.json"))
