"""The base classes of plugins whose model runs in vLLM."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, TypeVar

from lmms_eval.api.instance import Instance
from lmms_eval.api.messages import build_user_turn
from lmms_eval.api.model import Model
from lmms_eval.api.request import Response
from lmms_eval.compat.plugins.delegating import Asked, DelegatingModel, options_of, read_given, read_messages, takes
from lmms_eval.models.offline.settings import EngineSettings, decoded, read_template
from lmms_eval.models.remote.model import import_sdk
from lmms_eval.models.vllm import VLLM as VllmModel
from lmms_eval.protocol import ChatMessages

log = logging.getLogger(__name__)
R = TypeVar("R")
DEFAULT_MODEL = "Qwen/Qwen2.5-VL-3B-Instruct"
DEFAULT_TOP_P = 0.95
ENGINE_NAMES = (
    "model",
    "tensor_parallel_size",
    "data_parallel_size",
    "gpu_memory_utilization",
    "trust_remote_code",
    "disable_log_stats",
)
OWN_NAMES = {*EngineSettings.model_fields, *EngineSettings.same} - {
    "max_model_len",
    "pipeline_parallel_size",
    "mm_processor_kwargs",
}
"""Arguments of the back end that the engine does not take."""


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """Arguments of ``VLLM`` in the family's order; any other goes to the engine."""

    model: str = DEFAULT_MODEL
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    gpu_memory_utilization: float = 0.8
    batch_size: int = 1
    max_frame_num: int = 32
    trust_remote_code: bool = True
    chat_template: str | None = None
    """The template itself or the path of a file that holds it."""
    min_image_pixels: int = 28
    """Pictures whose shorter side has fewer pixels are enlarged to it."""
    disable_log_stats: bool = False
    image_first: bool = False
    max_new_tokens: int = 1024


class VLLM(DelegatingModel):
    """Runs requests on an engine in this process through the back end ``vllm``.

    The engine starts when the object is built, unless a subclass has a ``generate_until`` of its own: a subclass that
    uses ``client`` needs no second copy of the weights. The arguments are the fields of ``VllmSettings``; any other
    keyword goes to the engine, texts that are JSON objects or lists decoded. Raises ``ModelError`` if vLLM is not
    installed or cannot start.
    """

    is_simple = True
    _settings_kind: ClassVar[type[Any]] = VllmSettings

    @takes(VllmSettings, any_other=True)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__()
        settings, _, others = read_given(self._settings_kind, positional, keywords)
        self._settings = settings
        self._others = {name: decoded(value) for name, value in others.items() if value is not None}
        self._client: Any = None
        self._tokens, self._seconds = 0, 0.0
        self.model, self.disable_log_stats = settings.model, settings.disable_log_stats
        self.tensor_parallel_size = settings.tensor_parallel_size
        self.data_parallel_size = settings.data_parallel_size
        self.max_frame_num, self.max_new_tokens = settings.max_frame_num, settings.max_new_tokens
        self.min_image_pixels, self.image_first = settings.min_image_pixels, settings.image_first
        self.batch_size = self.batch_size_per_gpu = int(settings.batch_size)
        self.num_concurrent = int(
            self._others.get("num_concurrent", EngineSettings.model_fields["num_concurrent"].default)
        )
        self.chat_template = read_template(settings.chat_template)
        if type(self).generate_until is DelegatingModel.generate_until:
            self._model()

    @property
    def client(self) -> Any:
        """A ``vllm.LLM`` with the same arguments, for a subclass that calls it itself; created on first use."""
        if self._client is None:
            if self._model_in_use is not None:
                log.warning("%s: `client` holds the weights a second time", type(self).__name__)
            package = import_sdk("vllm", "vllm", "vllm")
            others = {name: value for name, value in self._others.items() if name not in OWN_NAMES}
            self._client = package.LLM(**self._engine_arguments(), **others)
        return self._client

    @client.setter
    def client(self, value: Any) -> None:
        self._client = value

    def encode_image(self, image: Any) -> str:
        """A picture as base64; its path or the picture itself. Raises ``MediaError``."""
        from lmms_eval.media import image_url, load_rgb

        return image_url(self._large_enough(load_rgb(image))).partition(",")[2]

    def encode_video(self, video_path: Any) -> list[str]:
        """``max_frame_num`` frames of a video, evenly spread, as base64. Raises ``MediaError``."""
        from lmms_eval.media import Sampling, read_frames

        return [
            self.encode_image(frame) for frame in read_frames(video_path, Sampling(count=self.max_frame_num)).images()
        ]

    def get_format_metrics(self) -> dict[str, float]:
        """Return the tokens so far and the seconds per token; the time to the first token is not measured (NaN)."""
        tpot = self._seconds / self._tokens if self._tokens else float("nan")
        return {"generation_tokens": self._tokens, "ttft": float("nan"), "tpot": tpot}

    def clean(self) -> None:
        """End the engine and release ``client``."""
        super().clean()
        self._client = None

    def _select_max_new_tokens(self, requested: Any) -> int:
        """Return the length that a task requests, or the model's own if that is absent or not a number above 0."""
        own: int = self.max_new_tokens
        try:
            length = int(requested)
        except (TypeError, ValueError):
            return own
        return length if length > 0 else own

    def _build_sampling_params_dict(self, gen_kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of ``SamplingParams``; a ``top_p`` of 0, which vLLM rejects, becomes 1."""
        return {
            "max_tokens": self._select_max_new_tokens(gen_kwargs.get("max_new_tokens")),
            "temperature": gen_kwargs.get("temperature") or 0,
            "top_p": gen_kwargs.get("top_p", DEFAULT_TOP_P) or 1.0,
        }

    def _run_tp_synced(self, inputs: Any, fn: Callable[[Any], R]) -> R:
        """Call ``fn``; the engine's own processes stay in step by themselves."""
        return fn(inputs)

    def _open_model(self) -> Model:
        if self._client is not None:
            log.warning("%s: `client` holds the weights a second time", type(self).__name__)
        arguments = {
            **self._engine_arguments(),
            "max_frames_num": self.max_frame_num,
            "chat_template": self.chat_template,
            "max_new_tokens": self.max_new_tokens,
            "num_concurrent": self.num_concurrent,
        }
        return VllmModel(**{**arguments, **self._others})

    def _engine_arguments(self) -> dict[str, Any]:
        return {name: getattr(self._settings, name) for name in ENGINE_NAMES}

    def _generation(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return with_stops(self._build_sampling_params_dict(options), options)

    def _user_turn(self, visuals: Sequence[Any] | None, context: str) -> list[dict[str, Any]]:
        (turn,) = build_user_turn([self._large_enough(visual) for visual in visuals or []], context)
        *media, text = turn["content"]
        return [{**turn, "content": [*media, text] if self.image_first else [text, *media]}]

    def _large_enough(self, visual: Any) -> Any:
        """Enlarge a picture to at least ``min_image_pixels`` per side; return anything else unchanged."""
        size = getattr(visual, "size", None)
        if not callable(getattr(visual, "resize", None)) or size is None or min(size) >= self.min_image_pixels:
            return visual
        scale = self.min_image_pixels / min(size)
        return visual.resize(tuple(max(self.min_image_pixels, round(side * scale)) for side in size))

    def _note(self, response: Response) -> None:
        if response.usage is not None and response.usage.output_tokens:
            self._tokens += response.usage.output_tokens
            self._seconds += response.latency or 0.0


def with_stops(sampling: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return sampling arguments with the task's stop strings, unless they bring their own."""
    stops = {} if "stop" in sampling or not options.get("until") else {"until": options["until"]}
    return {**sampling, **stops}


@dataclass(frozen=True, slots=True)
class VllmChatSettings:
    """Arguments of ``ChatVLLM`` in the family's order; any other goes to the engine. See ``VllmSettings``."""

    model: str = DEFAULT_MODEL
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    gpu_memory_utilization: float = 0.8
    batch_size: int = 1
    max_frame_num: int = 768
    trust_remote_code: bool = True
    chat_template: str | None = None
    max_pixels: int = 1605632
    """Of a video's frame."""
    min_image_pixels: int = 28
    fps: float | None = None
    nframes: int = 32
    max_new_tokens: int = 4096
    _: KW_ONLY
    disable_log_stats: bool = False
    image_first: bool = False


class ChatVLLM(VLLM):
    """The chat form; a subclass may override ``make_one_request``. Arguments: the fields of ``VllmChatSettings``."""

    is_simple = False
    _settings_kind = VllmChatSettings

    @takes(VllmChatSettings, any_other=True)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **keywords)
        self.max_pixels, self.fps, self.nframes = self._settings.max_pixels, self._settings.fps, self._settings.nframes

    def make_one_request(self, request: Instance) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Make the messages of a chat completion, frames as pictures, and the arguments of ``SamplingParams``.

        Raises ``MediaError`` if a picture, video or sound cannot be read.
        """
        video: dict[str, Any] = {"max_pixels": self.max_pixels}
        video |= {"nframes": self.nframes} if self.fps is None else {"fps": self.fps, "max_frames": self.max_frame_num}
        messages = ChatMessages(messages=self._messages(request).messages)
        sampling = self._build_sampling_params_dict(options_of(request, self.is_simple))
        return messages.to_openai_messages(video_kwargs=video), sampling

    def _asked(self, instance: Instance) -> Asked:
        messages, sampling = self.make_one_request(instance)
        conversation = read_messages(messages)
        return lambda: conversation, with_stops(sampling, options_of(instance, self.is_simple))
