"""Bad input to General-Bench, one row each (``docs/troubleshooting.md``), full disks, and SIGKILL in each step."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from lmms_eval.tasks.general_bench.facts import tasks_by_id
from tests.cases import for_each
from tests.faults.bad_input import here
from tests.faults.command import lmms_eval, results
from tests.faults.general_bench_kit import (
    DEFECTS,
    FLOOD,
    RAIN,
    TASKS,
    Bad,
    Registered,
    cell_of,
    changed,
    cut,
    data_set,
    gone,
    junk,
    lines_of,
    many,
    register,
    workbook_cells,
)
from tests.faults.general_bench_table import DAMAGED, PREDICTED, RESULTS, UNANSWERED
from tests.tasks.general_bench.demo_kit import edit

GOOD = {"task_name": "Image Deraining", "metric": "PSNR", "score": 31.5}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Registered:
    folder = tmp_path_factory.mktemp("healthy")
    found = register(data_set(folder / "data"), folder / "out")
    assert found.ended.code == 0, found.ended.shown
    assert len(found.scores) == len(found.cells) == len(TASKS)
    return found


@pytest.mark.parametrize("bad", [*DAMAGED, *PREDICTED, *UNANSWERED], ids=lambda bad: bad.name)
def test_one_task_is_bad_and_the_others_are_scored(bad: Bad, healthy: Registered, tmp_path: Path) -> None:
    root = data_set(tmp_path / "data")
    bad.spoil(root)
    found = register(root, tmp_path / "out", **bad.flags)
    assert found.ended.code == bad.code, found.ended.shown
    assert "Traceback" not in found.ended.shown
    told = [line for line in found.ended.err.splitlines() if "items answered" in line or line.startswith("error: ")]
    begin = {0: "warning: ", 2: "error: ", 3: ""}[bad.code]
    lines = [line for line in told or found.ended.err.splitlines() if line.startswith(begin)]
    assert len(lines) == 1, found.ended.err
    for part in bad.says:
        assert part in lines[0]
    untouched = {name for folder, name in TASKS.items() if folder != bad.task}
    assert {name: found.scores[name] for name in untouched} == {name: healthy.scores[name] for name in untouched}
    for folder in TASKS:
        if folder != bad.task:
            assert found.cells[cell_of(folder)] == healthy.cells[cell_of(folder)]
    if bad.task:
        score = found.scores.get(TASKS[bad.task], {"status": "", "strict": None})
        assert score["status"] == bad.status
        assert found.cells.get(cell_of(bad.task)) == (score["strict"] and pytest.approx(score["strict"]))


@for_each("bad", RESULTS, ids=lambda bad: bad.name)
def test_one_result_is_bad_and_the_others_are_entered(bad: Bad, tmp_path: Path) -> None:
    root = data_set(tmp_path / "data")
    bad.spoil(root)
    edit(root / "scores.json", lambda content: [*content, GOOD])
    found = register(root, tmp_path / "out", **bad.flags)
    assert found.ended.code == 2
    errors = [line for line in found.ended.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    for part in (str(root / "scores.json"), *bad.says):
        assert part in errors[0]
    assert found.cells == {("Image-Generation", "Image Deraining"): 31.5}


def workbook(path: Path, *header: str) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "NLP"
    sheet.append(header)
    sheet.append([1] * len(header))
    book.save(path)
    return path


@for_each(
    ("name", "says"),
    [
        ("other.xlsx", ("other.xlsx, sheet NLP: no column 'Task Name'; columns: 'A', 'B'",)),
        ("junk.xlsx", ("junk.xlsx: cannot be read as a workbook",)),
        ("absent.xlsx", ("absent.xlsx",)),
    ],
)
def test_a_workbook_of_another_layout(name: str, says: tuple[str, ...], tmp_path: Path) -> None:
    root = data_set(tmp_path / "data")
    workbook(tmp_path / "other.xlsx", "A", "B")
    (tmp_path / "junk.xlsx").write_bytes(b"PK nothing")
    found = register(root, tmp_path / "out", **{"-t": str(tmp_path / name)})
    assert found.ended.code == 2 and not found.cells
    (error,) = (line for line in found.ended.err.splitlines() if line.startswith("error: "))
    for part in says:
        assert part in error
    ranked = here({"general-bench": "rank", "-p": str(tmp_path / name), "-m": "Toy"})
    assert ranked.code == 2 and name in ranked.err and "Traceback" not in ranked.shown


def test_a_model_that_the_workbook_has_not(tmp_path: Path) -> None:
    register(data_set(tmp_path / "data"), tmp_path / "out")
    ranked = here({"general-bench": "rank", "-p": str(tmp_path / "out" / "Toy_result.xlsx"), "-m": "Other"})
    assert ranked.code == 2 and "Other" in ranked.err


# --- a model is asked


def ask(root: Path, out: Path, *names: str) -> Any:
    flags = {"--model": "baseline", "--model_args": "strategy=gold", "--data_root": str(root)}
    return here({**flags, "--tasks": ",".join(f"general_bench_{name}" for name in names), "--output_path": str(out)})


WRONG_OUTPUT = changed(f"{FLOOD}/annotation.json", lambda content: content["data"][2].update(output=5))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (
            (gone(f"{FLOOD}/images/1.png"), junk(f"{FLOOD}/images/2.png")),
            ("1.png' not found", "2.png is not a readable"),
        ),
        ((gone(f"{FLOOD}/images/mask1.png"), WRONG_OUTPUT), ("'images/mask1.png' is not there", "item 2: ")),
    ],
    ids=["inputs", "references"],
)
def test_some_questions_fail_and_the_others_are_asked(
    spoil: tuple[Callable[[Path], None], ...], says: tuple[str, ...], tmp_path: Path
) -> None:
    root = data_set(tmp_path / "data")
    for one in spoil:
        one(root)
    ended = ask(root, tmp_path / "out", TASKS[FLOOD], TASKS[DEFECTS])
    assert ended.code == 3, ended.shown
    assert "withheld (2 failed)" in ended.out
    for part in says:
        assert part in ended.out
    found = results(tmp_path / "out")
    outcome = found["outcomes"][f"general_bench_{TASKS[FLOOD]}"]
    assert (outcome["scored"], outcome["failed"]) == (1, 2)
    assert found["results"][f"general_bench_{TASKS[FLOOD]}"]["miou,none"] is None
    assert found["results"][f"general_bench_{TASKS[DEFECTS]}"]["accuracy,none"] == 100.0


def test_an_annotation_that_is_cut_short_fails_its_own_task(tmp_path: Path) -> None:
    root = data_set(tmp_path / "data")
    cut(f"{FLOOD}/annotation.json")(root)
    ended = ask(root, tmp_path / "out", TASKS[FLOOD], TASKS[DEFECTS])
    assert ended.code == 3, ended.shown
    assert "no complete JSON" in ended.out
    assert results(tmp_path / "out")["results"][f"general_bench_{TASKS[DEFECTS]}"]["accuracy,none"] == 100.0


def test_no_data_and_a_wrong_folder(tmp_path: Path) -> None:
    ended = ask(tmp_path / "nothing", tmp_path / "out", TASKS[DEFECTS])
    assert ended.code == 2 and "nothing" in ended.err
    (tmp_path / "empty").mkdir()
    ended = ask(tmp_path / "empty", tmp_path / "out", TASKS[DEFECTS])
    assert ended.code == 2 and "holds no General-Bench-Openset" in ended.err
    without = here({"--model": "baseline", "--tasks": f"general_bench_{TASKS[DEFECTS]}"})
    assert without.code == 2 and "--data_root DIR" in without.err


# --- a full disk


@pytest.mark.parametrize(
    ("limit", "file", "code"),
    [(100, "nlp_commonsense_reasoning.jsonl", 1), (1000, "Toy_scores.json", 2), (3000, "Toy_result.xlsx", 2)],
)
def test_a_full_disk_is_said_and_the_same_command_goes_on(
    limit: int, file: str, code: int, healthy: Registered, tmp_path: Path
) -> None:
    root = data_set(tmp_path / "data")
    out = tmp_path / "out"
    words = ("general-bench", "register", "-d", root, "-o", out, "-m", "Toy")
    full = lmms_eval(*words, limit_file_size=limit)
    assert full.code == code, full.shown
    (error,) = (line for line in full.err.splitlines() if line.startswith("error: "))
    assert (f"{file} cannot be written: " if code == 2 else f"{file} took only ") in error
    assert "internal error" not in error
    assert not (out / "Toy_result.xlsx").exists()
    again = lmms_eval(*words)
    assert again.code == 0, again.shown
    assert workbook_cells(out / "Toy_result.xlsx", "Toy") == healthy.cells


# --- SIGKILL


MANY = 600


def killed_when(words: list[str], is_so: Callable[[], bool]) -> bool:
    """Start a command and kill it then; ``False`` if it ended before."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lmms_eval", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while process.poll() is None and not is_so():
            time.sleep(0.002)
        was_running = process.poll() is None
    finally:
        process.kill()
        process.wait()
    return was_running


def test_scoring_goes_on_after_kills_at_random_instants(tmp_path: Path) -> None:
    root = many(tmp_path / "data", MANY)
    whole = register(root, tmp_path / "whole")
    assert whole.ended.code == 0, whole.ended.shown
    total = lines_of(tmp_path / "whole" / ".scores")
    assert total >= 2 * MANY
    out, draw, kills = tmp_path / "out", random.Random(20261121), 0
    words = ["general-bench", "register", "-d", str(root), "-o", str(out), "-m", "Toy"]
    for share in (0.2, 0.5, 0.8):
        wanted = int(total * (share + 0.1 * draw.random()))
        kills += killed_when(words, lambda wanted=wanted: lines_of(out / ".scores") >= wanted)  # type: ignore[misc]
    assert kills >= 2
    assert 0 < lines_of(out / ".scores") <= total + kills and not (out / "Toy_result.xlsx").exists()
    found = register(root, out)
    assert found.ended.code == 0, found.ended.shown
    assert found.scores == whole.scores and found.cells == whole.cells
    kept = [
        json.loads(line)
        for line in (out / ".scores" / "Toy" / f"{TASKS[RAIN]}.jsonl").read_bytes().split(b"\n")
        if line
    ]
    assert len({record["key"] for record in kept}) == len(kept) == MANY  # nothing was scored twice
    assert set(found.scores) <= set(tasks_by_id())
