"""``--dry_run``: the numbers, what is broken, the page; nothing is asked and nothing is made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.dry_run import write_task
from lmms_eval.cli.main import main
from lmms_eval.media import encode_wav
from tests.cases import for_each
from tests.evaluation.judged_kit import rated_task
from tests.media.draw import write_video
from tests.servers.stub import StubServer

SERVER = ["--model", "openai", "--model_args", "model=gpt-x,base_url=http://127.0.0.1:9/v1"]
UTILS = """
from pathlib import Path


def doc_to_visual(doc):
    return [str(Path(__file__).parent / name) for name in doc["media"]]
"""


def write(folder: Path, rows: list[dict[str, Any]], extra: str = "", name: str = "shown") -> Path:
    metric = "acc" if extra else "exact_match"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"question": "What?", "answer": "a", "media": [], **row}) for row in rows]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "utils.py").write_text(UTILS)
    (folder / f"{name}.yaml").write_text(
        f"task: {name}\ndataset_path: json\ndataset_kwargs:\n  data_files: {{test: {name}.jsonl}}\ntest_split: test\n"
        f"doc_to_text: question\ndoc_to_target: answer\ndoc_to_visual: !function utils.doc_to_visual\n"
        f"metric_list:\n  - {{metric: {metric}, aggregation: mean, higher_is_better: true}}\n"
        f"generation_kwargs: {{max_new_tokens: 100}}\n{extra}"
    )
    return folder


def dry(folder: Path, capsys: Any, *more: str, model: list[str] | None = None) -> tuple[int, str]:
    arguments = [*(model or SERVER), "--tasks", "shown", "--include_path", str(folder), *more]
    code = main(["eval", *arguments, *(() if "--dry_run" in more else ("--dry_run",))])
    return code, capsys.readouterr().out


def test_documents_requests_text_pictures_and_bytes(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{"question": "x" * 10, "media": ["a.png", "b.jpg"]}, {"question": "y" * 30}])
    Image.new("RGB", (40, 30)).save(folder / "a.png")
    Image.new("RGB", (200, 100)).save(folder / "b.jpg")
    code, out = dry(folder, capsys, "--repeats", "3")
    assert code == 0
    assert "shown: 2 of 2 documents\n  requests: 6, 3 repeats\n  text: 120 characters\n" in out
    assert "pictures: 6, median 40x30 (0.00 megapixels), largest 200x100 (0.02 megapixels)" in out
    media = sum((folder / name).stat().st_size for name in ("a.png", "b.jpg"))
    told = re.search(r"to be sent: ([\d,]+) bytes|to be sent: ([\d.]+) kB", out)
    assert told is not None and float(told[2]) * 1000 == pytest.approx(3 * (4 * media / 3 + 40), abs=60)
    assert "longest request: shown/1/0/0/0 with 30 characters" in out
    assert "price not known" in out and "time not known" in out and "no problems found" in out


def test_nothing_is_asked_and_nothing_is_made(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{}])
    with StubServer() as server:
        model = ["--model", "openai", "--model_args", f"model=m,base_url={server.url}"]
        code, _ = dry(folder, capsys, "--output_path", str(tmp_path / "out"), model=model)
        assert code == 0 and server.stats()["total"] == 0
    assert not (tmp_path / "out").exists()


def test_what_is_broken_is_named_and_ends_with_code_2(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{"media": [name]} for name in ("none.png", "cut.jpg", "text.png", "good.png")])
    Image.effect_noise((300, 300), 50).convert("RGB").save(folder / "whole.jpg")
    (folder / "cut.jpg").write_bytes((folder / "whole.jpg").read_bytes()[:-4000])
    (folder / "text.png").write_text("no picture")
    Image.new("RGB", (8, 8)).save(folder / "good.png")
    code, out = dry(folder, capsys)
    assert code == 2
    assert "BROKEN: 3 documents" in out and "broken: 3 documents (exit code 2)" in out
    assert re.search(r"document 0: .*not found", out)
    assert re.search(r"document 1: .*cut.jpg is damaged or cut short", out)
    assert re.search(r"document 2: .*text.png is not a readable picture: unknown format", out)
    assert "document 3" not in out


def test_choices_are_requests_and_empty_ones_are_faults(tmp_path, capsys) -> None:
    rows = [{"choices": ["a", "bb"]}, {"choices": []}, {"choices": ["a", " "]}]
    extra = "output_type: multiple_choice\ndoc_to_choice: choices\n"
    folder = write(tmp_path / "t", rows, extra)
    code, out = dry(folder, capsys, model=["--model", "baseline"])
    assert code == 2 and "requests: 4\n" in out
    assert re.search(r"document 1: .*doc_to_choice.* not empty", out) and "document 2: choice 1 is empty" in out


def test_tokens_of_the_models_own_tokenizer_and_texts_that_are_too_long(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{"question": "the people know"}, {"question": "the people " * 40}])
    model = ["--model", "hf", "--model_args", "pretrained=embedded"]
    code, out = dry(folder, capsys, "--max_model_len", "120", model=model)
    assert code == 2 and "text is counted in tokens: " in out
    assert re.search(r"document 1: its text is too long: \d+ tokens and 100 for .* but the model takes 120", out)
    assert "document 0" not in out
    code, out = dry(folder, capsys, "--max_model_len", "120")
    assert re.search(r"document 1: its text is too long: about 110 tokens and 100", out)


def test_price_and_the_upper_bound_of_the_output(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{"question": "x" * 400}] * 10)
    (tmp_path / "p.yaml").write_text("models: {gpt-*: {input: 10, output: 100}}")
    code, out = dry(folder, capsys, "--prices", str(tmp_path / "p.yaml"))
    assert code == 0 and "price: about 0.0100 USD for the input, at most 0.1000 USD for the output (" in out


def test_prices_without_the_model_end_it(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{}])
    (tmp_path / "p.yaml").write_text("models: {other: {input: 10, output: 100}}")
    arguments = [*SERVER, "--tasks", "shown", "--include_path", str(folder), "--prices", str(tmp_path / "p.yaml")]
    assert main(["eval", *arguments, "--dry_run"]) == 2
    assert "no price for the model 'gpt-x / openai'; the table has: other" in capsys.readouterr().err


@for_each("text", ["0", "-3", "many"])
def test_wrong_numbers(tmp_path, capsys, text) -> None:
    assert main(["eval", *SERVER, "--tasks", "shown", "--include_path", str(tmp_path), f"--dry_run={text}"]) == 2
    assert "--dry_run" in capsys.readouterr().err


def test_earlier_runs_tell_time_and_length_and_the_journal_what_is_answered(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{"question": f"Say it {n}. ANSWER=a"} for n in range(8)])
    (tmp_path / "p.yaml").write_text("models: {m: {input: 10, output: 100}}")
    with StubServer(fault="400", share=0.4) as server:
        model = ["--model", "openai", "--model_args", f"model=m,base_url={server.url},max_retries=0"]
        out = ["--output_path", str(tmp_path / "out")]
        arguments = [*model, "--tasks", "shown", "--include_path", str(folder), *out]
        assert main(["eval", *arguments]) == 3  # some documents have failed
        capsys.readouterr()
        before = sorted(path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*"))
        asked = server.stats()["total"]
        code, told = dry(folder, capsys, *out, "--prices", str(tmp_path / "p.yaml"), model=model)
        assert code == 0 and server.stats()["total"] == asked
    assert sorted(path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")) == before
    (results,) = (tmp_path / "out").rglob("*_results.json")
    kept = json.loads(results.read_text())["outcomes"]["shown"]["scored"]
    assert 0 < kept < 8 and f"answered already: {kept} (journal of this run)" in told
    assert "time by 1 earlier runs of the model: about " in told and "price by 1 earlier runs of the model: " in told


def test_questions_to_a_judge(tmp_path, capsys) -> None:
    rated_task(tmp_path / "t", 5)
    arguments = [*SERVER, "--tasks", "rated", "--include_path", str(tmp_path / "t"), "--dry_run"]
    assert main(["eval", *arguments, "--judge_model", "jury", "--judge_base_url", "http://127.0.0.1:9"]) == 0
    assert "questions to the judge: 5 (upper estimate, from empty answers)" in capsys.readouterr().out
    assert main(["eval", *arguments]) == 0
    assert "judge" not in capsys.readouterr().out


HOSTILE = "```\n</details><script>alert(1)</script>\n````` ![x](http://evil) \x1b[31m"


def test_the_page_shows_texts_as_they_are_and_lets_none_break_out(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{"question": HOSTILE, "media": ["a.png"]}, {"question": "second"}])
    Image.new("RGB", (2000, 100)).save(folder / "a.png")
    code, out = dry(folder, capsys, "--dry_run", "1", "--output_path", str(tmp_path / "out"))
    assert code == 0 and f"written: {tmp_path / 'out' / 'dry_run' / 'shown.md'}" in out
    page = (tmp_path / "out" / "dry_run" / "shown.md").read_text()
    assert "\x1b" not in page and "second" not in page and '"max_new_tokens": 100' in page
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", page, flags=re.DOTALL | re.MULTILINE)
    assert "<" not in outside and "evil" not in outside and "alert" in page
    with Image.open(tmp_path / "out" / "dry_run" / "shown_1_1.webp") as thumbnail:
        assert thumbnail.size == (512, 25)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["dry_run"]


def test_a_page_without_an_output_folder_and_the_chat_template(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{"question": "Hello there"}])
    code, out = dry(folder, capsys, "--dry_run", "1", model=["--model", "hf", "--model_args", "pretrained=embedded"])
    (path,) = re.findall(r"written: (.*)", out)
    assert code == 0 and "**as the chat template renders it**" in Path(path).read_text()


def test_frames_of_videos_and_seconds_of_sound(tmp_path, capsys) -> None:
    folder = write(tmp_path / "t", [{"media": ["film.mp4"]}, {"media": ["sound.wav"]}])
    write_video(folder / "film.mp4", 50, 25)
    (folder / "sound.wav").write_bytes(encode_wav(np.zeros(24_000, np.float32), 16_000))
    model = [*SERVER[:3], SERVER[3] + ",max_frames_num=6"]
    _, out = dry(folder, capsys, model=model)
    assert "videos: 1, 6 frames" in out and "sounds: 1, 1.5 s" in out and "6 media are encoded anew" in out
    model = ["--model", "hf", "--model_args", "pretrained=embedded,max_num_frames=40,fps=5"]
    _, out = dry(folder, capsys, model=model)
    assert "videos: 1, 10 frames" in out and "to be sent" not in out


@pytest.mark.parametrize("name", ["path", "column"])
def test_the_benchmarks_tasks(tmp_path, capsys, name) -> None:
    write_task(tmp_path, name, 5)
    assert main(["eval", *SERVER, "--tasks", name, "--include_path", str(tmp_path), "--dry_run"]) == 0
    assert "pictures: 5, median 640x480 (0.31 megapixels)" in capsys.readouterr().out
