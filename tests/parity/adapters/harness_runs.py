"""Whole runs: the recorded command is started again, and files and tables are compared as the vectors' README says."""

from __future__ import annotations

import fnmatch
import json
import math
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lmms_eval.filters.reasoning import THOUGHT_TAGS
from tests.faults.command import in_process
from tests.parity.tables import read_tables, table_differences
from tests.parity.vectors import PASSED, Verdict, deviates, failed, path_adapter

COMPARED = ("results", "groups", "group_subtasks", "n-shot", "n-samples", "higher_is_better", "versions", "configs")
CORRECTIONS = {"exit_code", "results", "samples", "table", "ignore", "why"}
CALLABLE = re.compile(r"<(function|class|bound method|built-in) .*>")
UNCLOSED_RULE = "unclosed_thought_is_no_answer"
OURS = re.compile(r"(^|/)(\.runs/|media/[0-9a-f]{64}\.\w+$)")
"""Files that the reference does not write: the records of runs, and the media that they keep."""
FOLDER_RULE = "unnamed_models_have_folders_of_their_own"
OWN_FOLDER = re.compile(r"^[\w-]+-[^/]*=[^/]*/")
"""The folder of a model without a name, of its back end and arguments."""
LOOSE = ("bleu", "chrf", "ter")


@dataclass(frozen=True)
class Case:
    """One recorded run and its corrections."""

    folder: Path
    command: Mapping[str, Any]
    wanted: Mapping[str, Any]

    @property
    def ignored(self) -> list[str]:
        return [entry["path"] for entry in self.wanted.get("ignore", [])]


@dataclass
class Outcome:
    """What our command gave."""

    exit_code: int
    stdout: str
    stderr: str
    files: dict[str, Path] = field(default_factory=dict)
    """Written files by their recorded name (date normalised); a repeated name maps to the latest."""
    written: list[str] = field(default_factory=list)
    has_own_folder: bool = False
    """A run of a second model without a name wrote into a folder of its own."""


@path_adapter("harness/runs/*")
def run_folder(folder: Path) -> Sequence[Verdict]:
    command = json.loads((folder / "command.json").read_text())
    wanted_file = folder / "wanted.json"
    case = Case(folder, command, json.loads(wanted_file.read_text()) if wanted_file.exists() else {})
    misfits = list(_misfits(case))
    if misfits:
        return [failed("; ".join(misfits))]
    with tempfile.TemporaryDirectory() as work:
        outcome, inputs = _start(case, Path(work))
        return [
            _judge(name, differences, _rule(name, outcome, folder))
            for name, differences in _compare(case, outcome, inputs)
        ]


def _misfits(case: Case) -> Iterator[str]:
    """What ``wanted.json`` says that fits nothing in the record, so that it would correct nothing."""
    yield from (f"wanted.json: unknown key {key!r}" for key in case.wanted.keys() - CORRECTIONS)
    table = case.folder / "table.txt"
    rows = {key for found in read_tables(table.read_text()) for key in found.keys} if table.exists() else set()
    yield from (f"wanted.json, table: no row {key!r}" for key in case.wanted.get("table", {}) if key not in rows)
    for name, documents in case.wanted.get("samples", {}).items():
        file = case.folder / name
        lines = file.read_text().splitlines() if file.exists() else []
        recorded = {str(json.loads(line)["doc_id"]) for line in lines}
        yield from (
            f"wanted.json, samples: no document {name}/{doc_id}" for doc_id in documents if doc_id not in recorded
        )
        if not file.exists():
            yield f"wanted.json, samples: no file {name}"


def _rule(name: str, outcome: Outcome, folder: Path) -> str:
    """The rule of a deviation that a part of the record shows; empty if it shows none."""
    if name == "command" and outcome.has_own_folder:
        return FOLDER_RULE
    return UNCLOSED_RULE if _has_unclosed_thought(folder / name) else ""


def _judge(name: str, differences: Iterator[str], rule: str) -> Verdict:
    found = list(differences)
    if found:
        return failed(f"{name}: " + "; ".join(found[:8]))
    return deviates(rule) if rule else PASSED


def _has_unclosed_thought(path: Path) -> bool:
    return path.suffix == ".jsonl" and any(_is_unclosed(json.loads(line)) for line in path.read_text().splitlines())


def _is_unclosed(row: Mapping[str, Any]) -> bool:
    """The recorded answer begins with an opening tag of thoughts that is never closed."""
    said = row.get("filtered_resps")
    return isinstance(said, str) and any(
        said.lstrip().startswith(opening) and closing not in said for opening, closing in THOUGHT_TAGS
    )


def _compare(case: Case, outcome: Outcome, inputs: str) -> Iterator[tuple[str, Iterator[str]]]:
    yield "command", _compare_command(case, outcome)
    for path in sorted(case.folder.iterdir()):
        if path.name == "results.json":
            yield path.name, _compare_results(case, outcome, json.loads(path.read_text()), inputs)
        elif path.suffix == ".jsonl":
            yield path.name, _compare_samples(case, outcome, path)
        elif path.name == "table.txt":
            yield path.name, _compare_tables(case, outcome, path.read_text())


def _start(case: Case, work: Path) -> tuple[Outcome, str]:
    source = case.folder.parent.parent / "inputs"
    inputs, out = work / "inputs", work / "out"
    shutil.copytree(source, inputs)
    for path in [inputs, *inputs.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    cwd = inputs / "work"
    cwd.mkdir()
    places = {"<INPUTS>": str(inputs), "<OUT>": str(out), "<WORK>": str(inputs), "<TRACE>": str(work / "trace")}
    argv = [_replace(word, places) for word in case.command["argv"]]
    with chdir(cwd), _importable(inputs / "plugin"):
        done = in_process(*argv)
    outcome = Outcome(done.code, done.out, done.err)
    for file in sorted(out.rglob("*")):
        relative = file.relative_to(out).as_posix()
        if file.is_file() and not OURS.search(relative):
            name = re.sub(r"\d{8}_\d{6}", "<DATE>", relative)
            plain = OWN_FOLDER.sub("", name)
            outcome.has_own_folder |= plain != name
            outcome.written.append(plain)
            outcome.files[plain] = file
    return outcome, str(inputs)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Find modules and plugins in a folder, also in processes of the run, and forget the modules behind the block."""
    known = set(sys.modules)
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    with patch.dict(os.environ, {"PYTHONPATH": path}), patch.object(sys, "path", [str(folder), *sys.path]):
        yield
    for name in sys.modules.keys() - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder.parent)):
            del sys.modules[name]


def _replace(text: str, places: Mapping[str, str]) -> str:
    for mark, place in places.items():
        text = text.replace(mark, place)
    return text


def _compare_command(case: Case, outcome: Outcome) -> Iterator[str]:
    expected = case.wanted.get("exit_code", case.command["exit_code"])
    if outcome.exit_code != expected:
        yield f"exit code {outcome.exit_code}, not {expected}: {outcome.stderr[-600:]}"
    if sorted(outcome.written) != sorted(case.command["files_written"]):
        yield f"files {sorted(outcome.written)}, not {sorted(case.command['files_written'])}"


def _find(outcome: Outcome, suffix: str) -> Path | None:
    return next((path for name, path in outcome.files.items() if name.endswith(f"<DATE>_{suffix}")), None)


def _compare_results(case: Case, outcome: Outcome, recorded: dict[str, Any], inputs: str) -> Iterator[str]:
    path = _find(outcome, "results.json")
    if path is None:
        yield "no results file"
        return
    ours = json.loads(path.read_text().replace(inputs, "<INPUTS>"))
    expected = merge_patch({key: recorded[key] for key in COMPARED if key in recorded}, case.wanted.get("results", {}))
    for key in COMPARED:
        if key in expected:
            yield from _differences(expected[key], ours.get(key), f"/{key}", case.ignored)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _differences(expected: Any, ours: Any, path: str, ignored: Sequence[str]) -> Iterator[str]:
    if any(fnmatch.fnmatchcase(path, pattern) for pattern in ignored):
        return
    if isinstance(expected, str) and CALLABLE.fullmatch(expected):
        return
    if isinstance(expected, dict):
        if not isinstance(ours, dict):
            yield f"{path}: {ours!r}, not a mapping"
            return
        for key, value in expected.items():
            if key not in ours and not (isinstance(value, str) and CALLABLE.fullmatch(value)):
                yield f"{path}/{key} is missing"
            else:
                yield from _differences(value, ours.get(key), f"{path}/{key}", ignored)
    elif isinstance(expected, list) and isinstance(ours, list) and len(expected) == len(ours):
        for number, (left, right) in enumerate(zip(expected, ours, strict=True)):
            yield from _differences(left, right, f"{path}/{number}", ignored)
    elif not same(expected, ours, path):
        yield f"{path}: {ours!r}, not {expected!r}"


def same(expected: Any, ours: Any, path: str = "") -> bool:
    if isinstance(expected, bool) or isinstance(ours, bool):
        return type(expected) is type(ours) and expected == ours
    if isinstance(expected, int | float) and isinstance(ours, int | float):
        tolerance = 1e-6 if any(name in path for name in LOOSE) else 1e-9
        return math.isclose(expected, ours, rel_tol=tolerance, abs_tol=1e-12)
    return type(expected) is type(ours) and bool(expected == ours)


def _compare_samples(case: Case, outcome: Outcome, path: Path) -> Iterator[str]:
    file = _find(outcome, path.name)
    if file is None:
        yield "no samples file"
        return
    ours = [json.loads(line) for line in file.read_text().splitlines()]
    pipelines = list(dict.fromkeys(row["filter"] for row in ours))
    by_key = {(row["doc_id"], row["filter"]): row for row in ours}
    corrections = case.wanted.get("samples", {}).get(path.name, {})
    seen: dict[int, int] = {}
    expected_keys = set()
    for line in path.read_text().splitlines():
        expected = json.loads(line)
        doc_id = expected["doc_id"]
        number = seen.get(doc_id, 0)
        seen[doc_id] = number + 1
        patch = corrections.get(str(doc_id), {})
        if patch is None:
            continue
        name = pipelines[number] if number < len(pipelines) else "?"
        expected_keys.add((doc_id, name))
        row = by_key.get((doc_id, name))
        if row is None:
            yield f"row {doc_id} of block {number} is missing"
            continue
        yield from _compare_row({**expected, **patch}, row, f"/samples/{path.name}/{doc_id}", case.ignored)
    extra = set(by_key) - expected_keys
    if extra:
        yield f"rows that are not wanted: {sorted(extra)[:5]}"


def _compare_row(expected: dict[str, Any], ours: dict[str, Any], path: str, ignored: Sequence[str]) -> Iterator[str]:
    if _is_unclosed(expected):
        expected = {**expected, "resps": expected["filtered_resps"], "filtered_resps": ""}
    for row in (expected, ours):
        row.setdefault("resps", row.get("filtered_resps"))
    for key, value in expected.items():
        place = f"{path}/{key}"
        if key == "doc_hash" or any(fnmatch.fnmatchcase(place, pattern) for pattern in ignored):
            continue
        if key == "token_counts":
            if _token_sums(value) != _token_sums(ours.get(key)):
                yield f"{place}: {ours.get(key)}, not {value}"
        else:
            yield from _differences(value, ours.get(key), place, ignored)


def _token_sums(counts: Any) -> dict[str, int]:
    sums: dict[str, int] = {}
    for entry in counts or []:
        for key, value in (entry or {}).items():
            sums[key] = sums.get(key, 0) + (value or 0)
    return sums


def _compare_tables(case: Case, outcome: Outcome, text: str) -> Iterator[str]:
    yield from table_differences(text, outcome.stdout, case.wanted.get("table"))
