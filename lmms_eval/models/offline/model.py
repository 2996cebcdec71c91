"""Models over an engine in this process, or over the engine's own server."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import copy
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import aclosing, contextmanager
from time import perf_counter
from typing import Any, ClassVar, Self, TypeVar, cast

from msgspec import Struct, structs

from lmms_eval.api.generation import PIXEL_LIMITS, TEMPLATE_OPTIONS, VIDEO_LIMITS, MediaForm, TakenOptions
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import ErrorKind, Request, RequestKind, Response, Usage
from lmms_eval.errors import EngineDiedError, ModelError
from lmms_eval.models.argument_names import IGNORED, limits_as_arguments
from lmms_eval.models.chat_template import NO_TEMPLATE, template_digest
from lmms_eval.models.hf.batching import RefusedError
from lmms_eval.models.offline.prompts import EnginePrompt, PromptRenderer
from lmms_eval.models.offline.settings import EngineSettings, decoded, read_settings
from lmms_eval.models.remote.arguments import MEDIA_ARGUMENTS, first_names
from lmms_eval.models.remote.errors import shorten
from lmms_eval.models.remote.generation import Wanted, read_generation, taken_options
from lmms_eval.models.remote.model import import_sdk
from lmms_eval.models.remote.reply import Reply
from lmms_eval.models.thoughts import ReadingRules, TagTokens, Written
from lmms_eval.models.windows import summed
from lmms_eval.processes import descendants
from lmms_eval.utils.launch import VISIBLE, own_gpus, visible_gpus, without_launcher

T = TypeVar("T")
ABORT_S = 5.0
"""The limit of the wait for the end of a cancelled call."""
SERVER_EXTRAS = ("mm_processor_kwargs", "chat_template_kwargs")
"""Fields that the engines' servers accept in addition to the protocol."""
OF_FRAMES = ("use_audio_in_video", "frame_rule", "min_frames")
"""Arguments for videos that this package opens."""
ENGINE_ONLY = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "gpu_memory_utilization", "max_model_len",
    "chat_template", "trust_remote_code", "start_timeout",
)  # fmt: skip
START_ERRORS = (TypeError, ValueError, RuntimeError, OSError, ImportError, AssertionError)
REQUEST_ERRORS = (ValueError, TypeError, RuntimeError, LookupError, AssertionError)
"""Built-in exceptions that engines raise for one request; their own classes are in ``Engine.refusals``."""


class ProcessKiller:
    """A shell that waits until this process has ended, and then kills the given processes."""

    def __init__(self, processes: list[int]) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        if processes:
            killing = f"read _; kill -9 {' '.join(map(str, processes))}"
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", killing],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # protects it from signals to the terminal's processes
            )

    @classmethod
    def of_new_processes(cls, before: list[int]) -> ProcessKiller:
        """Guard the descendants of this process that are not among ``before``."""
        return cls([pid for pid in descendants(os.getpid()) if pid not in before])

    def close(self) -> None:
        """End the guard, and leave the processes alone."""
        if self._shell is not None:
            self._shell.kill()
            self._shell.wait()
            assert self._shell.stdin is not None
            self._shell.stdin.close()
            self._shell = None


class EngineLoop:
    """The event loop of an engine for its whole life.

    Engines bind their tasks and sockets to the loop that calls them first, but every stream of requests (a
    run, its check of batches, the next run) has its own loop.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._thread.start()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a call to its end. If the caller is cancelled, the call is cancelled and its end is awaited."""
        caller = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = caller.create_future()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(ended)

        def ended(task: asyncio.Task[T]) -> None:
            with contextlib.suppress(RuntimeError):  # the caller's loop is closed
                caller.call_soon_threadsafe(_pass_on, task, outcome)

        self._loop.call_soon_threadsafe(begin)
        try:
            return await asyncio.shield(outcome)
        except asyncio.CancelledError:
            self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            await asyncio.wait([outcome], timeout=ABORT_S)
            if outcome.done() and not outcome.cancelled():
                outcome.exception()  # marks it as retrieved
            raise

    def close(self, last: Callable[[], None]) -> None:
        """Call ``last`` in the loop, then end the loop and all that runs in it."""

        async def end() -> None:
            last()

        def stop() -> None:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.call_soon(self._loop.stop)

        try:
            asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(stop)
            self._thread.join(ABORT_S)
            if not self._thread.is_alive():
                self._loop.close()


def _pass_on(task: asyncio.Task[T], outcome: asyncio.Future[T]) -> None:
    if outcome.done():
        return
    if task.cancelled():
        outcome.cancel()
    elif (error := task.exception()) is not None:
        outcome.set_exception(error)
    else:
        outcome.set_result(task.result())


class EngineJob(Struct, frozen=True):
    """A prepared request, the input of ``Engine.generate``."""

    prompt: EnginePrompt
    wanted: Wanted
    reading: ReadingRules
    shows_special_tokens: bool = False
    """Special tokens are requested to make tags of thoughts visible, and are removed from the answer."""

    def without_stops(self) -> EngineJob:
        """Return the same request without stop strings."""
        return structs.replace(self, wanted=structs.replace(self.wanted, stops=()))


class Engine(abc.ABC):
    """The adapter to one engine package."""

    name: str
    decodes_videos: bool = False
    options: ClassVar[Mapping[str, str]]
    """The engine's names of generation options, by family name."""
    parameters: frozenset[str] = frozenset()
    """Options that the installed version takes under its own names."""
    refusals: tuple[type[Exception], ...] = REQUEST_ERRORS
    """Exceptions that concern one request; all others end the run."""
    deaths: tuple[type[Exception], ...] = ()
    """Exceptions for every request once the engine has died. They take precedence over ``refusals``."""

    def __init__(self, settings: EngineSettings) -> None:
        """Load the model. Raises ``ModelError``."""
        self.package = import_sdk(self.name, self.name, self.name)
        try:
            self._engine = self.start(settings)
        except START_ERRORS as error:
            raise ModelError(f"{self.name} cannot start {settings.model}: {type(error).__name__}: {error}") from error

    @abc.abstractmethod
    def start(self, settings: EngineSettings) -> Any:
        """Return the package's engine with the model."""

    @property
    def names(self) -> dict[str, str]:
        """All names of options that the engine takes, with its own names."""
        return {**{name: name for name in self.parameters}, **self.options}

    @abc.abstractmethod
    def sent_options(self, wanted: Wanted) -> dict[str, Any]:
        """Return the options of a request in the form for the engine."""

    @abc.abstractmethod
    async def generate(self, job: EngineJob, request_id: str) -> Reply:
        """Generate one whole answer."""

    @abc.abstractmethod
    async def score(self, prompt: EnginePrompt, request_id: str) -> Reply:
        """Return the likelihood of the prompt's continuation."""

    def context_length(self) -> int | None:
        """Return the most tokens of prompt and answer; ``None`` if the engine does not state it."""
        return None

    def describe(self) -> Mapping[str, Any]:
        """Return the package's version."""
        return {"engine": self.name, "version": str(getattr(self.package, "__version__", "unknown"))}

    def close(self) -> None:
        """End the engine's processes."""
        self._engine.shutdown()


class OfflineModel(Model):
    """Keeps up to ``num_concurrent`` requests in an engine of this process, which forms the batches.

    With the argument ``base_url``, the object is one of the back end ``openai`` instead, for the engine's own server.

    Raises:
        ModelError: the package is not installed, or an argument is wrong.
    """

    kinds: frozenset[RequestKind] = frozenset({"generate_until", "loglikelihood", "loglikelihood_rolling"})
    ignored_arguments = IGNORED
    engine: type[Engine]
    arguments_kind = EngineSettings

    def __new__(cls, **arguments: Any) -> Self:
        given = first_names(arguments, cls.arguments_kind.same)
        return cast("Self", _server(given, cls.engine.name)) if given.get("base_url") else super().__new__(cls)

    def __init__(self, **arguments: Any) -> None:
        kind = self.engine
        settings = self._settings = read_settings(first_names(arguments, self.arguments_kind.same), kind.name)
        if kind.decodes_videos and (stated := [name for name in OF_FRAMES if getattr(settings, name)]):
            names = ", ".join(stated)
            raise ModelError(f"the back end {kind.name} opens videos itself: leave {names} out, or use vllm")
        self.concurrency = settings.num_concurrent
        before = descendants(os.getpid())
        with _own_place(settings, kind.name):
            self._engine = kind(settings)
        self._guard = ProcessKiller.of_new_processes(before)
        self._loop = EngineLoop()
        self._builder = PromptRenderer(settings, kind.decodes_videos)
        self._tags = TagTokens(copy.deepcopy(self._builder.tokenizer))  # prompts are encoded in other threads
        self._has_thought = False
        self._ignored: set[str] = set()

    @classmethod
    def media_form(cls, model_args: Mapping[str, Any]) -> MediaForm:
        settings = read_settings(first_names(model_args, cls.arguments_kind.same), cls.__name__.lower())
        return MediaForm(settings.frames.count, settings.frames.fps, max_new_tokens=settings.max_new_tokens)

    @property
    def media_limits(self) -> frozenset[str]:
        """Those of pictures, and those of frames unless the engine reads videos itself."""
        return PIXEL_LIMITS if self.engine.decodes_videos else PIXEL_LIMITS | VIDEO_LIMITS

    def prepare(self, request: Request) -> Request:
        """Render the prompt and decode its media. The payload is an ``EngineJob``, an ``EnginePrompt``
        or the reason of a failure.

        Raises:
            MediaError: a picture, video or sound cannot be read.
        """
        if request.kind == "loglikelihood_rolling":
            return self._in_windows(request)
        scored = request if request.is_likelihood else None
        messages = request.build_messages()
        try:
            prompt = self._builder.limited(request.media).build(messages, scored, request.generation)
        except RefusedError as error:
            return request.with_payload(error, 0)
        if scored is not None:
            return request.with_payload(prompt, prompt.nbytes)
        wanted = self._wanted(request)
        reading = ReadingRules.of(request, prompt.ending, wanted.stops)
        shown = bool(self._tags.of(reading.pairs)) and bool(wanted.others.get("skip_special_tokens", True))
        if shown:
            wanted = structs.replace(wanted, others={**wanted.others, "skip_special_tokens": False})
        return request.with_payload(EngineJob(prompt, wanted, reading, shown), prompt.nbytes)

    def _in_windows(self, request: Request) -> Request:
        """Set the payload to the prompts of the windows over a text.

        An engine takes a window whole, and generates one token after it. So its input is two tokens shorter than the
        engine's context.
        """
        stated = self._engine.context_length() or self._settings.max_model_len
        try:
            prompts = self._builder.build_windows(request.continuation or "", stated)
        except RefusedError as error:
            return request.with_payload(error, 0)
        return request.with_payload(prompts, sum(prompt.nbytes for prompt in prompts))

    def _wanted(self, request: Request) -> Wanted:
        generation = request.generation_after(has_template=not self._builder.is_plain)
        return read_generation(generation, request.seed, self._settings.max_new_tokens, pin_seed=True)

    def generation_options(self) -> TakenOptions:
        """Return the engine's own options and the variables of the chat template."""
        taken = taken_options({*self._engine.names, *self._builder.variables, TEMPLATE_OPTIONS})
        return structs.replace(taken, variables=self._builder.variables)

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        """Return the options for the engine, the chat template with variables, the system prompt and media options."""
        options = {} if request.is_likelihood else self._engine.sent_options(self._wanted(request))
        if request.generation.get("seed") is None:
            options = {name: value for name, value in options.items() if name not in ("seed", "sampling_seed")}
        settings = self._settings
        form = {name: getattr(settings, name, None) for name in (*MEDIA_ARGUMENTS, "mm_processor_kwargs")}
        if request.media is not None:
            form |= limits_as_arguments(request.media, most_frames="max_frames_num", rate="video_fps")
        return {
            "options": options,
            "chat_template": template_digest(self._builder.template_text),
            TEMPLATE_OPTIONS: self._builder.read_variables(request.generation),
            "system_prompt": self._builder.system_prompt,
            "media": {name: value for name, value in form.items() if value not in (None, False, {})},
        }

    async def respond(self, stream: RequestStream) -> AsyncIterator[Response]:
        """Answer requests as they arrive. A request that the engine refuses is a failed response."""
        from lmms_eval.models.remote.arguments import RemoteArguments
        from lmms_eval.models.remote.asking import Dispatcher, Gate

        gate = Gate(RemoteArguments(model=self._settings.model, num_concurrent=self.concurrency))
        async with aclosing(Dispatcher(gate, self._ask).run(stream)) as responses:
            async for response in responses:
                yield response

    async def _ask(self, request: Request) -> Response:
        started = perf_counter()
        payload: EngineJob | EnginePrompt | list[EnginePrompt] | RefusedError = request.payload
        if isinstance(payload, RefusedError):
            return Response.failure(request.id, "bad_request", str(payload))
        try:
            if isinstance(payload, EnginePrompt):
                response = await self._scored(payload, request.id)
            elif isinstance(payload, list):
                windows = [self._scored(prompt, f"{request.id}/{number}") for number, prompt in enumerate(payload)]
                response = summed(request.id, await asyncio.gather(*windows))
            else:
                own = (TEMPLATE_OPTIONS, *self._builder.variables)
                self._ignored.update(payload.wanted.pick(self._engine.names, own)[1])
                response = await self._generated(request, payload)
        except self._engine.deaths as error:
            raise EngineDiedError(
                f"{self._engine.name} died: {_reason(error)}; its answers are kept: fix the cause (see its messages "
                "above) and start the same command again"
            ) from error
        except self._engine.refusals as error:
            return Response.failure(request.id, _kind(error), f"{self._engine.name}: {_reason(error)}")
        return structs.replace(response, latency=perf_counter() - started)

    async def _scored(self, prompt: EnginePrompt, request_id: str) -> Response:
        scored = await self._loop.call(self._engine.score(prompt, request_id))
        value, is_greedy = scored.likelihood or (None, None)
        return Response(request_id, loglikelihood=value, is_greedy=is_greedy, usage=scored.usage)

    async def _generated(self, request: Request, job: EngineJob) -> Response:
        """Answer a request, up to the end or a stop string after the thoughts.

        An engine applies stop strings to the thoughts too. So it gets no stop strings if the model is about to think.
        If it stopped a model in or right after its thoughts, the request is repeated without stop strings.
        """
        # Earlier answers do not count for plain texts, as their completions may be anything.
        stops_here = job.reading.is_opened or (self._has_thought and not self._builder.is_plain)
        asked = job.without_stops() if stops_here else job
        answer = await self._loop.call(self._engine.generate(asked, request.id))
        written = self._read(answer, job)
        if written.reasoning and not stops_here:
            self._has_thought = True
            if job.wanted.stops and answer.finish_reason == "stop" and not written.answer.strip():
                answer = await self._loop.call(self._engine.generate(job.without_stops(), f"{request.id}/again"))
                written = self._read(answer, job)
        ended_by = (written.ended_by or answer.ended_by or "") if job.wanted.stops else None
        counts = (None, None) if answer.usage is None else (answer.usage.input_tokens, answer.usage.output_tokens)
        return Response(
            request.id,
            text=written.text,
            finish_reason="stop" if written.ended_by else answer.finish_reason,
            usage=Usage(*counts, self._tags.count(written, counts[1])),
            thoughts=written.thoughts,
            stops=job.reading.until,
            ended_by=ended_by,
            sight=job.prompt.sight(counts[0]),
        )

    def _read(self, answer: Reply, job: EngineJob) -> Written:
        if job.shows_special_tokens:
            return self._tags.read_text(answer.text, job.reading)
        return job.reading.read(answer.text)

    def identity(self) -> Mapping[str, Any]:
        """Return the model, the prompt and all arguments except those that only affect the run."""
        run_only = {"num_concurrent", "batch_size", "max_batch_size", "device", "start_timeout"}
        return {**self._settings.model_dump(exclude=run_only), "system_prompt": self._builder.system_prompt}

    def describe(self) -> Mapping[str, Any]:
        """Return the engine, its version, and the ignored options of tasks."""
        return {**self._engine.describe(), "ignored_generation_options": sorted(self._ignored)}

    def close(self) -> None:
        """End the engine."""
        self._loop.close(self._engine.close)
        self._guard.close()


def _server(given: Mapping[str, Any], name: str) -> Model:
    from lmms_eval.models.openai.model import OpenAI

    misplaced = [
        name for name in ENGINE_ONLY if name in given and (name, given[name]) != ("chat_template", NO_TEMPLATE)
    ]
    if misplaced:
        raise ModelError(f"{', '.join(misplaced)}: with base_url, give these to the command that starts {name}")
    extra = {argument: decoded(given[argument]) for argument in SERVER_EXTRAS if argument in given}
    rest = {argument: value for argument, value in given.items() if argument not in SERVER_EXTRAS}
    if rest.get("chat_template") == NO_TEMPLATE:
        del rest["chat_template"]
        rest["api"] = "completions"
    rest["extra_body"] = {**extra, **(decoded(given.get("extra_body")) or {})}
    server = OpenAI(**rest)
    server.kinds = server.kinds - {"generate_visual_cot"}  # engines only answer with texts
    return server


@contextmanager
def _own_place(settings: EngineSettings, name: str) -> Iterator[None]:
    """Give an engine that starts in a launch of several processes only this process's GPUs, and hide the launch.

    Raises:
        ModelError: the machine has too few GPUs for all processes.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) == 1:
        yield
        return
    import torch

    gpus = visible_gpus(os.environ, torch.cuda.device_count)
    own = own_gpus(os.environ, gpus, settings.devices, name)
    with without_launcher(os.environ, {VISIBLE: ",".join(own)} if own else {}):
        yield


def _with_message(error: BaseException) -> BaseException:
    """Return the error, or if it has no message, the first of its causes that has one."""
    while not str(error) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _reason(error: BaseException) -> str:
    found = _with_message(error)
    return shorten(str(found)) or type(found).__name__


def _kind(error: BaseException) -> ErrorKind:
    found = _with_message(error)
    if "out of memory" in str(found).lower():
        return "out_of_memory"
    return "internal" if isinstance(found, RuntimeError | AssertionError) else "bad_request"
