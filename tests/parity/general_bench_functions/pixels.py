"""Flow, depth and restored frames."""

from __future__ import annotations

import base64
import math
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lmms_eval.tasks.general_bench.measures import masks, pixels
from lmms_eval.tasks.general_bench.measures import pixels as depth_math
from lmms_eval.tasks.general_bench.measures import pixels as image_quality
from lmms_eval.tasks.general_bench.readers.maps import first_channel, read_flow

Input = Mapping[str, Any]


def endpoint_error(record: Input) -> float:
    return pixels.endpoint_error(np.array(record["pred"]), np.array(record["gt"]))


def task_error(record: Input) -> dict[str, float]:
    pairs = zip(record["pred"], record["gt"], strict=True)
    errors = [endpoint_error({"pred": pred, "gt": gt}) for pred, gt in pairs]
    return {"EPE": math.fsum(errors) / (len(errors) + 1e-4)}  # the authors' mean over videos


def flow_reader(suffix: str) -> Callable[[Input], Any]:
    """Reads the bytes of a record as a file of this kind: rows of ``[u, v]``."""

    def read(record: Input) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"vector{suffix}"
            file.write_bytes(base64.b64decode(record["file_base64"]))
            return read_flow(file).tolist()

    return read


def depth_error(record: Input) -> float:
    errors = []
    for video in record["videos"]:
        arrays = [first_channel(np.array(video[key], dtype=np.float32), Path(key)) for key in ("pred", "gt")]
        errors.append(depth_math.aligned_abs_rel(*arrays))
    return math.fsum(errors) / len(errors)


def psnr(first: Any, second: Any) -> float:
    return image_quality.psnr(image_quality.mean_squared_error(np.array(first), np.array(second)))


def restoration(record: Input) -> dict[str, float]:
    frames = [pair for video in record["videos"] for pair in zip(video["pred"], video["gt"], strict=True)]
    finite = [found for pair in frames if math.isfinite(found := psnr(*pair))]  # the authors leave out equal frames
    return {"PSNR": math.fsum(finite) / len(finite) if finite else 0.0}


def grey_levels(frame: Any) -> Any:
    levels = np.array(frame, dtype=np.float64)
    return levels / 255 if levels.max() > 1 else levels


def structure_of_videos(record: Input) -> dict[str, float]:
    frames = [pair for video in record["videos"] for pair in zip(video["pred"], video["gt"], strict=True)]
    scores = [masks.authors_structure_measure(grey_levels(pred), np.array(gt) > 128) for pred, gt in frames]
    return {"S-measure": math.fsum(scores) / len(scores)}


FUNCTIONS: Mapping[str, Callable[[Input], Any]] = {
    "epe": endpoint_error,
    "flow_task_epe": task_error,
    "read_flo_base64": flow_reader(".flo"),
    "read_flow_flo_base64": flow_reader(".flo"),
    "read_flow_png_base64": flow_reader(".png"),
    "video_depth_absrel": depth_error,
    "structure_measure": lambda record: masks.authors_structure_measure(
        np.array(record["pred"], dtype=np.float64), np.array(record["gt"]) > 0
    ),
    "video_object_s_measure": structure_of_videos,
    "psnr": lambda record: psnr(record["a"], record["b"]),
    "video_restoration_psnr": restoration,
}
