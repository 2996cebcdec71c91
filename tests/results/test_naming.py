from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import ConfigError, JournalError
from lmms_eval.results.files import (
    NAMINGS,
    RUNS,
    STATE,
    ResultFiles,
    model_folder,
    reserve,
    run_folder,
    samples_beside,
    start_stamp,
)
from lmms_eval.storage.lines import sealed
from tests.cases import for_each

MOMENT = datetime(2024, 12, 31, 23, 59, 59, tzinfo=UTC)


def test_names() -> None:
    files = ResultFiles(Path("out"), "20241231_235959")
    assert files.results == Path("out/20241231_235959_results.json")
    assert files.samples("quiz") == Path("out/20241231_235959_samples_quiz.jsonl")


@for_each(
    ("stored", "task"),
    [
        ("lm-eval%3Agsm8k", "lm-eval:gsm8k"),
        ("lm-eval:gsm8k", "lm-eval:gsm8k"),
        ("a%3A%3Ab%2Fc", "a::b/c"),
        ("100%25", "100%"),
        ("quiz", "quiz"),
    ],
)
def test_samples_files_of_names_that_file_systems_refuse(tmp_path: Path, stored: str, task: str) -> None:
    results, samples = (tmp_path / f"20241231_235959_{name}" for name in ("results.json", f"samples_{stored}.jsonl"))
    samples.write_text("")
    assert samples_beside(results, task) == samples
    assert samples_beside(results, "other/task") is None
    assert NAMINGS[0].task(samples.name) == ("20241231_235959", task)
    if stored != task and ":" not in stored:
        assert ResultFiles(tmp_path, "20241231_235959").samples(task) == samples


@for_each(
    ("arguments", "folder"),
    [
        ("model=org/name,base_url=x", "out/org__name"),
        ("pretrained=/a/b/org/na:me", "out/org__na__me"),
        ("strategy=gold", "out"),
        ("", "out"),
    ],
)
def test_the_folder_of_a_model(arguments: str, folder: str) -> None:
    assert model_folder(Path("out"), arguments) == Path(folder)


def recorded(out: Path, key: str, **arguments: Any) -> None:
    folder = out / RUNS / key
    folder.mkdir(parents=True)
    (folder / STATE).write_bytes(sealed(json.dumps({"key": key, "arguments": arguments}).encode()))


def test_runs_of_different_models_without_a_name_have_folders_of_their_own(tmp_path: Path) -> None:
    assert run_folder(tmp_path, "baseline", "strategy=gold") == tmp_path
    recorded(tmp_path, "a", model="baseline", model_args="strategy=gold")
    assert run_folder(tmp_path, "baseline", "strategy=gold") == tmp_path
    other = run_folder(tmp_path, "baseline", "strategy=constant,text=B")
    assert other == tmp_path / "baseline-strategy=constant,text=B"
    recorded(other, "b", model="baseline", model_args={"strategy": "constant", "text": "B"})
    assert run_folder(tmp_path, "baseline", "strategy=constant,text=B") == other
    assert run_folder(tmp_path, "mine", "") == tmp_path / "mine"
    assert run_folder(tmp_path, "openai", "model=org/name") == tmp_path / "org__name"


def test_a_run_stays_in_the_folder_that_holds_it(tmp_path: Path) -> None:
    recorded(tmp_path, "a", model="baseline", model_args="strategy=gold")
    recorded(tmp_path, "b", model="baseline", model_args="strategy=random")
    assert run_folder(tmp_path, "baseline", "strategy=random", ("b",)) == tmp_path
    assert run_folder(tmp_path, "baseline", "strategy=random", ("c",)) != tmp_path


@for_each(
    "arguments",
    [
        "text=../../../etc",
        "text=a/b\\c:d|e",
        "text=\x1b[31m\u202e",
        "text=" + "x" * 5000,
        "api_key=sk-1234567890abcdef",
    ],
)
def test_arguments_make_a_harmless_folder_name(arguments: str, tmp_path: Path) -> None:
    recorded(tmp_path, "a", model="baseline", model_args="strategy=gold")
    found = run_folder(tmp_path, "baseline", arguments)
    assert found.parent == tmp_path and found.name.isprintable() and len(found.name) <= 70
    assert "sk-1234567890abcdef" not in found.name
    found.mkdir()


def test_a_long_name_is_distinct(tmp_path: Path) -> None:
    recorded(tmp_path, "a", model="baseline", model_args="strategy=gold")
    first, second = (run_folder(tmp_path, "baseline", f"text={'x' * 100}{end}") for end in "ab")
    assert first != second


def test_two_runs_in_the_same_second_get_two_stamps(tmp_path: Path) -> None:
    made = [reserve(tmp_path / "new", MOMENT) for _ in range(3)]
    assert [files.stamp for files in made] == ["20241231_235959", "20250101_000000", "20250101_000001"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == [".runs"]  # nothing that looks like results


def test_many_at_once_share_no_stamp(tmp_path: Path) -> None:
    stamps: list[str] = []
    threads = [threading.Thread(target=lambda: stamps.append(reserve(tmp_path, MOMENT).stamp)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(stamps)) == 16


def test_an_earlier_results_file_is_never_touched(tmp_path: Path) -> None:
    first = reserve(tmp_path, MOMENT)
    first.results.write_text("results")
    assert reserve(tmp_path, MOMENT).stamp != first.stamp
    assert first.results.read_text() == "results"
    first.free_stamp()
    assert not first.reservation.exists()
    assert reserve(tmp_path, MOMENT).stamp != first.stamp


def test_the_stamp_of_a_lone_samples_file_is_taken(tmp_path: Path) -> None:
    (tmp_path / "20241231_235959_samples_quiz.jsonl").touch()
    assert reserve(tmp_path, MOMENT).stamp == "20250101_000000"


def test_a_stamp_without_results_stays_reserved(tmp_path: Path) -> None:
    first = reserve(tmp_path, MOMENT)
    first.free_stamp()
    assert reserve(tmp_path, MOMENT).stamp != first.stamp


def test_a_folder_that_is_a_file_is_an_error_not_an_endless_search(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(JournalError, match="cannot make the folder"):
            reserve(folder, MOMENT)


def test_the_stamp_is_in_the_wanted_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start_stamp("Asia/Singapore", MOMENT).strftime("%Y%m%d_%H%M%S") == "20250101_075959"
    monkeypatch.setenv("TZ", "America/New_York")  # where no zone is given, the machine's own
    time.tzset()
    try:
        assert start_stamp(None, MOMENT).strftime("%Y%m%d_%H%M%S") == "20241231_185959"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert abs((start_stamp("UTC") - datetime.now(tz=UTC)).total_seconds()) < 5
    with pytest.raises(ConfigError, match="no such time zone"):
        start_stamp("Mars/Olympus")
