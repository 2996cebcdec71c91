"""The base class of plugins over LLaVA in the form of transformers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lmms_eval.compat.plugins.delegating import read_given, takes
from lmms_eval.compat.plugins.local import LocalPlugin, refuse
from lmms_eval.models.families.table import wrapper


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

    Raises:
        AssertionError: another keyword.
        ModelError: the model cannot be loaded.
    """

    is_simple = True

    @takes(LlavaSettings)
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__()
        given = read_given(LlavaSettings, positional, keywords)
        refuse(given.others)
        settings = given.settings
        self.chat_template, self.max_frames_num = settings.chat_template, settings.max_frames_num
        self._load(
            wrapper("llava_hf"),
            {
                **given.only_named("revision", "device"),  # the family's defaults: the hub's branch, its machines
                "pretrained": settings.pretrained,
                "dtype": settings.dtype,
                "batch_size": settings.batch_size,
                "trust_remote_code": settings.trust_remote_code,
                "attn_implementation": settings.attn_implementation,
                "device_map": settings.device_map or None,
                "chat_template": settings.chat_template,
                "use_cache": settings.use_cache,
                "max_num_frames": settings.max_frames_num,
            },
        )
        self._image_processor = self.processor

    @cached_property
    def accelerator(self) -> Any:
        """An ``accelerate.Accelerator``, created on first use."""
        from accelerate import Accelerator

        return Accelerator()
