"""Runs that somebody damaged or forged, read by every command: a clean message or a number, never an internal error."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmms_eval.cli.main import main
from lmms_eval.engine.store import RunStore
from lmms_eval.results.follow import FollowedRun
from lmms_eval.storage.lines import sealed, unsealed
from tests.cases import for_each
from tests.engine.journaled import KEY as SCORING
from tests.results.runs import FAILED, KEY, STAMP, document, sample, write_record

RECORDS = [
    {
        "task": "quiz", "doc_id": doc_id, "key": SCORING, "target": "right", "doc": {"topic": "a"},
        "doc_hash": f"{doc_id:064x}", "media": [],
        "answers": [{"value": "said", "input": "asked", "usage": [[3, 2, None]], "finish_reason": "stop"}],
        "scores": [{"filter": "none", "filtered": "said", "metrics": {"acc": doc_id % 2, "graded": {"score": 0.5}}}],
    }
    for doc_id in range(3)
]  # fmt: skip
RESPONSES = [
    {
        "id": f"quiz/{number}/0/0/0", "text": "said", "usage": [3, 2, None], "finish_reason": "stop", "latency": 0.1,
        "model": "m", "media": [{"type": "image", "path": "/x.png", "sha256": "0" * 64}], "prompt": "0" * 16,
    }
    for number in range(4)
]  # fmt: skip
WHOLE = document(
    **{
        "n-samples": {"quiz": {"original": 4, "effective": 4}},
        "versions": {"quiz": 1},
        "group_subtasks": {"all": ["quiz"]},
        "groups": {"all": {"alias": "all", "acc,none": 0.5}},
        "intervals": {"quiz": {"acc,none": {"low": 0.1, "high": 0.9, "method": "wilson"}}},
        "paired": {"quiz": {"acc,none": {"baseline": "b", "unit": "percent", "difference": 1.0, "pvalue": 0.5}}},
        "early_stop": {"quiz": {"rule": "x", "order": "", "asked": 3, "of": 4, "interval": None}},
        "usage": {"total": {"input_tokens": 3}},
    }
)
VALUES = st.sampled_from([
    None, True, -1, 3.5, 10**30, float("nan"), float("inf"), "", "x", "\ud800", "a;=1+1", "1e400", "9" * 400, [], [[]],
    [1, "x"], [None], {}, {"a": 1}, {"": None},
])  # fmt: skip
GONE = object()


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*place, key))


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return None if new is GONE else new
    made = copy.deepcopy(value)
    owner = made
    for key in place[:-1]:
        owner = owner[key]
    if new is GONE:
        del owner[place[-1]]
    else:
        owner[place[-1]] = new
    return made


def changes(value: Any) -> st.SearchStrategy[Any]:
    """The value with a part of another type, or without it."""
    return st.builds(changed, st.just(value), st.sampled_from(list(places(value))), VALUES | st.just(GONE))


def write(folder: Path, results: Any, rows: list[Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{STAMP}_results.json").write_text(json.dumps(results))
    (folder / f"{STAMP}_samples_quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def check(capsys: pytest.CaptureFixture[str], *words: Any) -> None:
    code = main([str(word) for word in words])
    told = capsys.readouterr()
    assert code in (0, 2, 3, 4, 5), told.err
    assert "Traceback" not in told.err and "internal error" not in told.err, told.err


def check_all(capsys: pytest.CaptureFixture[str], run: Path, other: Path, out: Path) -> None:
    """Read a run by every command."""
    policy = out / "policy.yaml"
    policy.write_text("margin: 0.05\ntasks: [quiz]\n")
    for words in (("show", run), ("show", run, "--json"), ("show", run, "quiz"), ("show", run, "quiz", "1")):
        check(capsys, *words)
    check(capsys, "show", run, "--where", "score < 1")
    for form in ("jsonl", "csv"):
        check(capsys, "export", run, "--to", form, "--out", out / f"samples.{form}")
    files = ("--json", out / "c.json", "--csv", out / "c.csv", "--markdown", out / "c.md", "--flips", out / "f.jsonl")
    check(capsys, "compare", run, other, "--by", "topic", "--draws", 100, *files)
    check(capsys, "gate", run, other, "--policy", policy, "--json", out / "g.json", "--junit", out / "g.xml")
    check(capsys, "report", run, "--out", out / "report", "--no_media")


ROWS = [*map(sample, range(3)), FAILED]
FUZZED = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@FUZZED
@given(st.tuples(changes(WHOLE), st.just(ROWS)) | st.tuples(st.just(WHOLE), changes(ROWS)))
def test_results_of_others_end_in_a_message_or_a_number(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str], run: tuple[Any, Any]
) -> None:
    results, rows = run
    out = tmp_path_factory.mktemp("hostile")
    other = write(out / "other", {**WHOLE, "run_key": "f" * 16, "date": "2024-02-02"}, ROWS)
    given_rows = rows if isinstance(rows, list) else [rows]
    check_all(capsys, write(out / "run", results, given_rows), other, out)


@for_each(
    ("place", "value", "told"),
    [
        (("outcomes", "quiz"), [1], "'outcomes.quiz' holds [1], not an object"),
        (("higher_is_better", "quiz", "acc"), "x", "'higher_is_better.quiz.acc' holds 'x', not true or false"),
        (("n-shot",), -1, "'n-shot' holds -1, not an object"),
        (("configs", "quiz", "metric_list"), True, "'configs.quiz.metric_list' holds True, not a list"),
        (("outcomes", "quiz", "n", "acc,none"), "3", "'outcomes.quiz.n.acc,none' holds '3', not a number"),
        (("intervals", "quiz", "acc,none", "low"), "\ud800", "holds '\\ud800', not a number"),
    ],
)
def test_what_is_wrong_with_a_results_file_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: tuple[str, ...], value: Any, told: str
) -> None:
    run = write(tmp_path / "run", changed(WHOLE, place, value), ROWS)
    for command in ("show", "export", "report"):
        more = {"show": (), "export": ("--to", "jsonl"), "report": ("--out", str(tmp_path / "report"))}[command]
        assert main([command, str(run), *more]) == 2
        assert told in capsys.readouterr().err


def sealed_line(content: bytes) -> bytes:
    """A line whose checksum fits, whatever it holds."""
    return sealed(content.replace(b"\n", b" ") + b"}")


def of_json(value: Any) -> bytes:
    return json.dumps(value).encode()[:-1]


LINES = (
    st.binary(max_size=40)
    | VALUES.map(of_json)
    | st.sampled_from(RECORDS + RESPONSES).flatmap(changes).map(of_json)
)  # fmt: skip


def journals(folder: Path, scores: list[bytes], responses: list[bytes]) -> Path:
    record = write_record(folder)
    sound = [[orjson.dumps(one) for one in kind] for kind in (RECORDS, RESPONSES)]
    for name, before, lines in (("scores", sound[0], scores), ("responses", sound[1], responses)):
        content = [*map(sealed, before[:2]), *map(sealed_line, lines), *map(sealed, before[2:])]
        (record / f"{name}-0.jsonl").write_bytes(b"".join(content))
    return record


@FUZZED
@given(st.lists(LINES, max_size=3), st.lists(LINES, max_size=3))
def test_lines_of_journals_that_fit_their_checksum_are_read_or_passed_over(
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    scores: list[bytes],
    responses: list[bytes],
) -> None:
    out = tmp_path_factory.mktemp("journals")
    record = journals(out / "model" / ".runs" / KEY, scores, responses)
    other = write(out / "other", {**WHOLE, "run_key": "f" * 16}, ROWS)
    check_all(capsys, record, other, out)
    FollowedRun(record).look()
    store = RunStore(record, SCORING)  # as a run that goes on does
    assert {0, 1, 2} <= {one["doc_id"] for one in store.records() if one["task"] == "quiz"}
    store.close()


@for_each("command", ["show", "export", "compare", "report"])
def test_damaged_lines_are_counted_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    bad = [b"no JSON", b"[1, 2", b'{"task": 5, "doc_id": "x"']
    record = journals(tmp_path / "model" / ".runs" / KEY, bad, [])
    assert unsealed(sealed_line(bad[0])) is not None
    other = write(tmp_path / "other", {**WHOLE, "run_key": "f" * 16}, ROWS)
    more: dict[str, list[Any]] = {
        "compare": [other, "--draws", 100],
        "export": ["--to", "jsonl", "--out", tmp_path / "e.jsonl"],
        "report": ["--out", tmp_path / "report", "--no_media"],
    }
    assert main([command, str(record), *map(str, more.get(command, []))]) == 0
    told = capsys.readouterr()
    assert "3 torn or damaged lines of the journal are skipped" in told.out + told.err
