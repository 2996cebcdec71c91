from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lmms_eval.errors import DataError, MediaError
from lmms_eval.media import uniform_indices
from lmms_eval.media import video as video_module
from lmms_eval.tasks._task_utils import pictures
from lmms_eval.tasks.megabench import prompts
from lmms_eval.tasks.megabench.data import QueryRow, parse_row
from lmms_eval.tasks.megabench.prompts import interleaved_messages
from lmms_eval.tasks.megabench.settings import MediaAccess, Settings
from tests.cases import for_each
from tests.media.draw import encoded, number_of, picture
from tests.media.test_image import rotated_jpeg
from tests.tasks.megabench.rows_for_tests import document, write_media


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> MediaAccess:
    return MediaAccess(write_media(tmp_path_factory.mktemp("megabench")))


def query(text: str, *names: str, **changes: Any) -> QueryRow:
    files = [f"./data/T/{name}" for name in names]
    return parse_row(document(example_text="", example_media=[], query_text=text, query_media=files, **changes))


def test_plain_text_keeps_an_empty_demonstration_as_an_empty_line(media: MediaAccess) -> None:
    row = query("<image>\nQuestion: is it?", "plain.png")
    assert prompts.prompt_text(row, media) == "Describe.\n\n<image>\nQuestion: is it?"


def test_text_of_pictures_or_videos_alone_needs_no_media() -> None:
    nowhere = MediaAccess(Path("/nonexistent"))
    assert prompts.prompt_text(query("<video> go", "missing.mp4"), nowhere) == "Describe.\n\n<video> go"
    assert prompts.prompt_text(query("no placeholder at all", "missing.png"), nowhere).endswith("at all")


def test_mixed_text_is_rebuilt(media: MediaAccess) -> None:
    row = query("Look:\n<image>\nthen  <video>  and\n\n<video>\n", "plain.png", "clip.mp4", "one.mp4")
    clip = "[video start]" + "<image>" * 64 + "[video end]"
    assert prompts.prompt_text(row, media) == f"Describe.\n\nLook: <image> then {clip} and <image>"
    assert len(prompts.visuals(row, media)) == 1 + 64 + 1


def test_mixed_rows_must_have_as_many_placeholders_as_files(media: MediaAccess) -> None:
    row = query("<image> <video> <video>", "plain.png", "clip.mp4")
    with pytest.raises(DataError, match="3 placeholders for 2 media"):
        prompts.prompt_text(row, media)


def test_the_frame_limit_is_an_option(media: MediaAccess) -> None:
    few = MediaAccess(media.root, max_frames=3)
    row = query("<image><video>", "plain.png", "clip.mp4")
    assert prompts.prompt_text(row, few).endswith("<image> [video start]<image><image><image>[video end]")
    shown = prompts.visuals(row, few)
    assert [number_of(np.asarray(image)) for image in shown[1:]] == uniform_indices(100, 3)


def test_mixed_rows_are_decoded_once(media: MediaAccess, monkeypatch: pytest.MonkeyPatch) -> None:
    decodings: list[int] = []
    real = video_module._read
    monkeypatch.setattr(video_module, "_read", lambda *a: decodings.append(1) or real(*a))
    access = MediaAccess(media.root, max_frames=5)
    row = query("<image> <video>", "plain.png", "clip.mp4")
    prompts.prompt_text(row, access)
    prompts.visuals(row, access)
    prompts.messages(row, access)
    assert decodings == [1]


def test_videos_are_paths(media: MediaAccess) -> None:
    row = query("<video>", "clip.mp4")
    path = str(media.root / "data/T/clip.mp4")
    assert prompts.visuals(row, media) == [path]
    assert prompts.messages(row, media)[0]["content"][0] == {"type": "video", "url": path}
    with pytest.raises(MediaError, match=r"gone\.mp4"):
        prompts.visuals(query("<video>", "gone.mp4"), media)


def test_transparency_is_laid_over_white_only_for_rgba(media: MediaAccess) -> None:
    alpha, keyed = prompts.visuals(query("<image><image>", "alpha.png", "keyed.png"), media)
    assert alpha.mode == keyed.mode == "RGB"
    assert alpha.getpixel((0, 0)) == (255, 255, 255)
    assert keyed.tobytes() == picture("P").convert("RGB").tobytes()
    assert "transparency" not in keyed.info


def test_pictures_are_not_turned(tmp_path: Path) -> None:
    path = tmp_path / "turned.jpg"
    path.write_bytes(rotated_jpeg())
    assert pictures.open_image(path).size == (40, 30)
    part = pictures.image_part(path)
    assert isinstance(part["url"], Image.Image) and part["url"].size == (40, 30)


@pytest.mark.parametrize(("name", "as_path"), [
    ("plain.png", True), ("plain.jpg", True), ("alpha.png", False), ("keyed.png", False), ("cmyk.jpg", False),
])  # fmt: skip
def test_messages_give_paths_where_nothing_changes(name: str, as_path: bool, media: MediaAccess) -> None:
    part = prompts.messages(query("<image>", name), media)[0]["content"][0]
    assert isinstance(part["url"], str) == as_path
    if not as_path:
        assert part["url"].mode == "RGB"


def test_messages_show_all_media_and_then_the_text(media: MediaAccess) -> None:
    doc = document(task_description="<image> D", global_media=["./data/T/plain.jpg"])
    turn = prompts.messages(parse_row(doc), media)
    assert [message["role"] for message in turn] == ["user"]
    assert [part["type"] for part in turn[0]["content"]] == ["image", "image", "image", "text"]
    assert turn[0]["content"][0]["url"].endswith("plain.jpg")
    assert turn[0]["content"][-1]["text"] == f"<image> D\n{doc['example_text']}\n{doc['query_text']}"


def test_a_missing_picture_is_named(media: MediaAccess) -> None:
    for function in (prompts.visuals, prompts.messages):
        with pytest.raises(MediaError, match=r"gone\.png"):
            function(query("<image>", "gone.png"), media)


def shape(turn: list[dict[str, Any]]) -> list[str]:
    return [part["text"] if part["type"] == "text" else part["type"] for part in turn[0]["content"]]


def test_interleaving_puts_everything_in_its_place(media: MediaAccess) -> None:
    turn = interleaved_messages(parse_row(document()), media, Settings())
    assert shape(turn) == ["Describe.", "Example 1:", "image", "Answer: no", "image", "Question: is it?"]


def test_interleaving_marks_frames_and_keeps_to_one_a_second(media: MediaAccess) -> None:
    row = query("See <video> now", "clip.mp4")  # 100 frames at 25 a second
    turn = interleaved_messages(row, media, Settings())
    assert shape(turn) == ["Describe.", "See", "<video frames start>", *["image"] * 4, "<video frames end>", "now"]
    frames = [part["url"] for part in turn[0]["content"] if part["type"] == "image"]
    assert [number_of(np.asarray(image)) for image in frames] == [0, 25, 50, 75]


def test_interleaving_shares_the_budget(media: MediaAccess) -> None:
    demo = {"example_text": "<video>", "example_media": ["./data/T/clip.mp4"]}
    row = parse_row(
        document(**demo, query_text="<image><video>", query_media=["./data/T/plain.png", "./data/T/clip.mp4"])
    )
    turn = interleaved_messages(row, media, Settings(max_images=8, demo_video_frames=4))
    images = [part["url"] for part in turn[0]["content"] if part["type"] == "image"]
    numbers = [number_of(np.asarray(image)) for image in images if isinstance(image, Image.Image)]
    assert numbers == [0, 25, 50, 75, 0, 34, 68]
    with pytest.raises(MediaError, match="budget is 5 pictures"):
        interleaved_messages(row, media, Settings(max_images=5, demo_video_frames=4))


def test_interleaving_bounds_pictures(media: MediaAccess) -> None:
    row = query("<image><image><image>", "plain.png", "plain.jpg", "alpha.png")
    with pytest.raises(MediaError, match="has 3 pictures"):
        interleaved_messages(row, media, Settings(max_images=2))
    demo = document(example_text="<image><image>", example_media=["./data/T/plain.png"] * 2)
    assert shape(interleaved_messages(parse_row(demo), media, Settings(demo_video_frames=1))).count("image") == 2
    with pytest.raises(DataError, match="2 placeholders for 1"):
        interleaved_messages(query("<image><image>", "plain.png"), media, Settings())


def test_interleaving_can_shrink(tmp_path: Path) -> None:
    (tmp_path / "data/T").mkdir(parents=True)
    (tmp_path / "data/T/large.png").write_bytes(encoded(picture(size=(300, 200)), "PNG"))
    access = MediaAccess(tmp_path)
    part = interleaved_messages(query("<image>", "large.png"), access, Settings(max_side=100))[0]["content"][1]
    assert part["url"].size == (100, 66)
    kept = interleaved_messages(query("<image>", "large.png"), access, Settings(max_side=300))[0]["content"][1]
    assert isinstance(kept["url"], str)


@for_each("name", ["/etc/passwd", "../secret.png", "./data/../../secret.png"])
def test_a_row_names_no_file_outside_of_the_data_set(name: str, tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="outside of the data set's folder"):
        MediaAccess(tmp_path / "root").path(name)
