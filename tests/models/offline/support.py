"""Back ends over engines that are modules with the real ones' signatures."""

from __future__ import annotations

from typing import Any

from lmms_eval.models.registry import ModelRegistry

FAKES = ("vllm", "sglang")


def build(name: str, folder: str, **arguments: Any) -> Any:
    return ModelRegistry().build(name, {"model": folder, **arguments})[0]
