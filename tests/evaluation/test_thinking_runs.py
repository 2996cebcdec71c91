"""Runs of a model that thinks, behind servers of every form: one score, one status, one count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Response
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.models.remote.stops import NOTE
from tests.cases import for_each
from tests.evaluation.kit import config, run_folders
from tests.servers.thinking import FORMS, THOUGHTS, ThinkingServer

NAME, DOCUMENTS = "thought", 6
THINKING = tuple(form for form in FORMS if form != "plain")


def write_task(folder: Path, long: int = 0, until: Any = None) -> None:
    folder.mkdir(exist_ok=True)
    rows = [
        {"question": f"{'LONG ' if number < long else ''}{number}? ANSWER=a{number}", "answer": f"a{number}"}
        for number in range(DOCUMENTS)
    ]
    (folder / f"{NAME}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    stop = "" if until is None else f", until: {json.dumps(until)}"
    (folder / f"{NAME}.yaml").write_text(
        f"task: {NAME}\ndataset_path: json\ndataset_kwargs:\n  data_files: {{test: {NAME}.jsonl}}\ntest_split: test\n"
        "output_type: generate_until\ndoc_to_text: question\ndoc_to_target: answer\n"
        f"generation_kwargs: {{max_new_tokens: 100{stop}}}\n"
        "filter_list:\n  - name: none\n    filter:\n"
        r"      - {function: regex, regex_pattern: '(a\d+)\s*$'}" + "\n      - {function: take_first}\n"
        "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
    )


def asked(tmp: Path, server: ThinkingServer, **over: Any) -> RunReport:
    arguments = {"model": "m", "base_url": server.url, "num_concurrent": 1, **over.pop("model_args", {})}
    tags = {"thinking_tags": '[["<hm>", "</hm>"]]'} if server.form == "thinking" else {}
    options = {"model": "openai", "tasks": NAME, "log_samples": True, "model_args": arguments, **tags, **over}
    return run(config(tmp, include_path=str(tmp / "tasks"), **options))


def samples(tmp: Path) -> list[dict[str, Any]]:
    (path,) = (tmp / "out").rglob("*_samples_*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def score(report: RunReport) -> Any:
    return report.results["results"][NAME]["exact_match,none"]


@for_each("form", FORMS)
def test_no_stop_is_sent_that_nobody_stated(tmp_path: Path, form: str) -> None:
    write_task(tmp_path / "tasks")
    with ThinkingServer(form) as server:
        report = asked(tmp_path, server)
        assert all("stop" not in body for body in server.bodies)
    outcome = report.results["outcomes"][NAME]
    assert (score(report), outcome["scored"], outcome["blank"], outcome["truncated"]) == (1.0, DOCUMENTS, 0, 0)
    for row in samples(tmp_path):
        assert row.get("thoughts", "").startswith("" if form == "plain" else THOUGHTS)
        assert "blank" not in row


@for_each("form", THINKING)
def test_a_thought_that_is_cut_is_no_answer(tmp_path: Path, form: str) -> None:
    write_task(tmp_path / "tasks", long=2)
    with ThinkingServer(form) as server:
        report = asked(tmp_path, server)
    outcome = report.results["outcomes"][NAME]
    counts = {name: outcome[name] for name in ("scored", "failed", "blank", "in_thought", "truncated")}
    assert counts == {"scored": DOCUMENTS, "failed": 0, "blank": 2, "in_thought": 2, "truncated": 2}
    assert score(report) == pytest.approx(4 / 6)
    assert [row.get("blank") for row in samples(tmp_path)] == ["truncated in thought"] * 2 + [None] * 4
    said = "2 blank (33.3%), 2 truncated (33.3%), 2 with thoughts only (33.3%)"
    assert f"{NAME}: of 6 answers {said}" in report.lines and said in report.table


def test_nothing_but_cut_thoughts_has_no_score(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", long=DOCUMENTS)
    with ThinkingServer("reasoning_content") as server:
        report = asked(tmp_path, server)
    assert (report.exit_code, score(report)) == (3, None)


def test_a_cut_thought_that_the_template_opened_stays_one_in_the_next_start(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", long=2)
    with ThinkingServer("opened") as server:
        first = asked(tmp_path, server)
        again = asked(tmp_path, server, resume=True)
        assert len(server.bodies) == DOCUMENTS
    assert score(again) == score(first) == pytest.approx(4 / 6)
    assert not any("perhaps thoughts" in line for line in (*first.lines, *again.lines))
    assert again.results["outcomes"][NAME]["in_thought"] == 2


def test_one_answer_that_names_a_closing_tag_makes_no_thoughts_of_truncated_ones(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", long=1)
    said = {0: ("cut off a0", "length"), 1: ("write </think> a1", "stop")}

    class Writes(Model):
        def respond(self, stream: RequestStream) -> Iterator[Response]:
            while requests := stream.take(1):
                for request in requests:
                    text, reason = said.get(request.doc_id, (f"a{request.doc_id}", "stop"))
                    yield Response(request.id, text=text, finish_reason=reason)

    report = run(config(tmp_path, include_path=str(tmp_path / "tasks"), model="writes", tasks=NAME), Writes())
    assert (score(report), report.results["outcomes"][NAME]["in_thought"]) == (1.0, 0)


def test_truncated_answers_of_a_model_that_does_not_think_are_scored_as_they_are(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", long=2)
    with ThinkingServer("plain") as server:
        report = asked(tmp_path, server)
    outcome = report.results["outcomes"][NAME]
    assert (outcome["blank"], outcome["in_thought"]) == (0, 0)


@for_each("tells", [False, True])
@for_each("form", THINKING)
def test_a_stated_stop_applies_behind_the_thoughts(tmp_path: Path, form: str, tells: bool) -> None:
    write_task(tmp_path / "tasks", long=0, until=["\n\n"])
    with ThinkingServer(form, tells) as server:
        report = asked(tmp_path, server)
        told = ["stop" in body for body in server.bodies]
    if form == "opened":  # nothing tells that the text before the stop is a thought
        assert told == [True] * DOCUMENTS
        return
    assert (score(report), report.results["outcomes"][NAME]["blank"]) == (1.0, 0)
    assert told == [True] + [False] * DOCUMENTS, "the first request is asked again, the others are not told the stop"
    (folder,) = run_folders(tmp_path)
    assert NAME in (folder / "model" / NOTE).read_text()
    assert f'{NAME}: stop strings "\\n\\n" ended 0 of 6 answers' in report.lines
    assert report.results["outcomes"][NAME]["stops"] == {"active": ["\n\n"], "answers": 6, "ended": 0, "untold": 0}


def test_another_start_knows_that_stops_are_not_sent(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", long=0, until=["\n\n"])
    with ThinkingServer("inline") as server:
        asked(tmp_path, server)
        (folder,) = run_folders(tmp_path)
        for journal in folder.glob("*-0.jsonl"):
            journal.unlink()
        server.bodies.clear()
        report = asked(tmp_path, server, resume=True)
        assert [("stop" in body) for body in server.bodies] == [False] * DOCUMENTS
    assert score(report) == 1.0


def test_the_run_says_what_stops_ended(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", until=["No,", "?"])
    for number, (tells, wanted) in enumerate(
        [
            (True, 'stop strings "No," "?" ended 6 of 6 answers'),
            (False, 'stop strings "No," "?": the server does not report which of 6 answers they ended'),
        ]
    ):
        with ThinkingServer("plain", tells) as server:
            report = asked(tmp_path, server, output_path=str(tmp_path / str(number)))
        assert f"{NAME}: {wanted}" in report.lines


def test_thoughts_switched_off_by_the_template(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks")
    with ThinkingServer("inline") as server:
        report = asked(tmp_path, server, model_args={"enable_thinking_kwarg": False})
    assert score(report) == 1.0 and not any("thoughts" in row for row in samples(tmp_path))


@for_each("form", ["inline", "reasoning_content"])
def test_a_task_may_ask_for_its_thoughts(tmp_path: Path, form: str) -> None:
    write_task(tmp_path / "tasks")
    with ThinkingServer(form) as server:
        asked(tmp_path, server, reasoning_tags="none")
    for row in samples(tmp_path):
        if form == "inline":
            assert row["raw_resps"][0].startswith("<think>") and "thoughts" not in row
        else:
            assert row["thoughts"] == THOUGHTS


def test_answers_are_what_the_model_wrote_in_samples(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks")
    with ThinkingServer("inline") as server:
        asked(tmp_path, server)
    for row in samples(tmp_path):
        right = f"a{row['doc_id']}"
        assert row["resps"] == [f"<think>{THOUGHTS}</think>\n\n{right}"] or row["resps"] == (
            f"<think>{THOUGHTS}</think>\n\n{right}"
        )
        assert (row["filtered_resps"], row["thoughts"]) == (right, THOUGHTS)
