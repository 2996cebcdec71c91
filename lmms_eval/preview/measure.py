"""Requests of one document, measured without asking anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_eval.api.media_form import MediaForm
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer, Task
from lmms_eval.engine.failures import failure
from lmms_eval.preview.media import MediaSizes
from lmms_eval.preview.rulers import Ruler

REPLAYED = ("generate_until_multi_round", "generate_visual_cot")
"""Output types whose later rounds are made of empty answers here."""
OPEN_ENDED = (*REPLAYED, "generate_until_agentic")
MAX_ROUNDS = 64
_LIMITS = ("max_new_tokens", "max_gen_toks", "max_tokens")


@dataclass(frozen=True, slots=True)
class Lens:
    """The way in which documents are looked at."""

    ruler: Ruler
    form: MediaForm
    max_tokens: int | None = None
    """Tokens that the model takes at most, the answer included."""
    opens_media: bool = True
    judges: bool = False
    """Questions to a judge are counted."""


@dataclass(slots=True)
class RequestSize:
    """Size of one request."""

    id: str
    length: int
    """Of its text, in units of the ruler."""
    text_bytes: int
    new_tokens: int
    """Tokens of the answer at most."""
    media: MediaSizes


@dataclass(slots=True)
class DocumentSize:
    """Everything that is asked about one document, one repeat of it."""

    doc_id: int
    requests: list[RequestSize] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Reasons for which it cannot be asked as it is."""
    judge_questions: int = 0


def measure(task: Task, doc_id: int, lens: Lens) -> DocumentSize:
    """Build the requests of a document and measure them; what its task or its media raise is a fault."""
    found = DocumentSize(doc_id)
    try:
        requests = requests_of(task, doc_id)
    except Exception as error:  # noqa: BLE001 - the task's own functions may raise anything: one faulty document
        found.faults.append(failure("building the request", error))
        return found
    if not requests:
        found.faults.append("it has no choices" if task.output_type == "multiple_choice" else "it asks nothing")
    known: dict[tuple[int, str, str], RequestSize] = {}
    for request in requests:
        key = (request.round, request.kind, request.context)
        if key not in known:
            known[key] = _prompt_size(request, lens, found)
        found.requests.append(_with_continuation(known[key], request, lens, found))
    if lens.judges and task.is_judged:
        found.judge_questions = _judge_questions(task, doc_id)
    return found


def requests_of(task: Task, doc_id: int) -> list[Request]:
    """Build the requests of a document's first repeat; those of later rounds as if every answer were empty.

    Raises whatever the task's own functions raise in the first round.
    """
    exchange = task.exchange(doc_id, 0)
    batch = list(exchange.open())
    requests = list(batch)
    while task.output_type in REPLAYED and batch and len(requests) < MAX_ROUNDS:
        try:
            batch = list(exchange.advance([Response(request.id, text="") for request in batch]))
        except Exception:  # noqa: BLE001 - a task need not make anything of an empty answer
            break
        requests += batch
    return requests


def _prompt_size(request: Request, lens: Lens, found: DocumentSize) -> RequestSize:
    media, text = MediaSizes(), request.context
    if lens.opens_media:
        try:
            messages = request.build_messages()
            text = messages.text()
            for message in messages.messages:
                for part in message.content:
                    media.add(part, lens.form)
        except Exception as error:  # noqa: BLE001 - as above
            found.faults.append(failure("rendering the request", error))
    return RequestSize(request.id, lens.ruler.length(text), _utf8(text), new_tokens(request.generation, lens), media)


def _with_continuation(size: RequestSize, request: Request, lens: Lens, found: DocumentSize) -> RequestSize:
    more = request.continuation
    if more is not None:
        if not more.strip():
            named = f"choice {request.index}" if request.task.output_type == "multiple_choice" else "the continuation"
            found.faults.append(f"{named} is empty")
        length = size.length + lens.ruler.length(more)
        size = replace(size, id=request.id, length=length, text_bytes=size.text_bytes + _utf8(more), new_tokens=0)
    tokens = lens.ruler.tokens(size.length) + size.new_tokens
    if lens.max_tokens is not None and tokens > lens.max_tokens:
        about = "" if lens.ruler.is_exact else "about "
        found.faults.append(
            f"its text is too long: {about}{tokens - size.new_tokens} tokens and {size.new_tokens} for the answer, "
            f"where the model takes {lens.max_tokens}"
        )
    return size


def new_tokens(generation: Mapping[str, Any], lens: Lens) -> int:
    """Read the most tokens that an answer may have."""
    given = next((generation[name] for name in _LIMITS if generation.get(name)), lens.form.max_new_tokens)
    return int(given) if isinstance(given, int | float) else lens.form.max_new_tokens


def _judge_questions(task: Task, doc_id: int) -> int:
    """Count the questions about empty answers; one where the task makes nothing of these."""
    empty: Sequence[Answer] = tuple(Answer("") for _ in range(task.repeats))
    try:
        return max(1, len(task.judge_questions(doc_id, empty)))
    except NotEvaluated:
        return 0
    except Exception:  # noqa: BLE001 - as above
        return 1


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
