"""The audit in a report: the counts of ``show --audit``, each with a way to its samples; the page in Chromium."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli.main import main
from lmms_eval.viewer.page import ReportOptions
from lmms_eval.viewer.report import write_report
from tests.results.runs import FAILED, document, sample, write_run
from tests.viewer.conftest import HOSTILE, Watched, painted, until
from tests.viewer.test_report import columns, content

RULES = ("letter", "text", "none", *HOSTILE)
PAGE = "#/org%2Fmodel?page=audit"


def audited_rows() -> list[dict[str, Any]]:
    rows = []
    for number in range(60):
        rule = RULES[number % len(RULES)]
        read = {"letter": "A", "text": ["A", "B"]}.get(rule)
        value = {"score": float(number % 2), "rule": rule, "extracted": read}
        fixed = {"acc_fixed": 1.0} if number % 5 else {}
        finish = "length" if number == 7 else "stop"
        rows.append(sample(number, acc=value, graded=0, finish_reason=finish, drew=number in (3, 4), **fixed))
    rows[9] |= {"resps": " ", "filtered_resps": ""}
    return [*rows, {**FAILED, "doc_id": 60}]


NAMES = {"higher_is_better": {"quiz": {"acc": True, "acc_fixed": True}}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"), audited_rows(), document(**NAMES))


@pytest.fixture(scope="module")
def report(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("audited") / "report"
    write_report([str(run)], out, ReportOptions())
    return out


def shown(run: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> list[dict[str, Any]]:
    assert main(["show", str(run), "--audit", "--json", *flags]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def plain(audits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    own = [{key: value for key, value in one.items() if key not in ("prefix", "ending")} for one in audits]
    return [{**one, "rules": {name: dict(found) for name, found in one["rules"].items()}} for one in own]


def test_counts_are_those_of_show(run: Path, report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (expected,) = shown(run, capsys)
    assert plain(content(report, "audit-0")) == [expected]
    assert (expected["answers"], expected["told"], expected["drawn"]) == (60, 60, 2)
    assert expected["unparsed"] == expected["ambiguous"] == 5
    assert expected["others"][0]["n"] == 48
    assert expected["others"][0]["low"] > 0


def test_a_selection_is_audited_as_show_does(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = "rule == 'text' or doc_id == 7"
    assert main(["report", str(run), "--where", where, "--out", str(tmp_path / "r")]) == 0
    capsys.readouterr()
    (expected,) = shown(run, capsys, "--where", where)
    assert plain(content(tmp_path / "r", "audit-0")) == [expected]
    assert (expected["answers"], expected["others"][0]["method"]) == (6, "chosen samples")


def test_columns_of_samples_lead_to_each_count(report: Path) -> None:
    (audit,) = content(report, "audit-0")
    found = columns(report)

    def counts(name: str) -> dict[str | None, int]:
        return Counter(found[f"m.{audit['prefix']}{name}{audit['ending']}"])

    reading = counts("reading")
    assert (reading["unparsed"], reading["ambiguous"], reading[None]) == (audit["unparsed"], audit["ambiguous"], 1)
    answer = counts("answer")
    assert (answer["blank"], answer["truncated"]) == (audit["blank"], audit["truncated"]) == (1, 1)
    assert counts("drawn")["drawn"] == audit["drawn"]
    rules = counts("rule.rule")
    del rules[None]
    assert rules == dict(audit["rules"]["rule"])
    other = audit["others"][0]
    by = counts(f"by.{other['other']}")
    assert (by["higher"], by["lower"]) == (other["higher"], 0)


def test_pipelines_have_columns_of_their_own(tmp_path: Path) -> None:
    rows = [
        sample(number, filter=name, acc={"score": 0, "parsed_pred": "" if (number + place) % 3 else "A"})
        for place, name in enumerate(("strict", "loose"))
        for number in range(6)
    ]
    write_report([str(write_run(tmp_path, rows))], tmp_path / "r", ReportOptions())
    audits = content(tmp_path / "r", "audit-0")
    assert [(one["filter"], one["ending"], one["unparsed"]) for one in audits] == [
        ("strict", ",strict", 4),
        ("loose", ",loose", 4),
    ]
    for one in audits:
        assert columns(tmp_path / "r")[f"m.audit.reading{one['ending']}"].count("unparsed") == 4


def test_what_is_left_out_is_not_told(run: Path, tmp_path: Path) -> None:
    redact = frozenset({"rule", "extracted"})
    write_report([str(run)], tmp_path / "r", ReportOptions(redact=redact))
    (audit,) = content(tmp_path / "r", "audit-0")
    assert (audit["told"], audit["rules"]) == (0, {})
    assert not any(name.startswith("m.audit.r") for name in columns(tmp_path / "r"))


def test_every_number_leads_to_its_samples(report: Path, watched: Watched) -> None:
    page = watched.open(report, "#/org%2Fmodel")
    page.click("[role=tab]:text-is('Parsing')")
    page.wait_for_selector("section:has-text('Deciding rules') table")
    assert page.url.endswith(PAGE)
    assert page.get_attribute("[role=tab]:text-is('Parsing')", "aria-selected") == "true"
    places = [
        (place, int(link.inner_text().split(" ")[0])) for place, link in enumerate(page.query_selector_all("main td a"))
    ]
    assert len(places) == 5 + 1 + len(RULES)  # blank to drawn without filtered, higher, rules
    for place, count in places:
        page = watched.open(report, PAGE)
        page.wait_for_selector("section:has-text('Rules that decided') table")
        page.click(f"main td a >> nth={place}")
        text = f"{count} of 61 samples"
        until(page, "text => document.querySelector('[role=status]')?.innerText === text", text)


def test_the_page_shows_how_far_scores_would_move(report: Path, watched: Watched) -> None:
    page = watched.open(report, PAGE)
    page.wait_for_selector("[role=region][aria-label='By another rule'] svg.plot .point", state="attached")
    (other,) = content(report, "audit-0")[0]["others"]
    text = page.inner_text("section:has-text('By another rule')")
    assert f"+{other['other_mean'] - other['mean']:.4f}" in text
    assert f"+{other['low']:.4f} – +{other['high']:.4f}" in text


def test_hostile_names_of_rules_are_text(report: Path, watched: Watched) -> None:
    page = watched.open(report, PAGE)
    page.wait_for_selector("section:has-text('Rules that decided') table")
    text = page.inner_text("main")
    for name in HOSTILE:
        assert name in text or "\u202e" in name
    assert "safeU+202EevilU+202C U+001B[31mredU+0007" in text
    assert (
        page.query_selector("#app script, #app iframe, #app svg:not(.plot), #app style, #app i, #app u, #app img")
        is None
    )
    page.set_viewport_size({"width": 400, "height": 800})
    painted(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
