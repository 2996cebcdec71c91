"""The base classes of plugins with a model in this process: over the back end ``hf``, and the mixin for chat."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import structs

from lmms_eval.api.instance import FailedGeneration, Instance
from lmms_eval.api.model import Model
from lmms_eval.compat.plugins.delegating import DelegatingModel, read_given, takes
from lmms_eval.errors import ModelError
from lmms_eval.models.families.table import FAMILIES, wrapper
from lmms_eval.models.hf.inputs import InputBuilder
from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.options import HFOptions, Profile
from lmms_eval.protocol import ChatMessages
from lmms_eval.utils.installed import error_text

if TYPE_CHECKING:
    from lmms_eval.models.hf.load import Loaded


DEFAULT_FPS = 2.0
"""The rate of ``qwen_vl_utils`` if neither a number of frames nor a rate is given."""


class LocalPlugin(DelegatingModel):
    """Has the attributes of the family's local models, and loads the weights when it is built."""

    def _load(self, kind: type[HuggingFace], arguments: Mapping[str, Any]) -> None:
        """Build the back end. Raises ``ModelError`` as it does."""
        self._local = kind(**{name: value for name, value in arguments.items() if value is not None})
        loaded = self._local.loaded
        self.model, self.processor, self.tokenizer = loaded.model, loaded.processor, loaded.tokenizer
        self.device = self._device = loaded.device
        self.device_map = arguments.get("device_map")
        self.batch_size = self.batch_size_per_gpu = self._local.options.batch_size
        self.use_cache = self._local.options.use_cache

    @property
    def eot_token_id(self) -> int:
        """Number of the token that ends an answer."""
        number: int = self.tokenizer.eos_token_id
        return number

    def _open_model(self) -> Model:
        return self._local

    def clean(self) -> None:
        """Free the weights."""
        if self.model is not None:
            self._model_in_use = self.model = self.processor = self.tokenizer = None
            self._local.close()


def refuse(others: Mapping[str, Any]) -> None:
    """Raise ``AssertionError`` for keywords that a constructor does not take."""
    if others:
        raise AssertionError(f"unexpected keyword arguments: {', '.join(sorted(others))}")


class HookedModel(HuggingFace):
    """A model of ``hf`` whose prompts come from a plugin."""

    def attach(self, plugin: Qwen3_VL) -> None:
        """Use the plugin's methods from now on."""
        self._inputs = HookedInputs(plugin, self.loaded, self.options, self.profile)


class HookedInputs(InputBuilder):
    """Builds prompts with the plugin's template, and frames by its video arguments."""

    def __init__(self, plugin: Qwen3_VL, loaded: Loaded, options: HFOptions, profile: Profile) -> None:
        video = plugin._build_video_kwargs()
        count = video.get("nframes") or video.get("max_frames") or options.max_num_frames
        chosen = structs.replace(
            options,
            max_num_frames=int(count),
            fps=None if "nframes" in video else float(video.get("fps") or DEFAULT_FPS),
            total_pixels=video.get("total_pixels"),
        )
        super().__init__(loaded, chosen, profile)
        self._plugin = plugin
        most = video.get("max_pixels")
        if most and most != options.max_pixels:  # else the processor's own limit, if it has one
            self.frame_bounds = structs.replace(self.frame_bounds, max_pixels=int(most))

    def template_text(self, messages: list[dict[str, Any]], prefilled: bool, variables: Mapping[str, Any]) -> str:
        (text,) = self._plugin._apply_chat_template([copy.deepcopy(messages)])  # a plugin may change them
        return text


ATTENTIONS = (None, "flash_attention_2", "sdpa", "eager")
GENERATION_KEYS = ("max_new_tokens", "temperature", "top_p", "top_k", "num_beams")
SAMPLING_KEYS = ("temperature", "top_p", "top_k")
END_OF_THOUGHT = "</think>"
PLACES = ("device", "device_map")
"""Arguments whose defaults fit the family's machines; unless given, the available device is used."""


@dataclass(frozen=True, slots=True)
class Qwen25Settings:
    """Arguments of ``Qwen2_5_VL`` in the family's order."""

    pretrained: str = "Qwen/Qwen2.5-VL-3B-Instruct"
    device: str = "cuda"
    device_map: Any = "auto"
    batch_size: int | str = 1
    use_cache: bool = True
    attn_implementation: str | None = None
    min_pixels: int = 200704
    max_pixels: int = 1605632
    max_num_frames: int = 32
    fps: float | None = None
    system_prompt: str | None = "You are a helpful assistant."
    interleave_visuals: bool = False
    reasoning_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Qwen3Settings:
    """Arguments of ``Qwen3_VL`` in the family's order."""

    pretrained: str = "Qwen/Qwen3-VL-4B-Instruct"
    device: str = "cuda"
    device_map: Any = "auto"
    batch_size: int | str = 1
    use_cache: bool = True
    attn_implementation: str | None = None
    min_pixels: int = 200704
    max_pixels: int = 1605632
    total_pixels: int | None = None
    max_num_frames: int = 32
    fps: float | None = None
    system_prompt: str | None = "You are a helpful assistant."
    interleave_visuals: bool = False
    enable_thinking: bool | None = None
    reasoning_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Qwen35Settings:
    """Arguments of ``Qwen3_5`` in the family's order, followed by keywords of ``Qwen3_VL``."""

    pretrained: str = "Qwen/Qwen3.5-4B"
    min_pixels: int = 65536
    max_pixels: int = 131072
    total_pixels: int | None = 234881024
    max_num_frames: int = 768
    max_frames: int | None = None
    """Another name of ``max_num_frames``; takes precedence over it."""
    enable_thinking: bool | None = True
    _: KW_ONLY
    device: str = "cuda"
    device_map: Any = "auto"
    batch_size: int | str = 1
    use_cache: bool = True
    attn_implementation: str | None = None
    fps: float | None = None
    system_prompt: str | None = "You are a helpful assistant."
    interleave_visuals: bool = False
    reasoning_prompt: str | None = None


class _Qwen3Backend(HookedModel):
    profile = FAMILIES["qwen3_vl"]


class _Qwen35Backend(HookedModel):
    profile = FAMILIES["qwen3_5"]


class Qwen2_5_VL(LocalPlugin):
    """Qwen2.5-VL. Arguments: the fields of ``Qwen25Settings``; any other keyword is an ``AssertionError``.

    Raises ``ModelError`` if the model cannot be loaded.
    """

    is_simple = True
    _settings_kind: ClassVar[type[Any]] = Qwen25Settings
    _backend_kind: ClassVar[type[HuggingFace]] = wrapper("qwen2_5_vl")

    @takes(Qwen25Settings)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__()
        settings, given, others = read_given(self._settings_kind, positional, keywords)
        refuse(others)
        if getattr(settings, "max_frames", None) is not None:
            settings = replace(settings, max_num_frames=settings.max_frames)
        self._settings = settings
        if settings.attn_implementation not in ATTENTIONS:
            known = ", ".join(name for name in ATTENTIONS if name)
            raise ModelError(f"attn_implementation={settings.attn_implementation!r} is not one of {known}")
        self.fps, self.max_num_frames = settings.fps, settings.max_num_frames
        self.min_pixels, self.max_pixels = settings.min_pixels, settings.max_pixels
        self.system_prompt, self.interleave_visuals = settings.system_prompt, settings.interleave_visuals
        self.reasoning_prompt = settings.reasoning_prompt
        arguments = {**asdict(settings), **{name: given.get(name) for name in PLACES}}
        for name in ("total_pixels", "enable_thinking", "max_frames"):
            arguments.pop(name, None)
        self._load(self._backend_kind, arguments)


class Qwen3_VL(Qwen2_5_VL):
    """Qwen3-VL, dense or with experts. Arguments: the fields of ``Qwen3Settings``.

    A subclass may override ``_build_video_kwargs``, ``_build_generate_kwargs``, ``_apply_chat_template`` and
    ``_strip_thinking``.
    """

    DEFAULT_GEN_KWARGS: ClassVar[dict[str, Any]] = {
        "max_new_tokens": 128,
        "temperature": 0.0,
        "top_p": None,
        "num_beams": 1,
    }
    _settings_kind: ClassVar[type[Any]] = Qwen3Settings
    _backend_kind: ClassVar[type[HuggingFace]] = _Qwen3Backend

    @takes(Qwen3Settings)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **keywords)
        self.total_pixels = self._settings.total_pixels
        self.enable_thinking = self._settings.enable_thinking

    def _build_video_kwargs(self) -> dict[str, Any]:
        """Return the arguments of a video: its frames and their size."""
        chosen: dict[str, Any] = {"min_pixels": self.min_pixels}
        if self.fps is not None:
            chosen |= {"fps": self.fps, "max_frames": self.max_num_frames}
        elif self.total_pixels is not None:
            chosen["max_frames"] = self.max_num_frames
        else:
            chosen["nframes"] = self.max_num_frames
        if self.total_pixels is not None:
            chosen["total_pixels"] = self.total_pixels
        else:
            chosen["max_pixels"] = self.max_pixels
        return chosen

    def _build_generate_kwargs(self, gen_kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of ``generate``: the task's, then the defaults; sampling needs a temperature above 0."""
        wanted = {**self.DEFAULT_GEN_KWARGS, **gen_kwargs}
        sampled = float(wanted.get("temperature") or 0) > 0
        dropped = () if sampled else SAMPLING_KEYS
        chosen = {name: wanted.get(name) for name in GENERATION_KEYS if name not in dropped}
        return {"do_sample": sampled, **{name: value for name, value in chosen.items() if value is not None}}

    def _apply_chat_template(self, batched_messages: list[list[dict[str, Any]]], **kwargs: Any) -> list[str]:
        """Return the prompts of conversations by the processor's template.

        The conversations are alike: all end with the assistant's turn, or all with another. ``kwargs`` are further
        arguments of the processor's ``apply_chat_template``.
        """
        prefilled = all(messages and messages[-1]["role"] == "assistant" for messages in batched_messages)
        thinking = {} if self.enable_thinking is None else {"enable_thinking": self.enable_thinking}
        own = {"tokenize": False, "add_generation_prompt": not prefilled, "continue_final_message": prefilled}
        texts: list[str] = self.processor.apply_chat_template(batched_messages, **{**own, **thinking, **kwargs})
        return texts

    def _strip_thinking(self, answer: str) -> str:
        """Return the answer after its thoughts; an answer without the end mark is unchanged."""
        if not self.enable_thinking or END_OF_THOUGHT not in answer:
            return answer
        return answer.partition(END_OF_THOUGHT)[2].strip()

    def _generation(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        stops = {"until": options["until"]} if options.get("until") else {}
        return {**self._build_generate_kwargs(options), **stops}

    def _finished(self, text: str) -> str:
        return self._strip_thinking(text)

    def _open_model(self) -> Model:
        if isinstance(self._local, HookedModel):
            self._local.attach(self)
        return self._local


class Qwen3_5(Qwen3_VL):
    """Qwen3.5; as ``Qwen3_VL``, with defaults of its own. Arguments: the fields of ``Qwen35Settings``."""

    DEFAULT_GEN_KWARGS: ClassVar[dict[str, Any]] = {
        "max_new_tokens": 1024,
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
    }
    _settings_kind = Qwen35Settings
    _backend_kind = _Qwen35Backend

    @takes(Qwen35Settings)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **keywords)


class ChatQwen3_VL(Qwen3_VL):
    """The chat form of ``Qwen3_VL``."""

    is_simple = False


class ChatQwen3_5(ChatQwen3_VL, Qwen3_5):
    """The chat form of ``Qwen3_5``."""


@dataclass(frozen=True, slots=True)
class LlavaSettings:
    """Arguments of ``LlavaHf`` in the family's order."""

    pretrained: str = "llava-hf/llava-1.5-7b-hf"
    revision: str = "main"
    device: str = "cuda"
    dtype: Any = "auto"
    batch_size: int | str = 1
    trust_remote_code: bool = False
    attn_implementation: str | None = None
    device_map: Any = ""
    chat_template: str | None = None
    use_cache: bool = True
    max_frames_num: int = 32


class LlavaHf(LocalPlugin):
    """LLaVA 1.5, LLaVA-NeXT and LLaVA-OneVision. Arguments: the fields of ``LlavaSettings``.

    Raises ``AssertionError`` for another keyword, and ``ModelError`` if the model cannot be loaded.
    """

    is_simple = True

    @takes(LlavaSettings)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__()
        settings, given, others = read_given(LlavaSettings, positional, keywords)
        refuse(others)
        self.chat_template, self.max_frames_num = settings.chat_template, settings.max_frames_num
        arguments = asdict(settings)
        arguments["max_num_frames"] = arguments.pop("max_frames_num")
        arguments["device_map"] = settings.device_map or None
        # The family's defaults of these two are the hub's branch and its machines.
        arguments |= {name: given.get(name) for name in ("revision", "device")}
        self._load(wrapper("llava_hf"), arguments)
        self._image_processor = self.processor

    @cached_property
    def accelerator(self) -> Any:
        """An ``accelerate.Accelerator``, created on first use."""
        from accelerate import Accelerator

        return Accelerator()


VIDEO_KWARGS: dict[str, Any] = {"fps": 2, "max_frames": 16, "max_pixels": 147456}
IMAGE_KWARGS: dict[str, Any] = {"max_pixels": 262144}


class ChatMixin:
    """Turns a simple class, whose model answers conversations through ``_infer_one``, into a chat plugin."""

    is_simple = False
    video_kwargs = VIDEO_KWARGS
    image_kwargs = IMAGE_KWARGS
    batch_size: Any
    rank: Any
    task_dict: Any
    cache_hook: Any

    def _infer_one(self, chat_messages: ChatMessages, gen_kwargs: dict[str, Any]) -> str:
        """Answer one conversation."""
        raise NotImplementedError(f"{type(self).__name__} must define _infer_one(chat_messages, gen_kwargs)")

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        """Answer all requests, one after the other; a request that raises is a failed one."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Instance) -> Any:
        context, doc_to_messages, generation, doc_id, task, split = request.args
        messages = ChatMessages(messages=doc_to_messages(self.task_dict[task][split][doc_id]))
        options: Mapping[str, Any] = generation
        try:
            answer = self._infer_one(messages, dict(options))
        except Exception as error:  # noqa: BLE001 - a plugin's model may raise anything
            return FailedGeneration(f"_infer_one raised {error_text(error)}")
        self.cache_hook.add_partial("generate_until", (context, generation), answer)
        return answer
