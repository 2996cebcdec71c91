"""What a run keeps of its media, by back end and by the form of the data, and what reads it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.registry import register_model
from lmms_eval.api.request import Response
from lmms_eval.media.audio import encode_wav
from lmms_eval.results.run import load
from lmms_eval.viewer.live.pieces import LazyMedia
from lmms_eval.viewer.media import MediaFolders, MediaStore
from tests.faults.command import Ended, in_process, results
from tests.media.draw import encoded, picture, tone, write_video
from tests.servers.stub import StubServer

DOCUMENTS = 3
PICTURES = ("path", "column", "nullpath", "pil", "messages")
UTILS = """
import base64, io
from pathlib import Path

from PIL import Image, ImageDraw


def path(doc):
    return [str(Path(__file__).parent / doc["name"])]


def column(doc):
    return [doc["bare"]]


def nullpath(doc):
    return [doc["nullpath"]]


def sound(doc):
    return [doc["sound"]]


def clip(doc):
    return [doc["clip"]]


def pil(doc):
    image = Image.open(io.BytesIO(doc["bare"]["bytes"])).convert("RGB")
    ImageDraw.Draw(image).line((0, 0, 20, 20), fill="red")
    return [image]


def messages(doc, lmms_eval_specific_kwargs=None):
    url = "data:image/jpeg;base64," + base64.b64encode(doc["bare"]["bytes"]).decode()
    parts = [{"type": "image", "url": url}, {"type": "text", "text": doc["question"]}]
    return [{"role": "user", "content": parts}]
"""


@register_model("media_own")
class Own(Model):
    def respond(self, stream: Any) -> Iterator[Response]:
        while requests := stream.take(4):
            for request in requests:
                yield Response(request.id, text="a0")


@register_model("media_plugin")
class Plugin(lmms):
    is_simple = True

    def __init__(self, **_: Any) -> None:
        super().__init__()

    def generate_until(self, requests: list[Any]) -> list[str]:
        for request in requests:
            _, _, doc_to_visual, doc_id, task, split = request.args
            assert doc_to_visual(self.task_dict[task][split][doc_id])
        return ["a0" for _ in requests]

    def loglikelihood(self, requests: list[Any]) -> Any:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Any]) -> Any:
        raise NotImplementedError


def jpeg(number: int) -> bytes:
    return encoded(picture(size=(40 + number, 30)), "JPEG")


def wav(number: int) -> bytes:
    return encode_wav(tone(8000, 0.1 + number / 10), 8000)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tasks over the same documents, which differ in the form of their media."""
    folder = tmp_path_factory.mktemp("tasks")
    video = write_video(folder / "clip.mp4", 8, fps=4).read_bytes()
    rows = []
    for number in range(DOCUMENTS):
        (folder / f"{number}.jpg").write_bytes(jpeg(number))
        rows.append({
            "question": f"Picture {number}? ANSWER=a{number}", "answer": f"a{number}", "name": f"{number}.jpg",
            "bare": {"bytes": jpeg(number), "path": f"{number}.jpg"},
            "nullpath": {"bytes": jpeg(number + 10), "path": None},
            "sound": {"bytes": wav(number), "path": None}, "clip": {"bytes": video, "path": None},
        })  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), folder / "data.parquet")
    (folder / "utils.py").write_text(UTILS)
    for way in (*PICTURES, "sound", "clip"):
        visual = "column" if way == "messages" else way
        more = "doc_to_messages: !function utils.messages\n" if way == "messages" else ""
        (folder / f"kinds_{way}.yaml").write_text(
            f"task: kinds_{way}\ndataset_path: parquet\ndataset_kwargs:\n  data_files: {{test: data.parquet}}\n"
            f"test_split: test\ndoc_to_text: question\ndoc_to_target: answer\n{more}"
            f"doc_to_visual: !function utils.{visual}\ngeneration_kwargs: {{max_new_tokens: 4, until: []}}\n"
            "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
        )
    return folder


def run(tasks: Path, out: Path, *arguments: str, ways: tuple[str, ...] = PICTURES) -> Ended:
    names = ",".join(f"kinds_{way}" for way in ways)
    common = ("--tasks", names, "--include_path", tasks, "--output_path", out, "--verbosity", "WARNING")
    done = in_process(*common, *arguments, OPENAI_API_KEY="stub")
    assert done.code == 0, done.shown
    return done


def media(out: Path) -> dict[str, list[dict[str, Any]]]:
    """The first medium of every sample, by task."""
    found = load(str(out))
    return {name: [sample.record["sent_media"][0] for sample in task.samples()] for name, task in found.tasks.items()}


def folder_of(out: Path) -> Path:
    (found,) = out.rglob("media")
    return found.parent


def kept(out: Path, medium: dict[str, Any]) -> list[bytes]:
    """The files that the run keeps of a medium, whose names are their hashes."""
    contents = [(folder_of(out) / name).read_bytes() for name in medium.get("stored", [])]
    for name, content in zip(medium.get("stored", []), contents, strict=True):
        assert name.startswith(f"media/{hashlib.sha256(content).hexdigest()}.")
    return contents


def check_pictures(out: Path, tasks: Path) -> None:
    found = media(out)
    assert [one.get("path") for one in found["kinds_path"]] == [str(tasks / f"{n}.jpg") for n in range(DOCUMENTS)]
    assert not any("stored" in one for one in found["kinds_path"])
    for way, first in (("column", 0), ("nullpath", 10), ("messages", 0)):
        assert [kept(out, one) for one in found[f"kinds_{way}"]] == [[jpeg(first + n)] for n in range(DOCUMENTS)], way
    for number, one in enumerate(found["kinds_pil"]):
        ((data,), plain) = kept(out, one), Image.open(io.BytesIO(jpeg(number))).convert("RGB")
        shown = Image.open(io.BytesIO(data)).convert("RGB")
        assert shown.size == plain.size and shown.getpixel((5, 5)) != plain.getpixel((5, 5))
        assert shown.getpixel((5, 25)) == plain.getpixel((5, 25))
    assert len(list((folder_of(out) / "media").iterdir())) == 3 * DOCUMENTS  # columns and messages hold the same
    stated = results(out)["stored_media"]
    assert (stated["files"], stated["not_stored"]) == (3 * DOCUMENTS, {})
    check_report(out)


def check_report(out: Path) -> None:
    """The report shows every picture, also from a copy of the folder without its record."""
    for number, source in enumerate((out, folder_of(out))):
        made = in_process("report", source, "--out", out.parent / f"report{number}", "--media", "full")
        assert made.code == 0 and "not shown" not in made.shown, made.shown
    files = {path.suffix for path in (out.parent / "report0" / "media").iterdir()}
    assert ".webp" in files or ".wav" in files


def test_openai(tasks: Path, tmp_path: Path) -> None:
    with StubServer() as server:
        run(tasks, tmp_path / "out", "--model", "openai", "--model_args", f"model=stub,base_url={server.url}",
            "--log_samples")  # fmt: skip
    check_pictures(tmp_path / "out", tasks)


def test_a_model_of_the_users_own(tasks: Path, tmp_path: Path) -> None:
    run(tasks, tmp_path / "out", "--model", "media_own", "--log_samples")
    check_pictures(tmp_path / "out", tasks)
    assert {one["origin"] for found in media(tmp_path / "out").values() for one in found} == {"task"}
    sample = load(str(tmp_path / "out")).tasks["kinds_column"].sample("0")
    assert sample.record["messages"][0]["content"][0] == {"media": 0}  # at its place in the conversation
    (name,) = sample.media
    assert (folder_of(tmp_path / "out") / name).read_bytes() == jpeg(0)
    shown = in_process("show", tmp_path / "out", "kinds_column", "0")
    assert f"image: {folder_of(tmp_path / 'out') / name}, 40 x 30" in shown.shown
    exported = in_process("export", tmp_path / "out", "--to", "jsonl", "--out", tmp_path / "samples.jsonl")
    assert exported.code == 0 and name in (tmp_path / "samples.jsonl").read_text()


def test_a_view_shows_them_during_the_run(tasks: Path, tmp_path: Path) -> None:
    run(tasks, tmp_path / "out", "--model", "media_own", "--log_samples", ways=("column",))
    places = MediaFolders((folder_of(tmp_path / "out"),))
    store = MediaStore(tmp_path / "thumbnails" / "media", "thumbnails")
    view = LazyMedia(store)
    for number, one in enumerate(media(tmp_path / "out")["kinds_column"]):
        data, kind = view.read(view.add(one, places).result()["src"].removeprefix("media/"))
        assert kind == "image/webp" and Image.open(io.BytesIO(data)).size == (40 + number, 30)
    gone = {"type": "image", "not_stored": "size"}
    assert store.add(gone, places).result()["missing"] == "not stored: larger than --log_media_item_mb"
    assert store.missing == 0


def test_a_plugin(tasks: Path, tmp_path: Path) -> None:
    run(tasks, tmp_path / "out", "--model", "media_plugin", "--log_samples", ways=PICTURES[:4])
    found = media(tmp_path / "out")
    assert all(kept(tmp_path / "out", one) for way in PICTURES[1:4] for one in found[f"kinds_{way}"])
    check_report(tmp_path / "out")


def test_a_local_model(tasks: Path, tmp_path: Path) -> None:
    from examples.build_tiny_model import build_tiny_vlm

    tiny = build_tiny_vlm(tmp_path / "tiny", architecture="idefics3")
    run(tasks, tmp_path / "out", "--model", "hf", "--model_args", f"pretrained={tiny}", "--device", "cpu",
        "--log_samples")  # fmt: skip
    check_pictures(tmp_path / "out", tasks)


def test_sounds_are_kept_as_they_are_and_videos_as_their_frames(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer() as server:
        arguments = f"model=stub,base_url={server.url},max_frames_num=4"
        run(tasks, out, "--model", "openai", "--model_args", arguments, "--log_samples", ways=("sound", "clip"))
    found = media(out)
    assert [kept(out, one) for one in found["kinds_sound"]] == [[wav(number)] for number in range(DOCUMENTS)]
    for one in found["kinds_clip"]:
        frames = [Image.open(io.BytesIO(data)) for data in kept(out, one)]
        assert len(frames) == len(one["frames"]) == 4 and {frame.size for frame in frames} == {(160, 48)}
    assert results(out)["stored_media"]["files"] == DOCUMENTS + 4
    check_report(out)


def test_frames_for_a_local_model(tasks: Path, tmp_path: Path) -> None:
    """``baseline`` reads frames as pixels."""
    run(tasks, tmp_path / "out", "--model", "baseline", "--log_samples", ways=("clip", "sound"))
    (one, *_) = media(tmp_path / "out")["kinds_clip"]
    shown = [np.asarray(Image.open(io.BytesIO(data))) for data in kept(tmp_path / "out", one)]
    assert len(shown) == len(one["frames"]) and all(name.endswith(".jpg") for name in one["stored"])
    assert all(kept(tmp_path / "out", one) for one in media(tmp_path / "out")["kinds_sound"])


def test_the_options(tasks: Path, tmp_path: Path) -> None:
    def ran(name: str, *arguments: str) -> Path:
        run(tasks, tmp_path / name, "--model", "media_own", *arguments, ways=("column",))
        return tmp_path / name

    for name, arguments in (
        ("plain", ()),
        ("none", ("--log_samples", "--no_media")),
        ("plugin", ("--model", "media_plugin", "--log_samples", "--no_media")),  # its constructor takes any argument
    ):
        out = ran(name, *arguments)
        assert not list(out.rglob("media")) and "stored_media" not in results(out)
        assert not list(out.rglob("media-*.jsonl"))
    out = ran("alone", "--log_media")  # without samples files, the journals name the files
    assert not list(out.rglob("*_samples_*")) and len(list((folder_of(out) / "media").iterdir())) == DOCUMENTS
    check_report(out)
    size = len(jpeg(0))
    out = ran("size", "--log_samples", "--log_media_item_mb", f"{(size - 1) / 2**20}")
    assert results(out)["stored_media"]["not_stored"]["size"] >= 1
    refused = in_process("--model", "media_own", "--tasks", "kinds_column", "--include_path", tasks,
                         "--output_path", tmp_path / "x", "--log_media", "--no_media")  # fmt: skip
    assert refused.code == 2 and "--log_media and --no_media contradict each other" in refused.shown


def test_a_budget_that_is_used_up_is_announced_once(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(tasks, out, "--model", "media_own", "--log_samples", "--log_media_mb", f"{(len(jpeg(0)) + 1) / 2**20}",
               ways=("column", "nullpath"))  # fmt: skip
    assert done.shown.count("the budget for media of this run is used up") == 1
    stated = results(out)["stored_media"]
    assert stated["files"] == 1 and stated["not_stored"] == {"budget": 2 * DOCUMENTS - 1}
    reasons = [one.get("not_stored") for found in media(out).values() for one in found]
    assert reasons.count("budget") == 2 * DOCUMENTS - 1 and reasons.count(None) == 1
    made = in_process("report", out, "--out", tmp_path / "report")
    assert made.code == 0 and "not shown" not in made.shown  # nothing is missing: the run did not keep it
    texts = "".join(path.read_text() for path in (tmp_path / "report" / "data").rglob("*.js"))
    assert "not stored: budget" in texts
    shown = in_process("show", out, "kinds_nullpath", "2")
    assert "not stored: budget" in shown.shown


def test_a_killed_run_loses_nothing_and_stores_nothing_twice(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(delay=0.3) as server:
        command = [
            sys.executable, "-m", "lmms_eval", "--model", "openai", "--tasks", "kinds_column,kinds_nullpath",
            "--include_path", str(tasks), "--output_path", str(out), "--log_samples", "--model_args",
            f"model=stub,base_url={server.url},num_concurrent=1",
        ]  # fmt: skip
        environment = {**os.environ, "OPENAI_API_KEY": "stub"}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            until = time.monotonic() + 60
            while time.monotonic() < until and not [
                one for one in out.rglob("responses-0.jsonl") if one.stat().st_size
            ]:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        before = {path: path.stat().st_mtime_ns for path in (folder_of(out) / "media").iterdir()}
        assert 0 < len(before) <= 2 * DOCUMENTS
        run(tasks, out, *command[3:5], *command[-2:], "--log_samples", ways=("column", "nullpath"))
    now = {path: path.stat().st_mtime_ns for path in (folder_of(out) / "media").iterdir()}
    assert len(now) == 2 * DOCUMENTS and before.items() <= now.items()
    assert all(kept(out, one) for found in media(out).values() for one in found)
    assert results(out)["stored_media"]["files"] == 2 * DOCUMENTS


def test_two_processes(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(delay=0.02) as server:
        done = subprocess.run(
            [
                sys.executable, "-m", "lmms_eval", "--processes", "2", "--model", "openai", "--tasks",
                "kinds_column,kinds_nullpath", "--include_path", str(tasks), "--output_path", str(out),
                "--log_samples", "--model_args", f"model=stub,base_url={server.url},num_concurrent=2",
            ],
            env={**os.environ, "OPENAI_API_KEY": "stub"}, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(kept(out, one) for found in media(out).values() for one in found)
    assert results(out)["stored_media"]["files"] == len(list((folder_of(out) / "media").iterdir())) == 2 * DOCUMENTS


def test_a_samples_file_cannot_lead_out_of_its_folder(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(tasks, out, "--model", "media_own", "--log_samples", ways=("column",))
    (samples,) = out.rglob("*_samples_*.jsonl")
    secret = tmp_path / "secret.png"
    secret.write_bytes(encoded(picture(size=(8, 8)), "PNG"))
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    for line, name in zip(
        lines, (f"media/../../{secret.name}", str(secret), "media/" + "0" * 64 + ".png"), strict=True
    ):
        line["sent_media"][0]["stored"] = [name]
    foreign = tmp_path / "foreign"
    (foreign / "media").mkdir(parents=True)
    (foreign / "media" / ("0" * 64 + ".png")).symlink_to(secret)
    (foreign / samples.name).write_text("\n".join(map(json.dumps, lines)))
    made = in_process("report", foreign / samples.name, "--out", tmp_path / "report", "--media", "full")
    assert made.code == 0 and "3 pictures, videos or sounds are not shown" in made.shown
    assert not list((tmp_path / "report").rglob("*.webp"))


def test_answers_from_the_cache_have_their_pictures_too(tasks: Path, tmp_path: Path) -> None:
    with StubServer() as server:
        for name in ("first", "second"):
            run(tasks, tmp_path / name / "out", "--model", "openai", "--model_args",
                f"model=stub,base_url={server.url}", "--log_samples", "--use_cache", str(tmp_path / "cache.db"),
                ways=("column",))  # fmt: skip
        assert server.stats()["total"] == DOCUMENTS
    out = tmp_path / "second" / "out"
    assert [kept(out, one) for one in media(out)["kinds_column"]] == [[jpeg(number)] for number in range(DOCUMENTS)]


def test_a_drawn_picture_is_kept_as_it_was_sent(tasks: Path, tmp_path: Path) -> None:
    """The file of a drawn picture holds the bytes that the server received."""
    with StubServer() as server:
        run(tasks, tmp_path / "out", "--model", "openai", "--model_args", f"model=stub,base_url={server.url}",
            "--log_samples", ways=("pil",))  # fmt: skip
        received = server.bodies()
    sent = {
        base64.b64decode(part["image_url"]["url"].partition(",")[2])
        for body in received
        for part in body["messages"][-1]["content"]
        if part["type"] == "image_url"
    }
    assert len(sent) == DOCUMENTS
    assert {kept(tmp_path / "out", one)[0] for one in media(tmp_path / "out")["kinds_pil"]} == sent
