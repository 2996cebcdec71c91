"""Draw the demonstration data of the task ``megabench_demo``: ``python examples/make_megabench_demo.py [FOLDER]``.

The layout is that of the published data set (``core/*.parquet`` with fifteen text columns, media below ``data/``), but
the set is small, and every text, picture and video is our own. The same call writes the same rows and pixels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

DEFAULT_FOLDER = Path(__file__).parents[1] / "lmms_eval" / "tasks" / "megabench" / "demo"
WIDTH, HEIGHT = 120, 80
COLOURS = {
    "red": (205, 45, 45), "blue": (40, 80, 200), "green": (40, 150, 70), "yellow": (235, 200, 40),
    "black": (25, 25, 25), "orange": (240, 130, 30),
}  # fmt: skip
COLUMNS = (
    "id", "task_name", "task_description", "global_media", "example_text", "example_media", "query_text",
    "query_media", "answer", "metric_info", "eval_context", "taxonomy_tree_path", "application", "input_format",
    "output_format",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """A shape on the canvas; ``box`` is left, top, right, bottom as shares of the canvas."""

    kind: str
    colour: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class Query:
    """A question; ``media`` maps names of files to the functions that draw them."""

    text: str
    answer: dict[str, Any]
    media: dict[str, Callable[[Path], None]]
    context: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DemoTask:
    """A task with its demonstration (the first query, answered) and its queries."""

    name: str
    description: str
    metrics: dict[str, str]
    queries: list[Query]
    example: Query | None = None
    parser: str = "answer_string"
    aggregation: str = "mean"
    weights: dict[str, float] = field(default_factory=dict)
    shared: dict[str, Callable[[Path], None]] = field(default_factory=dict)
    output_format: str = "exact_text"
    input_format: str = "Diagrams and Data Visualizations"


def canvas(shapes: list[Shape], size: tuple[int, int] = (WIDTH, HEIGHT)) -> Image.Image:
    image = Image.new("RGB", size, (250, 250, 245))
    draw = ImageDraw.Draw(image)
    for shape in shapes:
        box = [round(value * (size[0] if number % 2 == 0 else size[1])) for number, value in enumerate(shape.box)]
        if shape.kind == "circle":
            draw.ellipse(box, fill=COLOURS[shape.colour])
        elif shape.kind == "triangle":
            draw.polygon([(box[0], box[3]), (box[2], box[3]), ((box[0] + box[2]) // 2, box[1])], COLOURS[shape.colour])
        else:
            draw.rectangle(box, fill=COLOURS[shape.colour])
    return image


def scene(*shapes: Shape) -> Callable[[Path], None]:
    """Return a drawing of shapes; the name of the file decides between JPEG and PNG."""

    def draw(path: Path) -> None:
        canvas(list(shapes)).save(path, quality=90)  # PNG has no quality and ignores it

    return draw


def row_of(*pairs: tuple[str, str]) -> Callable[[Path], None]:
    """Return shapes side by side, each given as ``(kind, colour)``."""
    step = 1 / len(pairs)
    return scene(*(
        Shape(kind, colour, (number * step + 0.03, 0.3, (number + 1) * step - 0.03, 0.7))
        for number, (kind, colour) in enumerate(pairs)
    ))  # fmt: skip


def bars(**heights: float) -> Callable[[Path], None]:
    """Return a drawing with a bar for each colour, as high as its share of the canvas."""
    step = 1 / len(heights)
    return scene(*(
        Shape("square", colour, (number * step + 0.05, 1 - height, (number + 1) * step - 0.05, 1.0))
        for number, (colour, height) in enumerate(heights.items())
    ))  # fmt: skip


def words(text: str) -> Callable[[Path], None]:
    """Return a drawing of a text in large letters."""

    def draw(path: Path) -> None:
        from PIL import ImageFont

        image = Image.new("L", (WIDTH * 2, HEIGHT // 2), 255)
        ImageDraw.Draw(image).text((8, 8), text, fill=0, font=ImageFont.load_default(20))
        image.save(path)

    return draw


def badge(colour: str, hole: str) -> Callable[[Path], None]:
    """Return a drawing of a disc with a cut-out on a transparent background (mode RGBA)."""

    def draw(path: Path) -> None:
        image = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
        pen = ImageDraw.Draw(image)
        pen.ellipse((4, 4, 60, 60), fill=(*COLOURS[colour], 255))
        if hole == "circle":
            pen.ellipse((22, 22, 42, 42), fill=(0, 0, 0, 0))
        else:
            pen.rectangle((22, 22, 42, 42), fill=(0, 0, 0, 0))
        image.save(path)

    return draw


def clip(colour: str, to_the_right: bool, frames: int = 40) -> Callable[[Path], None]:
    """Return a video of a dot that crosses the picture. The encoder must support H.264."""

    def draw(path: Path) -> None:
        import av

        with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
            stream = container.add_stream("libx264", rate=10, options={"crf": "30", "g": "10"})
            stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
            for number in range(frames):
                share = number / (frames - 1) if to_the_right else 1 - number / (frames - 1)
                left = 0.8 * share
                image = canvas([Shape("circle", colour, (left, 0.35, left + 0.2, 0.65))], (96, 64))
                container.mux(stream.encode(av.VideoFrame.from_image(image)))
            container.mux(stream.encode())

    return draw


def folder_of(task: DemoTask) -> str:
    return f"./data/Demo/{task.name}"


def placeholders(query: Query) -> str:
    return "\n".join("<video>" if name.endswith(".mp4") else "<image>" for name in query.media)


def reply_of(task: DemoTask, answer: dict[str, Any]) -> str:
    """Return a right reply: the answer line, or JSON."""
    import json

    if task.parser == "json":
        return json.dumps(answer, ensure_ascii=False)
    return f"Answer: {next(iter(answer.values()))}"


def example_text(task: DemoTask) -> str:
    if task.example is None:
        return ""
    close = (
        "Now solve the new question below and end your reply with one JSON object with the same keys."
        if task.parser == "json"
        else 'Now solve the new question below and end your reply with a line "Answer: " followed by your answer.'
    )
    parts = ["A solved case of this task:", "Example 1:", placeholders(task.example)]
    parts += [f"Example Question: {task.example.text}", "Example Response:", reply_of(task, task.example.answer), close]
    return "\n".join(part for part in parts if part)


def metric_info(task: DemoTask) -> dict[str, Any]:
    weights = {name: task.weights.get(name, 1) for name in task.metrics}
    return {
        "field_score_function": task.metrics,
        "aggregation": {"function": task.aggregation, "field_weights": weights},
        "response_parse_function": task.parser,
    }


def rows_of(task: DemoTask, first_id: int) -> list[dict[str, str]]:
    base = folder_of(task)
    example_media = [f"{base}/{name}" for name in task.example.media] if task.example else []
    found = []
    for number, query in enumerate(task.queries):
        text = "\n".join(part for part in (placeholders(query), f"Question: {query.text}") if part)
        values: tuple[Any, ...] = (
            first_id + number, task.name, task.description, [f"{base}/{name}" for name in task.shared],
            example_text(task), example_media, text, [f"{base}/{name}" for name in query.media], query.answer,
            metric_info(task), query.context, f"Demo;{task.name}", "Perception", task.input_format, task.output_format,
        )  # fmt: skip
        found.append({name: str(value) for name, value in zip(COLUMNS, values, strict=True)})
    return found


def draw_media(task: DemoTask, folder: Path) -> None:
    files = dict(task.shared)
    for query in [*task.queries, *([task.example] if task.example else [])]:
        files.update(query.media)
    target = folder / folder_of(task)
    target.mkdir(parents=True, exist_ok=True)
    for name, draw in files.items():
        draw(target / name)


def make(folder: Path) -> int:
    """Write the data set and return the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from megabench_demo_tasks import TASKS

    rows: list[dict[str, str]] = []
    for task in TASKS:
        draw_media(task, folder)
        rows.extend(rows_of(task, len(rows) + 1))
    (folder / "core").mkdir(parents=True, exist_ok=True)
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "core" / "test-00000-of-00001.parquet")
    return len(rows)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    target_folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER
    print(f"{make(target_folder)} rows written to {target_folder}")
