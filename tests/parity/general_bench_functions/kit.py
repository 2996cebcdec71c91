"""Embeddings, and what the video generation toolkit computes after its detectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lmms_eval.tasks.general_bench.measures import embeddings, kit_math
from lmms_eval.tasks.general_bench.measures import embeddings as frechet

Input = Mapping[str, Any]


def colour_counts(record: Input) -> list[int]:
    frames = [[kit_math.Region(*region) for region in frame] for frame in record["frames"]]
    return list(kit_math.colour_counts(record["color"], record["object"], frames))


def cosine(record: Input) -> float:
    first, second = (np.array([record[key]], dtype=np.float64) for key in ("a", "b"))
    return float(embeddings.cosines(first, second, item=None)[0, 0])


FUNCTIONS: Mapping[str, Callable[[Input], Any]] = {
    "frechet_from_embeddings": lambda record: frechet.frechet_from_embeddings(record["background"], record["eval"]),
    "frechet_from_stats": lambda record: frechet.frechet_distance(
        record["mu1"], record["sigma1"], record["mu2"], record["sigma2"]
    ),
    "cosine": cosine,
    "spatial_position_score": lambda record: kit_math.spatial_score(record["relation"], record["a"], record["b"]),
    "color_counts": colour_counts,
    "object_class_count": lambda record: kit_math.object_count(record["object"], record["frames"]),
    "multiple_objects_count": lambda record: kit_math.objects_count(record["object"], record["frames"]),
    "scene_count": lambda record: kit_math.scene_count(record["scene"], record["captions"]),
    "frame_indices_middle": lambda record: kit_math.middle_frames(record["num_frames"], record["video_length"]),
    "frame_indices_fps": lambda record: kit_math.frames_at_rate(
        float(record["sample"].removeprefix("fps")), record["video_length"], record["input_fps"]
    ),
    "prompt_from_filename": lambda record: kit_math.prompt_of(record["path"]),
    "temporal_flickering": lambda record: kit_math.steadiness(record["frames"]),
    "flow_top5pct_radius": lambda record: kit_math.largest_radius(record["flow_hw2"]),
    "dynamic_degree_decision": lambda record: kit_math.is_moving(
        record["short_side"], record["frame_count"], record["pair_scores"]
    ),
}
