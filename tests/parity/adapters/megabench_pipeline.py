"""MEGA-Bench: prompts and submission files. The evaluator and the breakdown: ``megabench_evaluator``."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

import lmms_eval.media
from lmms_eval.tasks.megabench import prompts
from lmms_eval.tasks.megabench.data import QueryRow, parse_row
from lmms_eval.tasks.megabench.settings import MediaAccess
from tests.parity.keys import keyed
from tests.parity.vectors import (
    DATA_DIR,
    GOLDEN_DIR,
    PASSED,
    Vector,
    Verdict,
    failed,
    line_adapter,
)  # fmt: skip

SLICE = DATA_DIR / "megabench" / "real_slice"
COLOUR_TOLERANCE = 3.0
"""Lossy formats are compared by size and mean colour (README of the vectors)."""
BLOCKS, BLOCK = 8, 16
MEDIA_COLUMNS = ("global_media", "example_media", "query_media")


@functools.cache
def docs(configuration: str) -> Mapping[str, Mapping[str, Any]]:
    """Rows of a configuration of the slice by id, in order, as they stand."""
    import pyarrow.parquet as pq

    return {doc["id"]: doc for doc in pq.read_table(SLICE / configuration).to_pylist()}


@functools.cache
def rows(configuration: str) -> Mapping[str, QueryRow]:
    return {id_: parse_row(doc) for id_, doc in docs(configuration).items()}


@line_adapter("megabench_pipeline/prompts.jsonl")
@keyed(
    "config", "id", "task_name", "media_type", "prompt", "target", "visuals.*.type", "visuals.*.path", "visuals.*.mode",
    "visuals.*.size.*", "visuals.*.mean_rgb.*", "visuals.*.rgb_sha256", "visuals.*.frame_number",
    "visuals.*.path_below_media_root",
)  # fmt: skip
def check_prompt(vector: Vector) -> Verdict:
    wanted = vector.record
    row = rows(wanted["config"])[wanted["id"]]
    media = MediaAccess(SLICE)
    found = {
        "task_name": row.task_name,
        "media_type": row.kind,
        "prompt": prompts.prompt_text(row, media),
        "target": row.answer_text,
    }
    for key, value in found.items():
        if value != wanted[key]:
            return failed(f"{key}: {value!r} instead of {wanted[key]!r}")
    with reading() as files:
        shown = prompts.visuals(row, media)
    if len(shown) != len(wanted["visuals"]):
        return failed(f"{len(shown)} visuals instead of {len(wanted['visuals'])}")
    types = ["video_path" if isinstance(visual, str) else "image" for visual in shown]
    if types != [expected["type"] for expected in wanted["visuals"]]:
        return failed(f"visuals of the types {types}")
    for visual, expected in zip(shown, wanted["visuals"], strict=True):
        problem = visual_problem(visual, expected)
        if problem:
            return failed(problem)
    problem = file_problem(origins(shown, files), wanted, "visuals")
    return failed(problem) if problem else message_verdict(row, media, shown, wanted)


@contextlib.contextmanager
def reading() -> Iterator[list[Path]]:
    """The file of every picture and frame that is read within, in order."""
    files: list[Path] = []

    def load(path: Path, **options: Any) -> Image.Image:
        files.append(Path(path))
        return originals[0](path, **options)

    def read(path: Path, *options: Any) -> Any:
        found = originals[1](path, *options)
        files.extend([Path(path)] * len(found))
        return found

    originals = lmms_eval.media.load_image, lmms_eval.media.read_frames
    with mock.patch.multiple(lmms_eval.media, load_image=load, read_frames=read):
        yield files


def origins(shown: Sequence[Any], files: Sequence[Path]) -> list[Path]:
    """The file of each visual: itself where it is a path, else the next one that was read."""
    read = iter(files)
    return [Path(visual) if isinstance(visual, str) else next(read, Path()) for visual in shown]


def file_problem(files: Sequence[Path], wanted: Mapping[str, Any], where: str) -> str:
    """What is wrong with the files that are shown, or empty: equal pixels do not excuse another file.

    A frame comes from the clip that stands in its place in the row.
    """
    for file, expected in zip(files, wanted["visuals"], strict=True):
        if "path" in expected and file != below_root(expected["path"]):
            return f"{where}: {file} instead of {expected['path']}"
    doc = docs(wanted["config"])[wanted["id"]]
    stated = [name for column in MEDIA_COLUMNS for name in ast.literal_eval(doc[column] or "[]")]
    found, in_row = ([file for file, _ in itertools.groupby(some)] for some in (files, map(below_root, stated)))
    return "" if found == in_row else f"{where}: {found} instead of {in_row}"


def below_root(name: str) -> Path:
    return (SLICE / name.removeprefix("./")).absolute()


def visual_problem(visual: Any, expected: Mapping[str, Any]) -> str:
    """What is wrong with one visual, or empty."""
    if expected["type"] == "video_path":
        wanted = str(SLICE / expected["path_below_media_root"])
        return "" if visual == wanted else f"{visual} instead of {wanted}"
    if not isinstance(visual, Image.Image):
        return f"a {type(visual).__name__} instead of a picture"
    if (visual.mode, list(visual.size)) != (expected["mode"], expected["size"]):
        return f"{visual.mode} {visual.size} instead of {expected['mode']} {expected['size']}"
    pixels = np.asarray(visual)
    if "rgb_sha256" in expected and hashlib.sha256(pixels.tobytes()).hexdigest() != expected["rgb_sha256"]:
        return f"{expected['path']}: other pixels"
    if "frame_number" in expected and painted_number(pixels) != expected["frame_number"]:
        return f"frame {painted_number(pixels)} instead of {expected['frame_number']}"
    if np.abs(pixels.reshape(-1, 3).mean(axis=0) - expected["mean_rgb"]).max() > COLOUR_TOLERANCE:
        return f"mean colour {pixels.reshape(-1, 3).mean(axis=0)} instead of {expected['mean_rgb']}"
    return ""


def painted_number(pixels: np.ndarray) -> int:
    """The frame number in the upper half: eight blocks, most significant bit first, white = 1."""
    row = pixels[pixels.shape[0] // 4, BLOCK // 2 : BLOCKS * BLOCK : BLOCK].mean(axis=-1)
    return int("".join("1" if value > 127 else "0" for value in row), 2)


def message_verdict(row: QueryRow, media: MediaAccess, shown: Sequence[Any], wanted: Mapping[str, Any]) -> Verdict:
    """Chat messages must show the same pictures as the visuals do, whether as paths or as pictures."""
    with reading() as files:
        parts = prompts.messages(row, media)[0]["content"]
    if parts[-1] != {"type": "text", "text": prompts.prompt_text(row, media)} or len(parts) != len(shown) + 1:
        return failed("the turn is not all visuals and then the text")
    for part, visual in zip(parts, shown, strict=False):
        if isinstance(visual, str):
            same = part == {"type": "video", "url": visual}
        else:
            opened = Image.open(part["url"]) if isinstance(part["url"], str) else part["url"]
            same = part["type"] == "image" and opened.convert("RGB").tobytes() == visual.tobytes()
        if not same:
            return failed(f"the message shows another picture than the visuals: {part}")
    problem = file_problem(origins([part["url"] for part in parts[:-1]], files), wanted, "message")
    return failed(problem) if problem else PASSED


@functools.cache
def replies() -> Mapping[tuple[str, str], str]:
    lines = (GOLDEN_DIR / "megabench_pipeline/e2e_slice/responses.jsonl").read_text(encoding="utf-8").splitlines()
    return {(line["config"], line["id"]): line["response"] for line in map(json.loads, lines)}
