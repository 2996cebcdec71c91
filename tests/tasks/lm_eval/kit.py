"""Tasks in a folder whose files follow the rules of lm-eval's task files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.tasks.lm_eval.task import LmEvalTask
from lmms_eval.tasks.yaml.included import include
from tests.tasks.kit import make_task

ROWS = [
    {"q": "sky", "a": "blue", "options": ["red", "blue"], "label": 1},
    {"q": "grass", "a": "green", "options": ["green", "blue"], "label": 0},
    {"q": "snow", "a": "white", "options": ["black", "white"], "label": 1},
    {"q": "coal", "a": "black", "options": ["black", "white"], "label": 0},
]
GENERATED = {"doc_to_text": "{{q}}?", "doc_to_target": "a", "metric_list": [{"metric": "exact_match"}]}
CHOSEN = {
    "output_type": "multiple_choice", "doc_to_text": "{{q}}?", "doc_to_choice": "options", "doc_to_target": "label",
    "metric_list": None,
}  # fmt: skip


def pack_task(
    folder: Path, changes: Mapping[str, Any] | None = None, code: str = "", options: TaskOptions | None = None,
    rows: Sequence[Mapping[str, Any]] = ROWS,
) -> LmEvalTask:  # fmt: skip
    """A task of a pack, not yet loaded; ``None`` in ``changes`` takes a key out."""
    root = folder / "lm_eval" / "tasks"
    root.mkdir(parents=True, exist_ok=True)
    include(root, is_deep=False, package="lm_eval")
    task = make_task(root, {**GENERATED, **(changes or {})}, code, options, rows)
    assert isinstance(task, LmEvalTask)
    return task


def opened(folder: Path, *args: Any, **kwargs: Any) -> LmEvalTask:
    task = pack_task(folder, *args, **kwargs)
    task.load()
    return task


def asked(task: LmEvalTask, doc_id: int = 0) -> list[Request]:
    return list(task.exchange(doc_id, 0).open())


def turns(request: Request) -> list[tuple[str, str]]:
    """Role and text of each message."""
    return [
        (message.role, "".join(part.text for part in message.content if part.type == "text"))
        for message in request.build_messages().messages
    ]


def values(task: LmEvalTask, doc_id: int, *answers: Any) -> Mapping[str, Any]:
    """The metrics of the first filter, for one answer for each repeat."""
    scored = task.score(doc_id, [Answer(answer) for answer in answers])
    assert scored.scores[0].status == "scored", scored.scores[0].reason
    return scored.scores[0].metrics


def likelihoods(*values: float, greedy: int | None = None) -> list[list[Any]]:
    """An answer to requests for likelihoods: losses, as the engine hands them over."""
    return [[-value, number == greedy] for number, value in enumerate(values)]


def text_response(request: Request, text: str) -> Response:
    return Response(request.id, text=text)
