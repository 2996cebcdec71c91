"""The base classes of plugins over Qwen2.5-VL, Qwen3-VL and Qwen3.5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from lmms_eval.api.model import Model
from lmms_eval.compat.plugins.local import HookedModel, LocalPlugin, refuse
from lmms_eval.compat.plugins.settings import read_given, takes
from lmms_eval.errors import ModelError
from lmms_eval.models.families.table import FAMILIES
from lmms_eval.models.families.wrappers import wrapper
from lmms_eval.models.hf.model import HuggingFace

ATTENTIONS = (None, "flash_attention_2", "sdpa", "eager")
GENERATION_KEYS = ("max_new_tokens", "temperature", "top_p", "top_k", "num_beams")
SAMPLING_KEYS = ("temperature", "top_p", "top_k")
END_OF_THOUGHT = "</think>"
PLACES = ("device", "device_map")
"""Arguments whose defaults are the family's machines: without them the device that is there is taken."""


@dataclass(frozen=True, slots=True)
class Qwen25Settings:
    """Arguments of ``Qwen2_5_VL`` in the family's order."""

    pretrained: str
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

    pretrained: str
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


class _Qwen3Backend(HookedModel):
    profile = FAMILIES["qwen3_vl"]


class _Qwen35Backend(HookedModel):
    profile = FAMILIES["qwen3_5"]


class Qwen2_5_VL(LocalPlugin):
    """Qwen2.5-VL. Arguments: the fields of ``Qwen25Settings``; any other keyword is an ``AssertionError``.

    Raises:
        ModelError: the model cannot be loaded.
    """

    is_simple = True
    _settings_kind: ClassVar[type[Any]] = Qwen25Settings
    _backend_kind: ClassVar[type[HuggingFace]] = wrapper("qwen2_5_vl")

    @takes(Qwen25Settings)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__()
        given = read_given(self._settings_kind, positional, keywords)
        refuse(given.others)
        settings = self._settings = given.settings
        if settings.attn_implementation not in ATTENTIONS:
            known = ", ".join(name for name in ATTENTIONS if name)
            raise ModelError(f"attn_implementation={settings.attn_implementation!r} is not one of {known}")
        self.fps, self.max_num_frames = settings.fps, settings.max_num_frames
        self.min_pixels, self.max_pixels = settings.min_pixels, settings.max_pixels
        self.system_prompt, self.interleave_visuals = settings.system_prompt, settings.interleave_visuals
        self.reasoning_prompt = settings.reasoning_prompt
        arguments = {**asdict(settings), **dict.fromkeys(PLACES), **given.only_named(*PLACES)}
        for name in ("total_pixels", "enable_thinking"):
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
    _settings_kind = Qwen3Settings
    _backend_kind: ClassVar[type[HuggingFace]] = _Qwen3Backend

    @takes(Qwen3Settings)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **keywords)
        self.total_pixels = self._settings.total_pixels
        self.enable_thinking = self._settings.enable_thinking

    def _build_video_kwargs(self) -> dict[str, Any]:
        """Arguments of a video: its frames and their size."""
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
        """Arguments of ``generate``: the task's over the defaults; sampling with a temperature above 0 alone."""
        wanted = {**self.DEFAULT_GEN_KWARGS, **gen_kwargs}
        sampled = float(wanted.get("temperature") or 0) > 0
        dropped = () if sampled else SAMPLING_KEYS
        chosen = {name: wanted[name] for name in GENERATION_KEYS if name not in dropped}
        return {"do_sample": sampled, **{name: value for name, value in chosen.items() if value is not None}}

    def _apply_chat_template(self, messages: list[dict[str, Any]]) -> str:
        """The prompt of one conversation in the form of transformers' templates."""
        prefilled = bool(messages) and messages[-1]["role"] == "assistant"
        thinking = {} if self.enable_thinking is None else {"enable_thinking": self.enable_thinking}
        text: str = self.processor.apply_chat_template(
            messages,
            tokenize=False,
            add_generation_prompt=not prefilled,
            continue_final_message=prefilled,
            **thinking,
        )
        return text

    def _strip_thinking(self, answer: str) -> str:
        """The answer behind its thoughts; one without the mark of their end stays as it is."""
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
    """Qwen3.5; as ``Qwen3_VL``."""

    _backend_kind = _Qwen35Backend
