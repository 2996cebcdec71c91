"""Vectors of recipes: frames that are taken of videos, sizes of pictures and frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmms_eval.media.frame_rules import QwenVideo, frames_by_rate, inner_frames, middle_frames, smart_size
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, LineAdapter, Vector, Verdict, failed, line_adapter, pending

QWEN, INTERNVL, KIT = "qwen3vl/VideoMME (fps 2, 4..512)", "internvl-scripts/mvbench (16)", "vlmevalkit/Video-MME"
SCRIPT = QwenVideo(fps=2, min_frames=4, max_frames=512)
LEFT_OUT = "..."


def _indices(record: dict[str, Any]) -> list[int]:
    frames, rate = record["n_frames"], record["fps"]
    if record["rule"] == QWEN:
        return SCRIPT.indices(frames, rate)
    if record["rule"] == INTERNVL:
        return middle_frames(frames, 16, rate, tuple(record["bound"]) if record["bound"] else None)
    if record["nframe"]:
        return inner_frames(frames, record["nframe"])
    return frames_by_rate(frames, rate, record["sample_fps"])


def _same(found: list[int], recorded: list[Any]) -> bool:
    """Whether the numbers are those recorded, which may leave out those in the middle."""
    if LEFT_OUT not in recorded:
        return found == recorded
    place = recorded.index(LEFT_OUT)
    last = recorded[place + 1 :]
    return found[:place] == recorded[:place] and found[len(found) - len(last) :] == last


@keyed("rule", "n_frames", "fps", "count", "indices", "indices.*", "indices_sum", "bound", "bound.*", "nframe",
       "sample_fps", information={"kind": "chooses the adapter"})  # fmt: skip
def _frames(vector: Vector) -> Verdict:
    record = vector.record
    found = _indices(record)
    sizes = {"count": len(found), "indices_sum": sum(found)}
    wrong = {key: value for key, value in sizes.items() if record.get(key, value) != value}
    return PASSED if not wrong and _same(found, record["indices"]) else failed(f"{wrong} {found}")


@keyed("height", "width", "factor", "min_pixels", "max_pixels", "resized.*",
       information={"kind": "chooses the adapter", "rule": "the same in all lines"})  # fmt: skip
def _resized(vector: Vector) -> Verdict:
    record = vector.record
    found = smart_size(*(record[key] for key in ("height", "width", "factor", "min_pixels", "max_pixels")))
    return PASSED if list(found) == record["resized"] else failed(str(found))


@keyed("options", "options.*", "n_frames", "fps", "height", "width", "frames", "resized.*", "indices_if_linspace.*",
       "video_tokens",
       information={"kind": "chooses the adapter", "rule": "the same in all lines",
                    "setting": "the options in words"})  # fmt: skip
def _video_size(vector: Vector) -> Verdict:
    record = vector.record
    limits = QwenVideo(**record["options"])
    found = limits.indices(record["n_frames"], record["fps"])
    count, sides = len(found), (record["height"], record["width"])
    made = {
        "frames": count,
        "resized": list(limits.size(count, *sides)),
        "video_tokens": limits.tokens(count, *sides),
    }
    wrong = {key: value for key, value in made.items() if record[key] != value}
    return PASSED if not wrong and _same(found, record["indices_if_linspace"]) else failed(f"{wrong} {found[:20]}")


OF_KIND: dict[str, LineAdapter] = {"frames": _frames, "resize": _resized, "video size": _video_size}
"""Adapters by kind; that of prompts joins them where prompts are compared."""


@line_adapter("recipes/frames_and_video.jsonl")
def frames_and_video(vector: Vector) -> Verdict:
    """Hand a line to the adapter of its kind."""
    adapter: Callable[[Vector], Verdict] | None = OF_KIND.get(vector.record["kind"])
    return pending(f"lines of the kind {vector.record['kind']}") if adapter is None else adapter(vector)
