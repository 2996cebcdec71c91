"""Records of MMIE for tests, and folders of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

QUESTION = [{"text": "What?", "image": "images/a.png"}]


def record(identity: str, **more: Any) -> dict[str, Any]:
    turns = [
        {"from": "human", "content": QUESTION},
        {"from": "gpt", "content": [{"text": "That.", "image": None}]},
    ]
    return {"id": identity, "catagory": "x", "field": "Art", "conversations": turns, **more}


def write(folder: Path, records: list[Any], name: str = "data.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(records))
    return folder


def options(folder: Path | None, **more: Any) -> dict[str, Any]:
    return {"data_root": None if folder is None else str(folder), **more}
