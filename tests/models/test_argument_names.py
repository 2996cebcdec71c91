"""The table of argument names, and its account in the documentation."""

from __future__ import annotations

from pathlib import Path

from lmms_eval.models.argument_names import FRAMES, IGNORED, other_names

PAGE = Path(__file__).parents[2] / "docs/models/arguments.md"


def test_other_names() -> None:
    assert other_names("nframes", ("nframes", "num_frames")) == {"num_frames": "nframes"}


def test_the_documentation_has_every_name() -> None:
    rows = PAGE.read_text(encoding="utf-8")
    missing = [name for name in (*FRAMES, *IGNORED) if f"`{name}`" not in rows]
    assert not missing
