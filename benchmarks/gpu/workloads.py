"""Write questions of four kinds: text, one picture, eight pictures, a video."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from PIL import Image

_WORDS = (
    "the",
    "of",
    "and",
    "a",
    "to",
    "in",
    "is",
    "it",
    "that",
    "was",
    "for",
    "on",
    "are",
    "as",
    "with",
    "his",
    "they",
    "at",
)
_YAML = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files: {{test: {name}.jsonl}}
test_split: test
output_type: generate_until
doc_to_visual: !function utils.doc_to_visual
doc_to_text: question
doc_to_target: answer
generation_kwargs: {{max_new_tokens: {tokens}, min_new_tokens: {tokens}, until: []}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
"""
_UTILS = """from pathlib import Path


def doc_to_visual(doc):
    return [str(Path(__file__).parent / name) for name in doc["media"]]
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """Quantities for one size of the suite."""

    samples: int
    tokens: int
    """Tokens generated for each answer."""
    picture: tuple[int, int]
    """Width and height, pixels."""
    frames: int
    words: int
    """Words of the longest text."""


SCALES: Mapping[str, Scale] = MappingProxyType(
    {"full": Scale(64, 32, (1024, 768), 16, 400), "tiny": Scale(6, 4, (64, 48), 4, 40)}
)
PICTURES: Mapping[str, int] = MappingProxyType({"text": 0, "picture": 1, "pictures": 8, "video": 0})
"""Number of pictures of each question, by workload."""
FPS = 8


@dataclass(frozen=True, slots=True)
class Question:
    """One question; ``media`` are paths."""

    text: str
    media: tuple[Path, ...]


def write(folder: Path, name: str, workload: str, scale: Scale) -> None:
    """Write the task ``name`` with the questions that ``questions`` reads. No picture or video occurs twice."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(name)
    count = 1 if workload == "video" else PICTURES[workload]
    media = [
        [f"{name}_{number}_{place}.{'mp4' if workload == 'video' else 'jpg'}" for place in range(count)]
        for number in range(scale.samples)
    ]
    with ThreadPoolExecutor() as threads:  # encoders release the interpreter's lock
        list(threads.map(lambda file: _write_media(folder / file, scale), [file for files in media for file in files]))
    with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as file:
        for names in media:
            words = source.choices(_WORDS, k=source.randint(scale.words // 10, scale.words))
            file.write(json.dumps({"question": " ".join(words), "answer": "a", "media": names}) + "\n")
    (folder / f"{name}.yaml").write_text(_YAML.format(name=name, tokens=scale.tokens), encoding="utf-8")
    (folder / "utils.py").write_text(_UTILS, encoding="utf-8")


def questions(folder: Path, name: str) -> list[Question]:
    """Read the questions of a written task."""
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Question(row["question"], tuple(folder / name for name in row["media"])) for row in rows]


def _write_media(path: Path, scale: Scale) -> None:
    source = random.Random(path.name)
    if path.suffix != ".mp4":
        _picture(scale, source).save(path, quality=80)
        return
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = *scale.picture, "yuv420p"
        for _ in range(2 * scale.frames):
            container.mux(stream.encode(av.VideoFrame.from_image(_picture(scale, source))))
        container.mux(stream.encode())


def _picture(scale: Scale, source: random.Random) -> Image.Image:
    width, height = scale.picture
    small = Image.frombytes("RGB", (width // 8, height // 8), source.randbytes(width // 8 * (height // 8) * 3))
    return small.resize(scale.picture, Image.Resampling.BICUBIC)
