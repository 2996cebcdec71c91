"""Both forms from the command line to a score: a picture, several, a video, text alone."""

import json

import pytest
from PIL import Image

from lmms_eval.cli.main import run_command
from tests.media.draw import write_video

TASK = """task: colours
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
output_type: generate_until
doc_to_visual: !function utils.media
doc_to_text: question
doc_to_target: answer
generation_kwargs: {max_new_tokens: 16, until: ["!"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
UTILS = """from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent


def media(doc):
    names = doc["media"].split()
    return [str(HERE / name) if name.endswith(".mp4") else Image.open(HERE / name) for name in names]
"""
ROWS = [
    ("red.png", "Which colour?", "red"),
    ("blue.png", "Which colour?", "blue"),
    ("green.png red.png blue.png", "Which colours?", "green red blue"),
    ("film.mp4", "Which colours?", "red red"),
    ("", "And now! Stop", "no picture: And now"),
]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("colours")
    for place, name in enumerate(("red", "green", "blue")):
        colour = [20, 20, 20]
        colour[place] = 240
        Image.new("RGB", (60 + 40 * place, 50), tuple(colour)).save(folder / f"{name}.png")
    write_video(folder / "film.mp4", 12)
    (folder / "colours.yaml").write_text(TASK)
    (folder / "utils.py").write_text(UTILS)
    rows = [json.dumps({"media": media, "question": asked, "answer": right}) for media, asked, right in ROWS]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n")
    return folder


def command(name, checkpoint, tasks, output, *more):
    return [
        "--model", name, "--model_args", f"pretrained={checkpoint},max_num_frames=2", "--tasks", "colours",
        "--include_path", str(tasks), "--output_path", str(output), "--device", "cpu", "--log_samples", *more,
    ]  # fmt: skip


def results(output):
    (path,) = output.rglob("*_results.json")
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("name", "code", "batch"),
    [("internvl3", "internvl", "1"), ("internvl", "internvl", "4"), ("minicpm_v", "minicpm_v", "1"),
     ("minicpm_o", "minicpm_v", "1")],
)  # fmt: skip
def test_to_a_score(folder_of, tasks, tmp_path, name, code, batch, capsys):
    argv = command(name, folder_of(code), tasks, tmp_path, "--trust_remote_code", "--batch_size", batch)
    assert run_command(argv) == 0, capsys.readouterr()
    found = results(tmp_path)
    assert found["results"]["colours"]["exact_match,none"] == 1.0
    assert "exact_match" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "code"), [("internvl2", "internvl"), ("minicpm_v", "minicpm_v")])
def test_without_the_flag_nothing_is_loaded(folder_of, tasks, tmp_path, name, code, capsys, monkeypatch):
    monkeypatch.setattr("lmms_eval.models.chat_form.checkpoints.load_checkpoint", None)
    assert run_command(command(name, folder_of(code), tasks, tmp_path)) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert "ships code of its own, which is not run unless you give --trust_remote_code; read that code" in line


def test_one_failing_sample_leaves_the_others(folder_of, tasks, tmp_path, capsys):
    for name in ("utils.py", "red.png", "blue.png", "green.png", "film.mp4"):
        (tmp_path / name).write_bytes((tasks / name).read_bytes())
    (tmp_path / "colours.yaml").write_text(TASK)
    rows = [*ROWS, ("red.png", "EXIT", "red")]
    lines = [json.dumps({"media": media, "question": asked, "answer": right}) for media, asked, right in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    argv = command("internvl", folder_of("internvl"), tmp_path, tmp_path / "out", "--trust_remote_code")
    assert run_command(argv) == 3
    found = results(tmp_path / "out")
    assert found["outcomes"]["colours"]["failed"] == 1
    assert "chat raised OwnError: an error of its own" in json.dumps(found["outcomes"])
