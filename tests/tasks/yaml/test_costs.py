"""What documents are guessed to cost, from lengths and files, without rendering."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.tasks.yaml import costs
from lmms_eval.tasks.yaml.costs import SCALES, CountedMedium, Files, media_of_text
from tests.cases import for_each
from tests.tasks.kit import Function, loaded

CODE = "def media(doc):\n    raise AssertionError('rendered ahead')\n"
VISUAL = {"doc_to_visual": Function("utils.media"), "generation_kwargs": {"until": []}}
IMAGE, VIDEO, AUDIO = SCALES["image"], SCALES["video"], SCALES["audio"]


def file(folder: Path, name: str, size: int) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return name


def of_rows(
    folder: Path, rows: list[dict[str, Any]], changes: dict[str, Any] | None = None, **more: Any
) -> list[float]:
    """Costs of the rows' media, their texts taken away."""
    rows = [{"question": "four", "answer": "", **row} for row in rows]
    task = loaded(folder, {**VISUAL, **(changes or {})}, CODE, rows=rows, **more)
    return [cost - 1 for cost in task.costs(range(len(rows)))]


def test_pictures_videos_and_sounds_by_the_sizes_of_their_files(tmp_path: Path) -> None:
    names = [file(tmp_path, name, size) for name, size in (("a.jpg", 12_800), ("b.mp4", 204_800), ("c.wav", 12_800))]
    found = of_rows(tmp_path, [{"media": name} for name in names])
    assert found == [64 + 100, 4_096 + 100, 64 + 10]


def test_lists_of_media_in_columns_of_lists_and_of_texts(tmp_path: Path) -> None:
    """The second form is that of MEGA-Bench: the text of a Python list."""
    a, b = file(tmp_path, "data/a.png", 1_280), file(tmp_path, "data/b's.png", 2_560)
    rows = [{"views": [a, b], "text": f"['./{a}', \"./{b}\"]"}, {"views": [], "text": "[]"}]
    one, other = IMAGE.tokens(1_280), IMAGE.tokens(2_560)
    assert of_rows(tmp_path, rows) == [2 * (one + other), 0.0]


def test_what_cannot_be_looked_up_has_a_constant(tmp_path: Path) -> None:
    rows = [{"media": name} for name in ("https://host/a.jpg?x=1", "gone.png", "http://host/v.mp4")]
    assert of_rows(tmp_path, rows) == [IMAGE.unknown, IMAGE.unknown, VIDEO.unknown]
    assert of_rows(tmp_path / "b", [{"media": "an_id"}]) == [IMAGE.unknown + len("an_id") / 4]


def test_contents_in_text_columns(tmp_path: Path) -> None:
    data = base64.b64encode(bytes(range(256)) * 12).decode()
    assert len(data) == 4_096
    rows = [{"media": data}, {"media": f"data:image/png;base64,{data[22:]}"}]
    assert of_rows(tmp_path, rows) == [IMAGE.tokens(3_072)] * 2


def test_folders_of_the_command_line_and_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {name: tmp_path / name for name in ("local", "media", "home")}
    for number, (name, place) in enumerate(
        (("x.png", places["local"]), ("y.png", places["media"]), ("z.png", places["home"] / "pool" / "images"))
    ):
        file(place, name, 128 * (1 + number))
    monkeypatch.setenv("HF_HOME", str(places["home"]))
    files = {"data_files": {"test": "rows.jsonl"}, "cache_dir": "pool"}
    options = TaskOptions(data_root=str(places["local"]), run_options={"media_root": str(places["media"])})
    rows = [{"media": name} for name in ("x.png", "y.png", "z.png")]
    found = of_rows(tmp_path / "task", rows, {"dataset_kwargs": files}, options=options)
    assert found == [65.0, 66.0, 67.0]


def test_a_text_that_is_no_path_stays_a_text(tmp_path: Path) -> None:
    rows = [{"media": "a.png"}, {"media": "see a.png and b"}]
    assert of_rows(tmp_path, rows) == [IMAGE.unknown + len(row["media"]) / 4 for row in rows]


def test_tasks_without_media_look_at_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Files, "size", lambda *_: pytest.fail("a file was looked up"))
    rows = [{"question": "abcd" * n, "answer": "", "media": "a.png"} for n in (1, 3)]
    task = loaded(tmp_path, {"generation_kwargs": {"until": [], "max_new_tokens": 7}}, rows=rows)
    assert list(task.costs([1, 0])) == [3 + 1.25 + 7, 1 + 1.25 + 7]


def test_each_choice_is_a_request(tmp_path: Path) -> None:
    changes = {"output_type": "multiple_choice", "doc_to_choice": "options", "doc_to_target": "label"}
    task = loaded(tmp_path, {**changes, "metric_list": None})
    per_request = [len(f"{question} colour{answer}") / 4 for question, answer in (("sky", "blue"), ("snow", "white"))]
    assert list(task.costs([0, 2])) == [2 * per_request[0], 3 * per_request[1]]
    requests = task.exchange(2, 0).open()
    assert [request.cost for request in requests] == [per_request[1]] * 3
    fixed = loaded(tmp_path / "b", {**changes, "doc_to_choice": ["a", "b", "c", "d"], "metric_list": None})
    assert list(fixed.costs([0])) == [4 * per_request[0]]


def test_requests_carry_the_cost_of_their_document(tmp_path: Path) -> None:
    name = file(tmp_path, "a.png", 128)
    code = "def media(doc):\n    return [doc['media']] if doc['media'] else []\n"
    rows = [{"question": "four", "answer": "", "media": media} for media in (name, "")]
    task = loaded(tmp_path, VISUAL, code, rows=rows)
    alone = task.exchange(0, 0).open()[0].cost
    task.costs([0, 1])
    assert task.exchange(0, 0).open()[0].cost == alone == 1 + 65.0
    assert task.exchange(1, 0).open()[0].cost == 1.0


def test_files_are_looked_up_once_and_missing_ones_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file(tmp_path, "a.png", 10)
    asked: list[str] = []
    files = Files(lambda: [tmp_path])
    look_up = Files._look_up

    def noted(self: Files, name: str) -> int | None:
        asked.append(name)
        return look_up(self, name)

    monkeypatch.setattr(Files, "_look_up", noted)
    assert [files.size("a.png"), files.size("a.png")] == [10, 10]
    assert {files.size(f"gone{number}.png") for number in range(50)} == {None, 10.0}
    assert len(asked) == 1 + 16, "after 16 missing files the mean of those found stands for the rest"
    files.new_window()
    assert files.size("gone49.png") is None and len(asked) == 18


def test_a_window_is_looked_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "MAX_LOOKUPS", 2)
    files = Files(lambda: [tmp_path])
    for number in range(3):
        file(tmp_path, f"{number}.png", 10 + 10 * number)
    assert [files.size(f"{number}.png") for number in range(3)] == [10, 20, 15.0]


@for_each(
    ("text", "media"),
    [
        ("a/b.JPG", [CountedMedium("image", "a/b.JPG")]),
        ("", []),
        ("[]", []),
        ("['a.mp4', 'b.txt']", None),
        ("[1, 2]", None),
        ("a.png\nb.png", None),
        ("What is in the picture?", None),
        ("word " * 400, None),
        ("data:audio/wav;base64,AAAA", [CountedMedium("audio", 26 * 0.75)]),
    ],
)
def test_media_of_a_text(text: str, media: list[CountedMedium] | None) -> None:
    assert media_of_text(text) == media
