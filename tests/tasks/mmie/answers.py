"""Files of answers for the tests: small pictures, and judges that read their reply out of the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CATEGORIES = ("SA", "PBL", "MSR")
FIELDS = {"SA": "Literature", "PBL": "Art", "MSR": "Physics"}


def record(number: int, reply: str, **more: Any) -> dict[str, Any]:
    """One record; its judge is told what to say (``ANSWER=`` of the stub server)."""
    tag = CATEGORIES[number % 3]
    answer = [
        {"text": f"record {number}", "image": f"images/{number % 4}.png" if number % 2 else None},
        {"text": f"ANSWER={reply}", "image": None},
    ]
    return {
        "id": f"{tag}-{number}",
        "catagory": {"SA": "Situational analysis", "PBL": "Project-based learning", "MSR": "Multi-step reasoning"}[tag],
        "field": FIELDS[tag],
        "question": [{"text": f"question {number}", "image": "images/0.png"}],
        "answer": answer,
        "model": "toy",
        "gt_answer": [{"text": f"gold {number}", "image": None}],
        **more,
    }


def records(n: int) -> list[dict[str, Any]]:
    """Scores run through 0 ... 6."""
    return [record(number, f"### Score\n{number % 7}") for number in range(n)]


def write(folder: Path, content: Any, name: str = "data.json") -> Path:
    """The input folder with its pictures."""
    from PIL import Image

    (folder / "images").mkdir(parents=True, exist_ok=True)
    for number in range(4):
        Image.new("RGB", (8 + number, 8), (60 * number, 9, 9)).save(folder / "images" / f"{number}.png")
    (folder / name).write_text(json.dumps(content))
    return folder
