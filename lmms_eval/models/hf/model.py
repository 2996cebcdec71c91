"""``hf``: the wrapper for all image-text-to-text models of transformers. See ``docs/models/hf.md``."""

from __future__ import annotations

import gc
import hashlib
import inspect
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from loguru import logger
from msgspec import Struct, field, structs

from lmms_eval.api.generation import PIXEL_LIMITS, TEMPLATE_OPTIONS, VIDEO_LIMITS, MediaForm, TakenOptions
from lmms_eval.api.messages import ChatImageContent, ChatMessage, ChatMessages, ChatTextContent
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.models.argument_names import IGNORED_LOCALLY, limits_as_arguments
from lmms_eval.models.chat_template import template_digest
from lmms_eval.models.hf.answering import Answerer
from lmms_eval.models.hf.batching import RECOVERABLE, HalvingRunner, RefusedError, RowLimit, Shape, timed_responses
from lmms_eval.models.hf.encode import Encoder, Lookahead, Window, to_device
from lmms_eval.models.hf.inputs import InputBuilder, Prepared, PreparedRequest
from lmms_eval.models.hf.options import GENERAL, VISUAL_OPTIONS, HFOptions, Profile, stamps
from lmms_eval.models.hf.pictures import cache_pictures
from lmms_eval.models.hf.settings import DEFAULT_MAX_NEW_TOKENS, option_names, options_taken, read_settings
from lmms_eval.models.windows import summed

if TYPE_CHECKING:
    from lmms_eval.models.hf.load import Loaded


_SIDE = 64
"""The side of pictures in dry requests, in pixels."""
_LONGEST = 160
"""The maximum length of a reason."""
_WINDOW_BATCHES = 4
"""Batches are selected from the requests of this many batches."""
_WINDOW_BYTES = 256 << 20
_WINDOW = "#window"
"""Separates the id of a request for the likelihood of a text from the number of a window over it."""
_WORKERS = 2
"""The default number of threads that encode batches for a model that is not on the CPU."""
_AUTO_AHEAD = 8
"""The number of prepared requests for ``batch_size=auto``, as a multiple of the first batch."""


DRY_REQUESTS = {"text alone": 0, "a picture": 1, "several pictures": 2}
"""The number of pictures of each trial request."""


def dry_messages(pictures: int) -> ChatMessages:
    """Return a trial request with a text and some pictures."""
    from PIL import Image

    shades = [Image.new("RGB", (_SIDE, _SIDE), (60 * number, 120, 200)) for number in range(pictures)]
    content: list[Any] = [*(ChatImageContent(url=shade) for shade in shades), ChatTextContent(text="What is it?")]
    return ChatMessages(messages=[ChatMessage(role="user", content=content)])


def wants_flat_images(loaded: Loaded, render: Callable[[ChatMessages], Prepared]) -> bool:
    """Return whether the processor takes the pictures of a batch as one list, and rejects a list for each prompt."""
    try:
        prepared = render(dry_messages(1))
    except (RefusedError, *RECOVERABLE):
        return False  # requests will show
    images = list(prepared.images)
    return not _takes(loaded.processor, prepared.text, [images]) and _takes(loaded.processor, prepared.text, images)


def _takes(processor: Any, text: str, images: Sequence[Any]) -> bool:
    try:
        processor(text=[text], images=images, return_tensors="pt", padding=True)
    except RECOVERABLE:
        return False
    return True


def report(model: str, answer: Callable[[ChatMessages], object], asked: Sequence[str]) -> dict[str, str]:
    """Try requests of ``DRY_REQUESTS``, log in one line which ones failed, and return the reasons by name."""
    refused: dict[str, str] = {}
    for name in asked:
        try:
            answer(dry_messages(DRY_REQUESTS[name]))
        except (RefusedError, *RECOVERABLE) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".removeprefix("RefusedError: ").split())
            refused[name] = reason if len(reason) <= _LONGEST else reason[:_LONGEST] + "..."
    if refused:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in refused.items())
        logger.warning("{} cannot answer requests of {}", model, reasons)
    return refused


def checkpoint_identity(pretrained: str, revision: str | None, model: Any) -> dict[str, Any]:
    """Return the facts that identify a checkpoint's files, including its code."""
    folder = Path(pretrained).expanduser()
    if folder.is_dir():
        return {"files": stamps(folder)}
    commit = getattr(getattr(model, "config", None), "_commit_hash", None)
    return {"repository": pretrained, "revision": revision, "commit": commit}


def changes_identity(options: HFOptions) -> dict[str, Any]:
    """Return the facts that identify what the arguments change in a checkpoint: adapter, differences, precision."""
    given = {name: getattr(options, name) for name in ("peft", "delta", "gguf_file", "load_in_4bit", "load_in_8bit")}
    found: dict[str, Any] = {name: value for name, value in given.items() if value}
    for name in ("peft", "delta"):
        if name in found and (folder := Path(found[name]).expanduser()).is_dir():
            found[name] = stamps(folder)
    if options.think_end_token:
        found["think_end_token"] = options.think_end_token
    return found


def memory_share(device: Any) -> float | None:
    """Return the peak share of the device's memory since the start; ``None`` on the CPU."""
    if device.type != "cuda":
        return None
    import torch

    total = int(torch.cuda.get_device_properties(device).total_memory)
    return int(torch.cuda.max_memory_reserved(device)) / total


def peak_memory(device: Any) -> int | None:
    """Return the peak memory in bytes: of the device's allocator, or of the process for models on the CPU."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    if device.type != "cpu" or sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def free_memory(device: Any) -> None:
    """Release memory that is no longer referenced, also on the device."""
    gc.collect()
    if device.type == "cuda":
        import torch

        torch.cuda.empty_cache()


def describe_model(model: Any, device: Any) -> dict[str, Any]:
    """Return the facts about a loaded model for the results."""
    import torch
    import transformers

    return {
        "model_class": type(model).__name__,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "dtype": str(model.dtype).removeprefix("torch."),
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "default_max_new_tokens": DEFAULT_MAX_NEW_TOKENS,
        "peak_memory_bytes": peak_memory(device),
    }


class LocalModel(Model):
    """A model of this process whose arguments are the fields of :class:`HFOptions` and those of its profile."""

    profile: ClassVar[Profile] = GENERAL
    ignored_arguments = IGNORED_LOCALLY
    bounds_at_start: ClassVar[bool] = True
    """Whether pixels are bounded once, when the model is loaded, so that limits of requests must lie within."""
    __signature__: ClassVar[inspect.Signature] = profile.signature(HFOptions)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__signature__ = cls.profile.signature(HFOptions)

    @property
    def media_limits(self) -> frozenset[str]:
        """Those of pictures and frames, as far as the family has them."""
        without = self.profile.without
        pixels = frozenset() if "max_pixels" in without else PIXEL_LIMITS
        return pixels if "max_num_frames" in without else pixels | VIDEO_LIMITS

    @classmethod
    def media_form(cls, model_args: Mapping[str, Any]) -> MediaForm:
        options = HFOptions.from_arguments(model_args, cls.profile)
        return MediaForm(options.max_num_frames, options.fps, max_new_tokens=DEFAULT_MAX_NEW_TOKENS)


class _Text(Struct):
    """A text in windows."""

    windows: int
    started: float
    responses: list[Response] = field(default_factory=list)


class HuggingFace(LocalModel):
    """A local model that answers in batches. Raises ``ModelError`` for a wrong argument, or if loading fails."""

    kinds: frozenset[RequestKind] = frozenset({"generate_until", "loglikelihood", "loglikelihood_rolling"})
    input_builder: ClassVar[type[InputBuilder]] = InputBuilder
    encoder: ClassVar[type[Encoder]] = Encoder

    def __init__(self, **arguments: Any) -> None:
        from lmms_eval.models.hf import processing
        from lmms_eval.models.hf.load import copies, load

        self.options = HFOptions.from_arguments(arguments, self.profile)
        self._refused: Mapping[str, str] = {}
        self._is_auto = str(arguments.get("batch_size")).startswith("auto")
        self.concurrency = self.options.batch_size * (_AUTO_AHEAD if self._is_auto else 1)
        self._processes = processing.begin(self.options, self.profile)
        self.loaded: Loaded = load(self.options, self.profile)
        self._inputs = self.input_builder(self.loaded, self.options, self.profile)
        takes_pictures = "image" in self.profile.media and not self.loaded.absent_parts & {"image_processor"}
        if takes_pictures and wants_flat_images(self.loaded, self._inputs.render):
            self.loaded = structs.replace(self.loaded, flat_images=True)
        self._pictures = cache_pictures(self.loaded.processor, self.options.image_cache_mb << 20)
        workers = self._workers()
        own = processing.in_processes(copies(self.loaded, workers or 1), self._processes)
        self._lookahead = Lookahead([self.encoder(one, self.options) for one in own], threads=workers > 0)
        caches = (self.options.use_cache, self.options.static_cache)
        ending = self.options.think_end_token
        self._answerer = Answerer(self.loaded, self._lookahead.get, self.generate, *caches, think_end_token=ending)
        if not self._answerer.scores_texts:
            self.kinds = self.kinds - {"loglikelihood_rolling"}
        self._texts: dict[str, _Text] = {}
        self._runner: HalvingRunner[PreparedRequest, Response] = HalvingRunner(
            self._answerer.answer, partial(free_memory, self.loaded.device)
        )
        self._rows = RowLimit(self.options.batch_size, self._is_auto)
        self._generation_names = option_names()
        self._ignored: set[str] = set()
        self._max_tokens = float(self.options.max_batch_tokens or "inf")
        is_compiled = self.options.torch_compile or self.options.static_cache
        if self.options.dry_requests and self.profile.chat and not is_compiled:
            asked = ["text alone"]
            if takes_pictures:
                asked += ["a picture", "several pictures"][: self.profile.most_pictures]
            name = f"{self.profile.name}: {self.options.pretrained}"
            self._refused = report(name, self._ask_dry, asked)

    def _workers(self) -> int:
        """Return the number of threads that encode batches ahead.

        On the CPU, a thread takes the interpreter's lock, and cores, from the forward passes.
        """
        if self._processes:
            return len(self._processes)
        if self.options.preprocess_workers is not None:
            return self.options.preprocess_workers
        return 0 if self.loaded.device.type == "cpu" else _WORKERS

    def _ask_dry(self, asked: ChatMessages) -> None:
        """Generate one token. Exceptions of the model and its processor pass through."""
        inputs = self._lookahead.encode_prepared([self._inputs.render(asked)])
        tokens = {"max_new_tokens": 1, "do_sample": False, "pad_token_id": self.loaded.tokenizer.pad_token_id}
        self.generate(**to_device(inputs, self.loaded), **tokens)

    def prepare(self, request: Request) -> Request:
        return self._inputs.prepare(request)

    def generate(self, **arguments: Any) -> Any:
        """Return token ids with the prompt. All generations of this back end call this method."""
        import torch

        with torch.inference_mode():
            return self.loaded.model.generate(**arguments)

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        """Answer requests in batches from a window of several batches. The next ones are encoded during generation."""
        window = Window(self._shape, self._lookahead)
        try:
            while (requests := self._take(stream, window)) or (requests is not None and len(window)):
                for request in requests:
                    jobs = self._jobs(request)
                    if isinstance(jobs, Response):
                        yield jobs
                    else:
                        for job in jobs:
                            window.add(job)
                if batch := window.next_batch():
                    yield from self._run(batch, window)
        finally:
            window.plan_anew()
            self._texts.clear()

    def _take(self, stream: RequestStream, window: Window) -> list[Request] | None:
        """Return the next requests for the window; ``None`` if the stream was stopped.

        The window is filled as long as more requests are being prepared, so batches do not depend on the duration of
        preparation. It only waits for further answers if it is empty, as they may depend on its own requests.
        """
        room = max(0, _WINDOW_BATCHES * self._rows.rows - len(window))
        if not room or window.nbytes > _WINDOW_BYTES:
            return []
        requests = stream.take_full(room)
        if requests or requests is None or len(window):
            return requests
        first = stream.take(room)
        return first + (stream.take_full(room - len(first)) or []) if 0 < len(first) < room else first

    def _shape(self) -> Shape[PreparedRequest]:
        return Shape(attrgetter("key"), attrgetter("tokens"), self._rows.rows, self._max_tokens, attrgetter("near"))

    def _run(self, batch: Sequence[PreparedRequest], window: Window) -> Iterator[Response]:
        failures = self._runner.out_of_memory
        for response in timed_responses(self._runner, batch, self._shrink):
            whole = self._whole(response) if batch[0].window is not None else response
            if whole is not None:
                yield whole
        if self._runner.out_of_memory > failures:
            window.plan_anew()
        else:
            self._rows.fitted(len(batch), memory_share(self.loaded.device) if self._is_auto else None)

    def _whole(self, response: Response) -> Response | None:
        """Keep the response to a window; return that to its text with the last one."""
        name, *together = (part.rpartition(_WINDOW)[0] for part in (response.request_id, *response.batch))
        text = self._texts[name]
        text.responses.append(structs.replace(response, batch=tuple(together)))
        if len(text.responses) < text.windows:
            return None
        del self._texts[name]
        return structs.replace(summed(name, text.responses), latency=perf_counter() - text.started)

    def _jobs(self, request: Request) -> Sequence[PreparedRequest] | Response:
        """Return the jobs of a request: one, or one for each window over a text."""
        if request.kind != "loglikelihood_rolling" or not isinstance(request.payload, Prepared):
            job = self._job(request)
            return job if isinstance(job, Response) else [job]
        try:
            windows = self._lookahead.windows(request.payload.text)
        except RefusedError as error:
            return Response.failure(request.id, error.kind, str(error))
        if not windows:
            return summed(request.id, [])
        self._texts[request.id] = _Text(len(windows), perf_counter())
        share = request.payload_bytes // len(windows)
        names = [f"{request.id}{_WINDOW}{number}" for number in range(len(windows))]
        parts = [structs.replace(request, id=name, payload_bytes=share) for name in names]
        return [
            PreparedRequest(part, request.payload, None, window) for part, window in zip(parts, windows, strict=True)
        ]

    def _job(self, request: Request) -> PreparedRequest | Response:
        prepared = request.payload
        if not isinstance(prepared, Prepared):
            raise TypeError(f"request {request.id} was not prepared by this model")
        if prepared.error is not None:
            return Response.failure(request.id, prepared.error.kind, prepared.error.message)
        if request.is_likelihood:
            return PreparedRequest(request, prepared, None)
        try:
            generation = request.generation_after(has_template=not self._inputs.is_plain)
            settings = read_settings(generation, self._generation_names)
        except (TypeError, ValueError) as error:
            return Response.failure(request.id, "bad_request", f"generation options: {error}")
        self._ignored.update({*settings.ignored} - {TEMPLATE_OPTIONS, *self._inputs.variables})
        return PreparedRequest(request, prepared, settings)

    def generation_options(self) -> TakenOptions:
        """Return the options of ``generate``, and the variables of the chat template."""
        return options_taken(self._generation_names, self._inputs.variables)

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        """Return the options of ``generate``, the chat template with variables, the system prompt and media limits."""
        generation = request.generation_after(has_template=not self._inputs.is_plain)
        settings = read_settings(generation, self._generation_names)
        form = {name: getattr(self.options, name) for name in VISUAL_OPTIONS}
        if request.media is not None:
            form |= limits_as_arguments(request.media, most_frames="max_num_frames", rate="fps")
        own = self.loaded.model.generation_config.to_diff_dict()
        return {
            "options": {} if request.is_likelihood else settings.as_sent(),
            "chat_template": template_digest(self._inputs.template),
            TEMPLATE_OPTIONS: self._inputs.read_variables(request.generation),
            "system_prompt": self._inputs.system_prompt,
            "media": {name: value for name, value in form.items() if value not in (None, False)},
            "generation_config": {name: own[name] for name in sorted(own) if name in self._generation_names},
        }

    def _shrink(self, batch: Sequence[PreparedRequest]) -> None:
        """Limit later batches to half the size of one that did not fit."""
        self._rows.did_not_fit()
        self._max_tokens = min(self._max_tokens, len(batch) * max(job.tokens for job in batch) / 2)

    def identity(self) -> Mapping[str, Any]:
        return {
            **checkpoint_identity(self.options.pretrained, self.options.revision, self.loaded.model),
            **changes_identity(self.options),
            "class": type(self.loaded.model).__name__,
            "dtype": self.loaded.dtype,
            "attn_implementation": _attention(self.loaded.model.config),
            "system_prompt": _digest(self._inputs.system_prompt),
            "chat_template": _digest(self._inputs.chat_template),
            **({"family_defaults": dict(self.profile.defaults)} if self.profile.defaults else {}),
        }

    def describe(self) -> Mapping[str, Any]:
        model, finite = self.loaded.model, self._max_tokens != float("inf")
        generation = model.generation_config.to_diff_dict()
        return {
            **describe_model(model, self.loaded.device),
            "processor_class": type(self.loaded.processor).__name__,
            "processor_without": sorted(self.loaded.absent_parts),
            "cannot_answer": dict(self._refused),
            "attn_implementation": _attention(model.config),
            "batch_size": self.options.batch_size,
            "max_batch_tokens": self._max_tokens if finite else None,
            "rows_of_a_batch": self._rows.rows,
            "pictures_processed_once": self._processed_once(),
            "out_of_memory_batches": self._runner.out_of_memory,
            "min_pixels": self.options.min_pixels,
            "max_pixels": self.options.max_pixels,
            "max_num_frames": self.options.max_num_frames,
            "generation_config": {name: value for name, value in generation.items() if not name.startswith("_")},
            "ignored_generation_options": sorted(self._ignored),
        }

    def _processed_once(self) -> int | None:
        if self._pictures is None:
            return None
        return self._pictures.hits + sum(process.hits for process in self._processes)

    def close(self) -> None:
        """Free the weights."""
        self._lookahead.close()
        for process in self._processes:
            process.close()
        del self._answerer, self._runner, self._inputs, self._lookahead
        device, model = self.loaded.device, weakref.ref(self.loaded.model)
        del self.loaded
        if device.type != "cpu" or model() is not None:
            free_memory(device)  # 0.2 s over all modules: not if the weights are free already


def _attention(config: Any) -> str | None:
    return getattr(config, "_attn_implementation", None)


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()
