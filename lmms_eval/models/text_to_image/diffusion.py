"""Pictures from a pipeline of the diffusers library, in this process."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import GeneratedImage
from lmms_eval.errors import ModelError
from lmms_eval.models.remote.model import import_sdk
from lmms_eval.models.text_to_image.protocol import DrawingError

CALL = ("num_inference_steps", "guidance_scale", "height", "width", "negative_prompt")
"""Arguments of a call of the pipeline."""
LOADING = ("dtype", "revision", "variant", "device")
_ERRORS = (RuntimeError, ValueError, TypeError, OSError)
"""Exceptions of a pipeline for a description that it cannot draw, and for a full GPU."""


class DiffusersPipeline:
    """Any text-to-image pipeline; seeds make its pictures repeatable.

    Args:
        path: folder or hub name.
        arguments: of ``CALL`` and ``LOADING``.
        device: where ``arguments`` name none; else the GPU if there is one.

    Raises:
        ModelError: an unknown argument, no diffusers, or the pipeline cannot be loaded.
    """

    concurrency = 1

    def __init__(self, path: str, arguments: Mapping[str, Any], device: str | None = None) -> None:
        unknown = sorted(set(arguments) - {*CALL, *LOADING})
        if unknown:
            raise ModelError(
                f"--t2i_args: diffusers takes no {', '.join(unknown)}; it takes {', '.join(CALL + LOADING)}"
            )
        diffusers, torch = (import_sdk(name, f"--t2i diffusers:{path}", "t2i") for name in ("diffusers", "torch"))
        self._path, self._lock, self._drawn = path, threading.Lock(), 0
        self._call = {name: arguments[name] for name in CALL if name in arguments}
        dtype = str(arguments.get("dtype") or ("float16" if torch.cuda.is_available() else "float32"))
        self._device = str(arguments.get("device") or device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._loading = {name: arguments[name] for name in ("revision", "variant") if name in arguments}
        self._dtype, self._torch = dtype, torch
        try:
            pipeline = diffusers.DiffusionPipeline.from_pretrained(
                path, torch_dtype=getattr(torch, dtype), **self._loading
            )
            self._pipeline: Any = pipeline.to(self._device)
        except (*_ERRORS, AttributeError, ImportError) as error:
            raise ModelError(f"--t2i diffusers:{path} cannot be loaded: {type(error).__name__}: {error}") from error
        if hasattr(self._pipeline, "set_progress_bar_config"):
            self._pipeline.set_progress_bar_config(disable=True)

    def draw(self, descriptions: Sequence[str], seed: int) -> list[GeneratedImage]:
        """See ``TextToImage``; one picture after the other, each with a seed of its own."""
        pictures = []
        with self._lock:
            for number, description in enumerate(descriptions):
                generator = self._torch.Generator("cpu").manual_seed((seed + number) % 2**63)
                try:
                    made = self._pipeline(description, generator=generator, **self._call).images[0]
                except _ERRORS as error:
                    kind = type(error).__name__
                    where = f"the picture of {description[:60]!r} was not drawn: {kind}: {error}"
                    raise DrawingError("out_of_memory" if "OutOfMemory" in kind else "internal", where) from error
                file = io.BytesIO()
                made.save(file, format="PNG")
                pictures.append(generated_image(file.getvalue()))
                self._drawn += 1
        return pictures

    def identity(self) -> Mapping[str, Any]:
        """Pipeline, precision and call."""
        return {"diffusers": self._path, "dtype": self._dtype, **self._loading, **self._call}

    def describe(self) -> Mapping[str, Any]:
        """Pipeline, device and pictures."""
        return {**self.identity(), "device": self._device, "pictures": self._drawn}

    def close(self) -> None:
        """Let the weights go."""
        self._pipeline = None
