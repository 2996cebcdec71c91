"""Items of 3D and sound tasks for tests."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures.contract import Context

CONTEXT = Context()


def an_item(folder: Path, task: str, reference: object = None, form: str = "points", id: object = 7) -> Item:
    return Item(
        id=id,
        facts=find_task(task),
        form=form,
        prompt="What makes this sound?",
        media=(),
        reference=reference,
        folder=folder,
        prediction_folder=folder,
        raw={},
    )


def write_wav(path: Path, samples: np.ndarray, rate: int = 16_000) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return path.name


def midi_bytes(*tracks: bytes, division: int = 96, kind: int = 1, claimed: int | None = None) -> bytes:
    head = b"".join(number.to_bytes(2) for number in (kind, claimed or len(tracks), division))
    return b"MThd" + (6).to_bytes(4) + head + b"".join(b"MTrk" + len(one).to_bytes(4) + one for one in tracks)


END = b"\x00\xff\x2f\x00"


def midi_note(pitch: int, delta: int = 0, length: int = 96, channel: int = 0) -> bytes:
    """On and off, lengths below 128 ticks."""
    return bytes((delta, 0x90 | channel, pitch, 64, length, 0x80 | channel, pitch, 0))
