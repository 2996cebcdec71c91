"""Running a checkpoint with its own ``chat``: batches, seeds, stop strings and failures."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, field, structs

from lmms_eval.api.generation import TakenOptions
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response, ResponseError, Usage
from lmms_eval.models.chat_form.form import ChatForm, ChatPrompt
from lmms_eval.models.hf.answering import GeneratedEnding, find_ending, seeded
from lmms_eval.models.hf.batching import HalvingRunner, RefusedError, Shape, pick_batch, timed_responses
from lmms_eval.models.hf.model import free_memory
from lmms_eval.models.hf.settings import GenerationSettings, option_names, options_taken, read_settings
from lmms_eval.models.thoughts import ReadingRules, TagTokens

PROMPT_END_TOKENS = 32
"""The number of last tokens of a prompt that are checked for an opening tag of thoughts."""


class GenerationRecord(Struct):
    """A record of the last generation."""

    prompt_ends: list[list[int]] = field(default_factory=list)
    """The last token ids of each prompt; empty if ``generate`` got none."""
    _output: Any = None
    _arguments: dict[str, Any] = field(default_factory=dict)
    _end_ids: frozenset[int] = frozenset()
    _depth: int = 0

    def rows(self, count: int, max_new_tokens: int) -> list[GeneratedEnding | None]:
        """Return ``count`` answers of the generation, or ``None`` for each if their number is another one."""
        rows = [] if self._output is None else self._output.tolist()
        if len(rows) != count:
            return [None] * count
        given = self._arguments.get("input_ids")
        start = 0 if given is None or self._arguments.get("inputs_embeds") is not None else int(given.shape[1])
        endings = [find_ending(row[start:], self._end_ids, None) for row in rows]
        return [structs.replace(one, ended=one.ended or one.generated < max_new_tokens) for one in endings]

    def call(self, module: Any, generate: Callable[..., Any], *values: Any, **arguments: Any) -> Any:
        """Call ``generate``. Of nested calls, the innermost has the answer's tokens, and the outermost the prompt."""
        if self._depth == 0:
            self._output, self.prompt_ends = None, []
        if not self.prompt_ends:
            given = arguments.get("input_ids")
            rows = [] if given is None else [row for row in given if getattr(row, "ndim", 0) == 1]
            self.prompt_ends = [row[-PROMPT_END_TOKENS:].tolist() for row in rows]
        self._depth += 1
        try:
            result = generate(*values, **arguments)
        finally:
            self._depth -= 1
        sequences = getattr(result, "sequences", result)
        if self._output is None and getattr(sequences, "ndim", 0) == 2:
            self._output, self._arguments = sequences, arguments
            self._end_ids = _end_ids(module, arguments)
        return result


def _end_ids(module: Any, arguments: dict[str, Any]) -> frozenset[int]:
    """Return the end tokens of a generation, from its arguments or its configuration."""
    own = (arguments.get("generation_config"), getattr(module, "generation_config", None))
    stated = (arguments.get("eos_token_id"), *(getattr(config, "eos_token_id", None) for config in own))
    ends: Any = next((value for value in stated if value is not None), [])
    return frozenset(ends if isinstance(ends, Sequence) else [int(ends)])


@contextmanager
def watched(model: Any) -> Iterator[GenerationRecord]:
    """Record calls of ``generate`` of a model and its parts, if they have that method."""
    watch, before = GenerationRecord(), {}
    parts = [model, *(model.children() if callable(getattr(model, "children", None)) else ())]
    for part in parts:
        generate = getattr(part, "generate", None)
        if callable(generate):
            before[part] = vars(part).get("generate")
            part.generate = functools.partial(watch.call, part, generate)
    try:
        yield watch
    finally:
        for part, own in before.items():
            if own is None:
                del part.generate
            else:
                part.generate = own


class ChatJob(Struct, frozen=True, eq=False):
    """A rendered request with its settings."""

    request: Request
    prompt: ChatPrompt
    settings: GenerationSettings
    group: Hashable | None

    @property
    def key(self) -> tuple[Any, ...]:
        """Only jobs with equal keys share a batch. A sampled answer is generated alone, from its own seed."""
        alone = self.group is None or self.settings.sampled
        return (self.settings.key, self.request.id if alone else "", self.group)


class CheckpointModel(Model):
    """A loaded checkpoint as a model, with up to ``rows`` requests in a batch if its ``chat`` has batches."""

    def __init__(self, form: ChatForm, rows: int = 1) -> None:
        self.form = form
        self.concurrency = self._rows = rows
        self._tags = TagTokens(form.tokenizer)
        self._generation_names = option_names()
        self._ignored: set[str] = set()
        self._runner: HalvingRunner[ChatJob, Response] = HalvingRunner(self._answer, lambda: free_memory(self.device))

    @property
    def device(self) -> Any:
        """The device of the inputs (``torch.device``)."""
        import torch

        return getattr(self.form.model, "device", None) or torch.device("cpu")

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        """Answer requests in batches of those that are ready, without waiting for more than one."""
        while True:
            requests = stream.take_full(self.concurrency)
            if requests is None:
                return
            requests = requests or stream.take(self.concurrency)
            if not requests:
                return
            waiting: list[ChatJob] = []
            for request in requests:
                job = self._job(request)
                if isinstance(job, Response):
                    yield job
                else:
                    waiting.append(job)
            yield from self._run(waiting)

    def read_settings(self, request: Request) -> GenerationSettings:
        """Return the generation options of a request. Raises ``ValueError`` or ``TypeError`` for wrong ones."""
        settings = read_settings(request.generation, self._generation_names)
        self._ignored.update(settings.ignored)
        return settings

    def generation_options(self) -> TakenOptions:
        """Return the options of ``generate`` that the checkpoint's ``chat`` supports."""
        names = [name for name in self._generation_names if self.form.takes_option(name)]
        return structs.replace(options_taken(names), needs_length="the checkpoint's chat needs a number of tokens")

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        """Return the options of ``generate``."""
        return {"options": self.read_settings(request).as_sent()}

    def describe(self) -> Mapping[str, Any]:
        """Return the ignored options of tasks."""
        return {"ignored_generation_options": sorted(self._ignored)}

    def _run(self, waiting: list[ChatJob]) -> Iterator[Response]:
        while waiting:
            shape: Shape[ChatJob] = Shape(lambda job: job.key, lambda _: 1.0, self._rows)
            batch = pick_batch(waiting, shape)
            waiting = [job for job in waiting if not any(job is chosen for chosen in batch)]
            yield from timed_responses(self._runner, batch, self._shrink)

    def _job(self, request: Request) -> ChatJob | Response:
        prompt = request.payload
        if isinstance(prompt, ResponseError):
            return Response.failure(request.id, prompt.kind, prompt.message)
        if not isinstance(prompt, ChatPrompt):
            raise TypeError(f"request {request.id} was not prepared by this model")
        try:
            settings = self.read_settings(request)
        except (TypeError, ValueError) as error:
            return Response.failure(request.id, "bad_request", f"generation options: {error}")
        return ChatJob(request, prompt, settings, self.form.group(prompt))

    def _answer(self, jobs: Sequence[ChatJob]) -> list[Response]:
        settings, prompts = jobs[0].settings, [job.prompt for job in jobs]
        with watched(self.form.model) as watch:
            if settings.sampled:
                with seeded(jobs[0].request.seed if settings.seed is None else settings.seed, self.device):
                    answers = self.form.ask(prompts, settings.arguments)
            else:
                answers = self.form.ask(prompts, settings.arguments)
        rows = watch.rows(len(jobs), settings.arguments["max_new_tokens"])
        shared = tuple(job.request.id for job in jobs) if len(jobs) > 1 else ()
        known = [self.form.tokenizer.decode(ids, skip_special_tokens=False) for ids in watch.prompt_ends[: len(jobs)]]
        ends = [*known, *[""] * (len(jobs) - len(known))]
        return [
            structs.replace(self._response(job, text, row, end), batch=shared)
            for job, text, row, end in zip(jobs, answers, rows, ends, strict=True)
        ]

    def _response(self, job: ChatJob, text: Any, row: GeneratedEnding | None, prompt_end: str) -> Response:
        """Read an answer, with its tokens in ``row`` if they are known."""
        if not isinstance(text, str):
            raise RefusedError(f"chat gave a {type(text).__name__}, not a text", "malformed")
        reading = ReadingRules.of(job.request, prompt_end, job.settings.until)
        if row is not None and self._tags.has_tags(row.ids, reading.pairs):
            written = self._tags.read(row.ids, reading, skip_special_tokens=True)  # ``chat`` has left out the tags
        else:
            written = reading.read(text)
        tokens = None if row is None else row.generated
        reasoning = self._tags.count(written, tokens)
        known = None if row is None else "stop" if row.ended else "length"
        return Response(
            job.request.id,
            text=written.text,
            finish_reason="stop" if written.ended_by else known,
            usage=None if tokens is None and reasoning is None else Usage(None, tokens, reasoning),
            thoughts=written.thoughts,
            stops=reading.until,
            ended_by=written.ended_by,
        )

    def _shrink(self, batch: Sequence[ChatJob]) -> None:
        """Limit later batches to half the size of one that did not fit."""
        self._rows = min(self._rows, max(1, len(batch) // 2))

    def close(self) -> None:
        """Free the weights."""
        device = self.device
        del self.form, self._runner
        free_memory(device)
