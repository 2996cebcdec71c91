"""The base of plugins whose model runs in the back end ``hf``, and the hooks that change its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import structs

from lmms_eval.api.model import Model
from lmms_eval.compat.plugins.delegating import DelegatingModel
from lmms_eval.models.hf.inputs import InputBuilder
from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.options import HFOptions, Profile

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


class Hooks(Protocol):
    """Methods that a plugin may override."""

    def _build_video_kwargs(self) -> dict[str, Any]: ...

    def _apply_chat_template(self, batched_messages: list[list[dict[str, Any]]], **kwargs: Any) -> list[str]: ...


class HookedModel(HuggingFace):
    """A model of ``hf`` whose prompts come from a plugin."""

    def attach(self, hooks: Hooks) -> None:
        """Use ``hooks`` from now on."""
        self._inputs = HookedInputs(hooks, self.loaded, self.options, self.profile)


class HookedInputs(InputBuilder):
    """Builds prompts with the plugin's template, and frames by its video arguments."""

    def __init__(self, hooks: Hooks, loaded: Loaded, options: HFOptions, profile: Profile) -> None:
        video = hooks._build_video_kwargs()
        count = video.get("nframes") or video.get("max_frames") or options.max_num_frames
        chosen = structs.replace(
            options,
            max_num_frames=int(count),
            fps=None if "nframes" in video else float(video.get("fps") or DEFAULT_FPS),
            total_pixels=video.get("total_pixels"),
        )
        super().__init__(loaded, chosen, profile)
        self._hooks = hooks
        most = video.get("max_pixels")
        if most and most != options.max_pixels:  # else the processor's own limit, if it has one
            self.frame_bounds = structs.replace(self.frame_bounds, max_pixels=int(most))

    def template_text(self, messages: list[dict[str, Any]], prefilled: bool, variables: Mapping[str, Any]) -> str:
        (text,) = self._hooks._apply_chat_template([messages])
        return text
