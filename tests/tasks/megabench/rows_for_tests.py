"""Documents in the columns of MEGA-Bench, and a small media folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.media.draw import encoded, picture, write_video

INFO = {
    "field_score_function": {"answer": "simple_str_match"},
    "aggregation": {"function": "mean", "field_weights": {"answer": 1}},
    "response_parse_function": "answer_string",
}


def document(**changes: Any) -> dict[str, str]:
    values: dict[str, Any] = {
        "id": "7", "task_name": "some_task", "task_description": "Describe.", "global_media": [],
        "example_text": "Example 1:\n<image>\nAnswer: no", "example_media": ["./data/T/plain.png"],
        "query_text": "<image>\nQuestion: is it?", "query_media": ["./data/T/plain.png"], "answer": {"answer": "yes"},
        "metric_info": INFO, "eval_context": {}, "taxonomy_tree_path": "A;B", "application": "Perception",
        "input_format": "Photographs", "output_format": "exact_text",
    }  # fmt: skip
    values.update(changes)
    return {name: str(value) for name, value in values.items()}


def write_media(root: Path) -> Path:
    """``root/data/T`` with pictures of several kinds and two clips (100 frames and 1 frame)."""
    folder = root / "data" / "T"
    folder.mkdir(parents=True)
    (folder / "plain.png").write_bytes(encoded(picture(), "PNG"))
    (folder / "plain.jpg").write_bytes(encoded(picture(), "JPEG"))
    (folder / "alpha.png").write_bytes(encoded(picture("RGBA"), "PNG"))
    (folder / "keyed.png").write_bytes(encoded(picture("P"), "PNG", transparency=bytes([0, 100, 255])))
    (folder / "cmyk.jpg").write_bytes(encoded(picture("CMYK"), "JPEG"))
    write_video(folder / "clip.mp4", 100, g=10)
    write_video(folder / "one.mp4", 1)
    return root
