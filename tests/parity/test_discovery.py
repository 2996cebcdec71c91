from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from tests.parity.compare import agree, decode
from tests.parity.discovery import Rules, Unit, count_lines, find_units, load_rules, match
from tests.parity.report import summary_lines, tally
from tests.parity.test_vectors import check, judge, report_absence
from tests.parity.vectors import PASSED, LineAdapter, Vector, Verdict, deviates, failed, pending

RULES = Rules({"known": "because"}, {"late/*": "the late part", "runs/*/": "runs"}, {"prose.jsonl": "prose"})
REPOSITORY = Path(__file__).parents[2]


def write(root: Path, path: str, text: str = "{}\n") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_every_file_is_found_and_classified(tmp_path: Path) -> None:
    write(tmp_path, "harness/functions/names.jsonl")
    write(tmp_path, "late/one.jsonl", "{}\n\n{}\n")
    write(tmp_path, "late/case/expected/a/x.json")
    write(tmp_path, "late/case/expected/b.csv")
    write(tmp_path, "late/case/input.json")
    write(tmp_path, "runs/r1/samples.jsonl")
    write(tmp_path, "prose.jsonl")
    found = {unit.path: (unit.kind, unit.count) for unit in find_units(tmp_path, RULES)}
    assert found == {
        "harness/functions/names.jsonl": ("line", 1),
        "late/one.jsonl": ("pending", 2),
        "late/case": ("pending", 2),
        "runs/r1": ("pending", 1),
    }


@for_each(
    ("files", "path", "count"),
    [
        (("stem.jsonl",), "stem.jsonl", 2),
        (("table.json",), "table.json", 1),
        (("a/b/c/stem.jsonl",), "a/b/c/stem.jsonl", 2),
        (("a/case/expected.json", "a/case/input.jsonl"), "a/case", 1),
        (("a/case/expected/x/one.json", "a/case/expected/two.csv", "a/case/inputs/x.json"), "a/case", 2),
    ],
)
def test_what_has_no_adapter_is_pending_and_named(
    tmp_path: Path, files: tuple[str, ...], path: str, count: int
) -> None:
    for file in files:
        write(tmp_path, file, "{}\n\n{}\n")
    (unit,) = find_units(tmp_path, RULES)
    assert (unit.path, unit.kind, unit.detail, unit.count) == (path, "pending", "no adapter", count)
    assert judge(unit, tmp_path) == [pending("no adapter")] * count


def test_a_readme_is_no_vector(tmp_path: Path) -> None:
    write(tmp_path, "new/README.md")
    assert find_units(tmp_path, RULES) == []


def test_the_most_exact_pattern_wins() -> None:
    assert match({"a/*": 1, "a/b.jsonl": 2}, "a/b.jsonl") == 2
    assert match({"a/*": 1}, "b/c") is None


def check_verdicts(tmp_path: Path, verdicts: list[Verdict]) -> None:
    recorded: dict[str, object] = {}
    unit = Unit("case", "path", lambda path: verdicts)
    try:
        check(unit, tmp_path, RULES, recorded.__setitem__)
    finally:
        assert recorded["parity"]["path"] == "case"


@for_each("verdicts", [[], [failed("no")], [PASSED, failed("no")], [deviates("unlisted")]])
def test_check_fails(tmp_path: Path, verdicts: list[Verdict]) -> None:
    with pytest.raises(AssertionError):
        check_verdicts(tmp_path, verdicts)


@for_each("verdicts", [[PASSED], [PASSED, deviates("known")], [pending("a part")]])
def test_check_passes(tmp_path: Path, verdicts: list[Verdict]) -> None:
    check_verdicts(tmp_path, verdicts)


def test_an_adapter_that_raises_fails_its_vector(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", '{"x": 1}\n{"x": 2}\n')
    verdicts = judge(
        Unit("a.jsonl", "line", lambda vector: PASSED if vector.record["x"] == 1 else {}["gone"]), tmp_path
    )
    assert [verdict.state for verdict in verdicts] == ["passed", "failed"]
    assert "line 2" in verdicts[1].detail and "KeyError" in verdicts[1].detail
    assert [v.state for v in judge(Unit("a", "path", lambda path: {}["gone"]), tmp_path)] == ["failed"]


def run_parity(golden: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """The tests of the vectors in a process of its own, with ``GOLDEN_DIR`` set."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *flags, "tests/parity/test_vectors.py"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment["GOLDEN_DIR"] = str(golden)
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120)


def test_a_chosen_folder_without_vectors_fails_the_run(tmp_path: Path) -> None:
    done = run_parity(tmp_path / "goldem")
    assert done.returncode == 1
    assert f"no recorded vectors at {tmp_path / 'goldem'}" in done.stdout


def test_only_the_default_folder_may_be_absent(tmp_path: Path) -> None:
    for root, is_chosen in ((tmp_path, True), (tmp_path, False), (tmp_path / "absent", True)):
        with pytest.raises(pytest.fail.Exception, match="no recorded vectors"):
            report_absence(root, is_chosen)
    with pytest.raises(pytest.skip.Exception, match="no recorded vectors"):
        report_absence(tmp_path / "absent", is_chosen=False)


def lines_of(tmp_path: Path, adapter: LineAdapter, *records: dict[str, Any]) -> list[Verdict]:
    write(tmp_path, "a.jsonl", "".join(f"{json.dumps(record)}\n" for record in records))
    return judge(Unit("a.jsonl", "line", adapter), tmp_path)


def same_pair(vector: Vector) -> Verdict:
    """Agrees where ours (1, and 2 as the summary) is what the record expects."""
    found = vector.record["expected"], vector.record.get("expected_summary", 2)
    return PASSED if found == (1, 2) else failed(f"expected {found}")


@for_each(
    ("record", "state"),
    [
        ({"expected": 0, "wanted": 1, "deviation": "r"}, "deviates"),
        ({"expected": 0, "wanted": 5, "deviation": "r"}, "failed"),
        ({"expected": 1, "wanted": 5, "deviation": "r"}, "failed"),
        ({"expected": 1, "deviation": "r"}, "failed"),
        ({"expected": 0, "wanted": 1, "expected_summary": 0, "wanted_summary": 2, "deviation": "r"}, "deviates"),
        ({"expected": 1, "expected_summary": 0, "wanted_summary": 2, "deviation": "r"}, "deviates"),
        ({"expected": 0, "wanted": 1, "expected_summary": 2, "wanted_summary": 0, "deviation": "r"}, "failed"),
        ({"expected": 1, "wanted": 5}, "passed"),
        ({"expected": 0, "wanted": 1}, "failed"),
    ],
)
def test_a_corrected_line_is_compared_with_what_is_wanted(tmp_path: Path, record: dict[str, Any], state: str) -> None:
    (verdict,) = lines_of(tmp_path, same_pair, record)
    assert verdict.state == state
    assert verdict.detail == "r" if state == "deviates" else True


def test_a_corrected_error_gives_way_to_the_keys_that_are_wanted(tmp_path: Path) -> None:
    def adapter(vector: Vector) -> Verdict:
        return PASSED if "error" not in vector.record and vector.record["processed"] == [1] else failed("no")

    good = {"error": "TypeError", "wanted": {"processed": [1]}, "deviation": "r"}
    bad = {"error": "TypeError", "wanted": {"processed": [2]}, "deviation": "r"}
    assert [v.state for v in lines_of(tmp_path, adapter, good, bad)] == ["deviates", "failed"]


def test_a_corrected_line_has_the_rule_it_names(tmp_path: Path) -> None:
    record = {"expected": 0, "wanted": 1, "deviation": "r"}
    assert lines_of(tmp_path, lambda vector: pending("a part"), record) == [pending("a part")]
    assert [v.state for v in lines_of(tmp_path, lambda vector: deviates("other"), record)] == ["failed"]


def test_summary_lines() -> None:
    some = tally("b", [PASSED, PASSED, failed("x"), deviates("r"), deviates("r"), pending("p")])
    assert list(summary_lines([some, tally("a", [pending("later")] * 3)])) == [
        "PENDING a 3 later",
        "PARITY b 2/3",
        "DEVIATES b 2 r",
        "PENDING b 1 p",
    ]


def test_values_are_decoded_and_compared() -> None:
    assert decode([{"$tuple": [1, {"$float": "inf"}]}, {"a": {"$float": "-inf"}}]) == [
        (1, float("inf")),
        {"a": float("-inf")},
    ]
    assert agree(decode({"$float": "nan"}), float("nan"))
    assert agree(1, 1.0 + 1e-12)
    assert agree([1, (2,)], (1, [2]))
    assert not agree(1.0, 1.0 + 1e-6)
    assert not agree(True, 1)
    assert not agree(1, "1")
    assert not agree([1], [1, 2])
    assert not agree({"a": 1}, {"a": 1, "b": 2})
    assert not agree(float("inf"), float("-inf"))


def test_the_shipped_rules_have_reasons() -> None:
    rules = load_rules()
    for table in (rules.deviations, rules.pending_families, rules.without_line):
        assert all(isinstance(reason, str) and reason.strip() for reason in table.values())


def test_a_misspelt_key_of_the_rules_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "deviations.yaml", "deviation: {a: b}\n")
    with pytest.raises(ValueError, match="deviation"):
        load_rules(tmp_path / "deviations.yaml")


def test_blank_lines_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", '{"a": 1}\n\n{"a": 2}')
    assert count_lines(tmp_path / "a.jsonl") == 2


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "xdist"])
def test_the_report_is_printed_from_vectors_of_another_folder(tmp_path: Path, workers: list[str]) -> None:
    good = '{"function": "simple_parse_args_string", "args": ["zz=5"], "expected": {"zz": 5}}\n'
    bad = '{"function": "simple_parse_args_string", "args": ["zz=5"], "expected": {"zz": 6}}\n'
    write(tmp_path, "harness/functions/arguments.jsonl", good + bad + good)
    write(tmp_path, "brand_new/stem.jsonl")
    done = run_parity(tmp_path, *workers)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert lines.count("PARITY harness/functions/arguments.jsonl 2/3") == 1
    assert lines.count("PENDING brand_new/stem.jsonl 1 no adapter") == 1
    assert not [line for line in lines if line.startswith("PARITY") and "brand_new" in line]
