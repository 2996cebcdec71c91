"""What a report holds, and what it says of runs that are damaged."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.cli.main import main
from lmms_eval.errors import DataError, UsageError
from lmms_eval.viewer.chunks import json_of
from lmms_eval.viewer.media import MOST_BYTES, MediaFolders, MediaStore
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import WrittenReport, write_report
from lmms_eval.viewer.runs import read_report_runs
from tests.cases import for_each


def content(out: Path, name: str) -> Any:
    text = (out / "data" / f"{name}.js").read_text()
    found = re.fullmatch(r'lmmsChunk\("([a-z0-9-]+)",(".*")\);\n', text, re.DOTALL)
    assert found
    assert found[1] == name
    return json.loads(json.loads(found[2]))


def columns(out: Path, task: str = "0-0") -> dict[str, list[Any]]:
    """The cells of a small task's index, by the keys of its columns; of empty ones and of counted ids none."""
    index = content(out, f"index-{task}")

    def cells(column: dict[str, Any]) -> list[Any]:
        if column["kind"] != "codes" or "empty" in column:
            return column.get("all", [])
        codes = [0] * index["count"] if "same" in column else column["all"]
        return [None if code < 0 else column["values"][code] for code in codes]

    return {column["key"]: cells(column) for column in index["columns"]}


def report_of(out: Path, *runs: Path, **options: Any) -> WrittenReport:
    return write_report([str(run) for run in runs], out, ReportOptions(**options))


def only_run(out: Path) -> dict[str, Any]:
    (run,) = content(out, "runs")["runs"]
    return run


def warnings(out: Path) -> list[str]:
    return [one["text"] for one in only_run(out)["warnings"]]


def test_the_command_writes_a_folder_that_needs_nothing_else(quiz_runs, tmp_path, capsys) -> None:
    out = tmp_path / "report"
    assert main(["report", *map(str, quiz_runs), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"2 runs, 138 samples: open {out / 'index.html'}\n"
    assert {path.name for path in out.iterdir()} == {"index.html", "app.js", "app.css", "data", "media"}
    first, second = content(out, "runs")["runs"]
    assert (first["name"], second["name"]) == ("baseline@gold", "baseline@letter")
    (row,) = second["rows"]
    assert (row["metric"], row["n"], round(row["value"], 4)) == ("exact_match", 69, 0.2899)
    assert second["command"].startswith("lmms-eval")
    assert len(content(out, "text-1-0-0")) == 69
    assert columns(out)["s.exact_match,none"] == [1] * 69
    assert columns(out)["m.kind"][:3] == ["even", "odd", "even"]
    page = (out / "index.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert re.search(r"script-src 'nonce-[\w-]{24}';", page)


def test_breakdowns_have_numbers_with_intervals(quiz_runs, tmp_path) -> None:
    report_of(tmp_path / "r", quiz_runs[1], media="none")
    parts = {one["column"]: one for one in content(tmp_path / "r", "run-0")["tasks"]["quiz"]["breakdowns"]}
    cells = {cell["name"]: cell for cell in parts["level"]["metrics"]["exact_match,none"]}
    assert {name: cell["n"] for name, cell in cells.items()} == {"0": 24, "1": 15, "2": 15, "3": 15}
    assert cells["1"]["value"] == pytest.approx(1 / 3)
    assert (round(cells["1"]["low"], 4), round(cells["1"]["high"], 4)) == (0.1518, 0.5829)  # Wilson's of 5 of 15
    assert sum(cell["value"] * cell["n"] for cell in cells.values()) == pytest.approx(20)


def test_breakdowns_are_over_the_samples_that_are_listed(quiz_runs, tmp_path) -> None:
    report_of(tmp_path / "few", quiz_runs[1], media="none", limit=40)
    few = content(tmp_path / "few", "run-0")["tasks"]["quiz"]["breakdowns"]
    assert {sum(cell["n"] for cell in one["metrics"]["exact_match,none"]) for one in few} == {40}
    report_of(tmp_path / "redacted", quiz_runs[1], media="none", limit=40, redact=frozenset({"level"}))
    found = content(tmp_path / "redacted", "run-0")["tasks"]["quiz"]["breakdowns"]
    assert {one["column"] for one in few} - {one["column"] for one in found} == {"level"}


def test_thumbnails_are_small_and_made_once(quiz_runs, tmp_path) -> None:
    from PIL import Image

    report = report_of(tmp_path / "r", quiz_runs[0])
    assert report.missing_media == 0
    files = list((tmp_path / "r/media").glob("*.webp"))
    assert len(files) == 7  # six pictures and the one that all hostile documents show
    assert {max(Image.open(file).size) for file in files} == {512, 40}
    assert all(file.stat().st_size <= MOST_BYTES for file in files)
    report_of(tmp_path / "full", quiz_runs[0], media="full")
    assert sum(file.suffix == ".png" for file in (tmp_path / "full/media").iterdir()) == 7
    report_of(tmp_path / "none", quiz_runs[0], media="none")
    assert not (tmp_path / "none/media").exists()


def test_pictures_that_do_not_compress_are_made_smaller(tmp_path) -> None:
    from PIL import Image

    Image.effect_noise((2000, 1500), 90).save(tmp_path / "noise.png")
    store = MediaStore(tmp_path / "media", "thumbnails")
    item = store.add({"type": "image", "path": str(tmp_path / "noise.png")}, MediaFolders(())).result()
    store.close()
    file = tmp_path / item["src"]
    assert file.stat().st_size <= MOST_BYTES
    assert max(Image.open(file).size) >= 256


def test_samples_are_limited_and_values_left_out(quiz_runs, tmp_path) -> None:
    report_of(tmp_path / "r", quiz_runs[1], limit=5, redact=frozenset({"question", "input", "kind"}))
    samples = content(tmp_path / "r", "text-0-0-0")
    assert [sample["id"] for sample in samples] == ["0", "1", "2", "3", "4"]
    assert {sample["lines"][0]["input"] for sample in samples} == {"[REDACTED]"}
    assert columns(tmp_path / "r")["m.kind"] == ["[REDACTED]"] * 5
    everything = "".join(file.read_text() for file in (tmp_path / "r/data").iterdir())
    assert "What is 1 and one?" not in everything
    assert report_of(tmp_path / "failed", quiz_runs[1], only_failed=True).samples == 0
    with pytest.raises(UsageError, match="--limit 0"):
        ReportOptions(limit=0)


def test_no_other_folder_is_written_to(quiz_runs, tmp_path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds something other than a report"):
        report_of(tmp_path, quiz_runs[0])
    with pytest.raises(DataError, match="no such file or folder"):
        report_of(tmp_path / "r", tmp_path / "absent")
    report_of(tmp_path / "r", quiz_runs[0], limit=1)
    report_of(tmp_path / "r", quiz_runs[0], limit=2)  # a report is replaced
    assert len(content(tmp_path / "r", "text-0-0-0")) == 2
    report_of(tmp_path / "r", quiz_runs[1], media="none")
    assert not list((tmp_path / "r/media").iterdir())


def copied(run: Path, to: Path) -> Path:
    shutil.copytree(run, to)
    return to


def test_a_journal_that_a_kill_has_torn_is_read_as_far_as_it_goes(quiz_runs, tmp_path) -> None:
    run = copied(quiz_runs[1], tmp_path / "run")
    for file in [*run.glob("*_samples_*"), *run.glob("*_results.json")]:
        file.unlink()
    (journal,) = run.glob(".runs/*/scores-0.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:40]) + lines[40][:30])
    report = report_of(tmp_path / "r", run)
    (read,) = read_report_runs([str(run)])
    (task,) = read.rows.tasks.values()
    assert (report.samples, task.statuses.count("scored"), task.statuses.count("unscored")) == (69, 40, 29)
    assert any("1 torn or damaged lines of the journal are skipped" in text for text in warnings(tmp_path / "r"))
    sample = content(tmp_path / "r", "text-0-0-0")[7]["lines"][0]
    number = sample["doc_id"]  # the journal holds documents in the order in which they were finished
    said = (sample["input"], sample["filtered_resps"], sample["exact_match"])
    assert said == (f"What is {number} and one?", "A", float(number % 3 == 0))


def test_damaged_samples_are_told_and_the_rest_is_shown(quiz_runs, tmp_path) -> None:
    run = copied(quiz_runs[1], tmp_path / "run")
    (samples,) = run.glob("*_samples_*")
    samples.write_bytes(samples.read_bytes()[:-40])
    assert report_of(tmp_path / "r", run).samples == 68
    assert any("1 damaged lines are skipped" in text for text in warnings(tmp_path / "r"))
    samples.unlink()
    assert report_of(tmp_path / "journal", run).samples == 69
    shutil.rmtree(run / ".runs")
    assert report_of(tmp_path / "without", run).samples == 0
    assert any("without samples (--log_samples) or journal: quiz" in text for text in warnings(tmp_path / "without"))
    assert only_run(tmp_path / "without")["rows"][0]["n"] == 69


def test_pictures_that_are_gone_are_told(quiz_runs, tmp_path) -> None:
    run = copied(quiz_runs[0], tmp_path / "run")
    (samples,) = run.glob("*_samples_*")
    samples.write_text(samples.read_text().replace("picture1.png", "gone.png"))
    assert report_of(tmp_path / "r", run).missing_media == 1
    media = content(tmp_path / "r", "text-0-0-0")[1]["media"]
    assert re.fullmatch(r"there is no file .*gone\.png", media[0]["missing"])
    assert content(tmp_path / "r", "text-0-0-0")[0]["media"][0]["src"].startswith("media/")


def picture(path: Path) -> Path:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), "red").save(path)
    return path


@for_each("mode", ["thumbnails", "full"])
@for_each("is_sent", [True, False])
@for_each("name", ["{secret}", "../secrets/key.png", "link.png", "folder/key.png"])
def test_a_foreign_run_shows_no_file_from_elsewhere(tmp_path: Path, name: str, is_sent: bool, mode: Any) -> None:
    secret, foreign = picture(tmp_path / "secrets/key.png"), tmp_path / "foreign"
    own = picture(foreign / "own.png")
    (foreign / "link.png").symlink_to(secret)
    (foreign / "folder").symlink_to(secret.parent)
    media = [{"type": "image", "path": path} for path in (name.format(secret=secret), "own.png", str(own))]
    key = "sent_media" if is_sent else "input_media"
    line = {"doc_id": 0, "doc": {"a": 1}, "target": "x", "filtered_resps": ["x"], "acc": 1.0, key: media}
    file = foreign / "20260101_000000_samples_made.jsonl"
    file.write_text(json.dumps(line) + "\n")
    assert report_of(tmp_path / "r", file, media=mode).missing_media == 1
    lost, *shown = content(tmp_path / "r", "text-0-0-0")[0]["media"]
    assert "is outside of the run's folder" in lost["missing"]
    assert "src" not in lost
    assert all("src" in item for item in shown)
    assert report_of(tmp_path / "r", file, media=mode, allowed=(secret.parent,)).missing_media == 0


def test_a_run_that_has_lost_its_record_is_foreign(quiz_runs, tmp_path, capsys) -> None:
    run = copied(quiz_runs[0], tmp_path / "run")
    assert report_of(tmp_path / "a", run).missing_media == 0
    for record in run.rglob(".runs"):
        shutil.rmtree(record)
    report = report_of(tmp_path / "b", run)
    assert report.missing_media > 0
    assert main(["report", str(run), "--out", str(tmp_path / "c"), "--allow_path", "/"]) == 0
    assert "not shown" not in capsys.readouterr().err


def test_runs_of_other_harnesses(tmp_path) -> None:
    table = tmp_path / "others.csv"
    table.write_text("id,score,answer,target\n" + "".join(f"{n},{n % 2},a{n},t{n}\n" for n in range(10)))
    assert report_of(tmp_path / "r", table).samples == 10
    (row,) = only_run(tmp_path / "r")["rows"]
    assert (row["value"], row["n"]) == (0.5, 10)
    line = content(tmp_path / "r", "text-0-0-0")[3]["lines"][0]
    assert (line["filtered_resps"], line["target"], line["score"]) == ("a3", "t3", 1.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_value_becomes_json_that_browsers_read(value) -> None:
    json.loads(json_of(value).encode("utf-8"), parse_constant=lambda name: pytest.fail(name))


@for_each("keys", [{"thoughts"}, {"filtered_resps"}, {"resps"}])
def test_thoughts_are_left_out_with_the_answers_that_hold_them(keys: set[str]) -> None:
    options = ReportOptions(redact=frozenset(keys))
    assert "thoughts" in options.redact
    assert ({"resps", "raw_resps"} <= options.redact) == (keys == {"thoughts"})


def test_what_was_read_goes_with_a_redacted_answer(tmp_path) -> None:
    reading = {"rule": "last match", "extracted": ["secret 42"]}
    line = {"doc_id": 0, "filtered_resps": "it is secret 42", "exact_match": 1.0, "answer_reading": reading}
    file = tmp_path / "20250101_000000_samples_quiz.jsonl"
    file.write_text(json.dumps(line) + "\n")
    report_of(tmp_path / "r", file, redact=frozenset({"filtered_resps"}))
    assert "secret" not in "".join(path.read_text() for path in (tmp_path / "r" / "data").iterdir())
    report_of(tmp_path / "whole", file)
    assert columns(tmp_path / "whole", "0-0")["m.audit.rule.rule"] == ["last match"]


def test_runs_that_cannot_be_read_stand_beside_the_others(tmp_path, capsys) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/20250101_000000_results.json").write_text("no JSON {")
    good = tmp_path / "good.csv"
    good.write_text("id,score\n1,1\n2,0\n")
    assert main(["report", str(tmp_path / "bad"), str(good), "--out", str(tmp_path / "r")]) == 0
    assert "is no complete JSON file" in capsys.readouterr().err
    runs = content(tmp_path / "r", "runs")["runs"]
    assert sorted(run["kind"] for run in runs) == ["table", "unreadable"]
    (unread,) = [run for run in runs if run["kind"] == "unreadable"]
    assert "is no complete JSON file" in unread["warnings"][0]["text"]
    with pytest.raises(DataError, match="is no complete JSON file"):
        report_of(tmp_path / "alone", tmp_path / "bad")


def test_lines_that_are_no_samples_are_passed_over(tmp_path) -> None:
    file = tmp_path / "20250101_000000_samples_quiz.jsonl"
    lines = [
        {"doc_id": 1, "filtered_resps": "a", "acc": 1.0, "doc": {"kind": "x"}},
        {"doc_id": None, "filtered_resps": "b"},
        {"doc_id": 2},
        {"doc_id": 3, "filtered_resps": "c", "filter": 3},
        {"doc_id": 4, "filtered_resps": 5, "acc": 0.0, "messages": [3], "judge": 4, "sent_media": [7], "repeats": 3},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report_of(tmp_path / "r", file)
    assert [sample["id"] for sample in content(tmp_path / "r", "text-0-0-0")] == ["1", "4"]
    (run,) = content(tmp_path / "r", "runs")["runs"]
    assert any("lines that are not samples" in note and "(3)" in note for note in run["notes"])


def test_a_run_that_is_given_twice_is_listed_once(
    quiz_runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (link := tmp_path / "link").symlink_to(quiz_runs[0])
    words = [str(quiz_runs[0]), str(link), str(quiz_runs[1]), str(quiz_runs[0].parent), "--out", str(tmp_path / "out")]
    assert main(["report", *words]) == 0
    told = capsys.readouterr()
    assert (
        told.out.startswith("2 runs, 138 samples") and told.err.count("more than once: the report holds it once") == 3
    )
    assert len(content(tmp_path / "out", "runs")["runs"]) == 2
