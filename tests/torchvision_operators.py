"""Declares the compiled operators that torchvision looks for, so that a build for another torch can be imported.

Only its pure Python parts work then, which is all that the processors of transformers and vLLM use; calling one of the
operators fails. For tests alone.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from typing import Any

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
)
_kept: list[Any] = []
"""Libraries whose declarations end when they are collected."""


def declare() -> None:
    """Declare the operators for this process, once; call it before torchvision is imported."""
    if _kept:
        return
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS:
        library.define(schema)
    _kept.append(library)


class _BeforeTorchvision(importlib.abc.MetaPathFinder):
    """Declares the operators when torchvision is first looked for; finds nothing itself."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            declare()
        return None


def declare_on_import() -> None:
    """Declare the operators as soon as something imports torchvision; until then torch is not imported either."""
    if "torchvision" not in sys.modules:
        sys.meta_path.insert(0, _BeforeTorchvision())
