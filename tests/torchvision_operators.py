"""Lets torchvision be imported beside a torch that it was not built for, without its compiled operators.

Its pure Python parts (resizing, normalising) are all that processors of transformers use; at import it registers
fake forms of three operators, which only needs them to be declared. For tests alone: nothing that is declared here
can be run. `make test` puts torchvision into a folder of its own (`FOLDER`), so that everything else is tested as it
is without torchvision.
"""

import importlib.util
import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "torchvision"
SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
)
_declared = []
"""The library; its declarations go when it is collected."""


def is_there():
    return FOLDER.is_dir() or importlib.util.find_spec("torchvision") is not None


def declare():
    """Declare the operators and put torchvision on the path; before transformers is imported."""
    import torch

    if FOLDER.is_dir():
        sys.path.append(str(FOLDER))
    if not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "DEF")
        for schema in SCHEMAS:
            library.define(schema)
        _declared.append(library)
