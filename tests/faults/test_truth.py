"""Nothing lies: what a failing server or disk does to exit code, score, journal and the next start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.workload import text_task
from tests.faults.command import Ended, in_process, journal, lmms_eval, results
from tests.servers.stub import StubServer

DOCUMENTS = 60


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    text_task(tmp_path / "tasks", DOCUMENTS)
    return tmp_path / "tasks"


def evaluate(
    tasks: Path, url: str, out: Path, *more: str, retries: int = 1, limit_file_size: int | None = None
) -> Ended:
    """Run in this process, or in one of its own if its files have a limit."""
    model = f"model=stub,base_url={url},num_concurrent=8,max_retries={retries},retry_backoff_s=0.01,timeout=10"
    arguments = (
        "--model", "openai", "--model_args", model, "--tasks", "bench_text", "--include_path", tasks,
        "--output_path", out, "--log_samples", *more,
    )  # fmt: skip
    if limit_file_size is not None:
        return lmms_eval(*arguments, limit_file_size=limit_file_size)
    return in_process(*arguments, OPENAI_API_KEY="test-key", HF_HUB_OFFLINE="1")


def score(out: Path) -> object:
    return results(out)["results"]["bench_text"]["exact_match,none"]


def test_every_request_answered_500_then_a_healthy_server(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(fault="500") as server:
        ended = evaluate(tasks, server.url, out)
    assert ended.code == 3, ended.shown
    assert "withheld" in ended.out
    assert "stopped asking early" in ended.out
    assert "run the same command again" in ended.out
    assert score(out) is None
    outcome = results(out)["outcomes"]["bench_text"]
    assert outcome["scored"] == 0 and outcome["failed"] < DOCUMENTS
    assert outcome["failed"] + outcome["not_asked"] == DOCUMENTS
    assert all("error" in record for record in journal(out))
    with StubServer() as server:  # another port is another model: the journal of the dead one is not mixed in
        again = evaluate(tasks, server.url, tmp_path / "healthy")
        assert again.code == 0, again.shown
        assert score(tmp_path / "healthy") == 1.0


def test_a_few_failures_withhold_and_the_next_start_asks_only_them(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(fault="500", share=0.1, times=2) as server:
        first = evaluate(tasks, server.url, out)
        failed = results(out)["outcomes"]["bench_text"]["failed"]
        asked = server.stats()["total"]
        assert first.code == 3, first.shown
        assert 0 < failed < DOCUMENTS
        assert score(out) is None
        assert results(out)["outcomes"]["bench_text"]["partial"]["exact_match,none"]["value"] == 1.0
        second = evaluate(tasks, server.url, out)
        assert second.code == 0, second.shown
        assert score(out) == 1.0
        assert server.stats()["total"] == asked + failed


def test_an_error_budget_gives_the_score_of_the_rest(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(fault="500", share=0.1) as server:
        ended = evaluate(tasks, server.url, out, "--error_budget", "0.5")
    assert ended.code == 0, ended.shown
    assert score(out) == 1.0
    assert "failed" in ended.out


@pytest.mark.parametrize("fault", ["429", "half_closed", "malformed"])
def test_passing_faults_are_retried(tasks: Path, tmp_path: Path, fault: str) -> None:
    out = tmp_path / "out"
    with StubServer(fault=fault, share=0.5, times=2, retry_after="0.05") as server:
        ended = evaluate(tasks, server.url, out, retries=5)
    assert ended.code == 0, ended.shown
    assert score(out) == 1.0
    assert any(record.get("attempts", 1) > 1 for record in journal(out))


@pytest.mark.parametrize(
    ("fault", "counted"),
    [
        ("white_space", "blank"),
        ("tool_call", "blank"),
        ("content_filter", "filtered"),
        ("filtered_text", "filtered"),
    ],
)
def test_answers_that_are_none_give_no_score(tasks: Path, tmp_path: Path, fault: str, counted: str) -> None:
    out = tmp_path / "out"
    with StubServer(fault=fault) as server:
        ended = evaluate(tasks, server.url, out, "--limit", "20")
        assert ended.code == 3, ended.shown
        assert "withheld (no answer)" in ended.out and "--allow_blank" in ended.out
        assert score(out) is None
        outcome = results(out)["outcomes"]["bench_text"]
        assert (outcome["scored"], outcome["failed"], outcome[counted], outcome["answers"]) == (20, 0, 20, 20)
        assert outcome["shares"][counted] == 1.0
        assert server.stats()["total"] == 20


def test_who_wants_the_number_gets_it(tasks: Path, tmp_path: Path) -> None:
    with StubServer(fault="filtered_text") as server:
        ended = evaluate(tasks, server.url, tmp_path / "out", "--limit", "20", "--allow_blank")
    assert (ended.code, score(tmp_path / "out")) == (0, 0.0), ended.shown
    assert "20 filtered (100.0%)" in ended.out


def test_the_next_start_asks_blank_answers_again(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(fault="empty", times=1) as server:
        assert evaluate(tasks, server.url, out).code == 3
        ended = evaluate(tasks, server.url, out)
        assert (ended.code, score(out)) == (0, 1.0), ended.shown
        assert server.stats()["total"] == 2 * DOCUMENTS


def test_a_few_blank_answers_are_scored_and_told(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer(fault="empty", share=0.1) as server:
        ended = evaluate(tasks, server.url, out)
    assert ended.code == 0, ended.shown
    blank = results(out)["outcomes"]["bench_text"]["blank"]
    assert 0 < blank < DOCUMENTS and score(out) == pytest.approx(1 - blank / DOCUMENTS)
    assert ended.out.count(f"{blank} blank ({blank / DOCUMENTS:.1%})") == 2  # in the table and below it


def test_answers_that_ended_with_an_error_fail(tasks: Path, tmp_path: Path) -> None:
    with StubServer(fault="finish_error", share=0.1) as server:
        ended = evaluate(tasks, server.url, tmp_path / "out", "--use_cache", str(tmp_path / "cache"))
    assert ended.code == 3, ended.shown
    assert results(tmp_path / "out")["outcomes"]["bench_text"]["failed"] > 0
    assert all("half an ans" not in str(record.get("text")) for record in journal(tmp_path / "out"))


def test_a_server_that_serves_another_model_is_noted(tasks: Path, tmp_path: Path) -> None:
    with StubServer(fault="other_model") as server:
        ended = evaluate(tasks, server.url, tmp_path / "out")
    assert ended.code == 0, ended.shown
    assert f"asked for the model stub, the server says that it served stub-2026-11 ({DOCUMENTS} answers)" in ended.out
    assert results(tmp_path / "out")["model"]["served"] == {"stub-2026-11": DOCUMENTS}


def test_a_refused_key_stops_at_once_and_shows_no_secret(tasks: Path, tmp_path: Path) -> None:
    with StubServer(key="right") as server:
        ended = evaluate(tasks, server.url, tmp_path / "out")
        assert server.stats()["total"] < DOCUMENTS / 2  # what was open when the first refusal came
    assert ended.code == 3, ended.shown
    assert "401" in ended.out
    assert "test-key" not in ended.shown


def test_nobody_listens(tasks: Path, tmp_path: Path) -> None:
    ended = evaluate(tasks, "http://127.0.0.1:9/v1", tmp_path / "out")
    assert ended.code == 3, ended.shown
    assert "127.0.0.1:9" in ended.out


def test_a_full_disk_ends_the_run_and_keeps_what_was_finished(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with StubServer() as server:
        full = evaluate(tasks, server.url, out, limit_file_size=6000)
        assert full.code == 1, full.shown
        assert "make room and start the same command again" in full.err
        kept = len(next(iter(out.rglob("responses-0.jsonl"))).read_text().splitlines())
        assert kept > 0
        asked = server.stats()["total"]
        ended = evaluate(tasks, server.url, out)
        assert ended.code == 0, ended.shown
        assert score(out) == 1.0
        assert server.stats()["total"] - asked <= DOCUMENTS - kept + 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_output_folder(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir(mode=0o500)
    assert evaluate(tasks, "http://127.0.0.1:9/v1", out).code == 2


def test_truncated_answers_carry_a_warning_are_withheld_on_demand_and_asked_again_with_more_tokens(
    tasks: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with StubServer(fault="wordy", last=1) as server:
        warned = evaluate(tasks, server.url, out)
        assert warned.code == 0, warned.shown
        assert "(100.0% of answers truncated)" in warned.out
        assert "between 0.0000 and 1.0000, whatever the truncated ones would have scored" in warned.out
        assert score(out) == 0.0
        withheld = evaluate(tasks, server.url, tmp_path / "strict", "--truncation_budget", "0.05!")
        assert withheld.code == 3, withheld.shown
        assert "withheld (60 truncated)" in withheld.out
        asked = server.stats()["total"]
        again = evaluate(tasks, server.url, out, "--retry_truncated", "64")
        assert again.code == 0, again.shown
        assert (server.stats()["total"] - asked, score(out)) == (DOCUMENTS, 1.0)
        assert "of answers truncated" not in again.out
        unlimited = evaluate(
            tasks, server.url, tmp_path / "strict", "--truncation_budget", "0.05!", "--retry_truncated", "max"
        )
        assert (unlimited.code, score(tmp_path / "strict")) == (0, 1.0), unlimited.shown
        assert all("max_tokens" not in body for body in server.bodies()[-DOCUMENTS:])


@pytest.mark.parametrize("value", ["0", "-5", "many", "1.5", "min"])
def test_a_limit_of_tokens_that_is_none_is_refused(tasks: Path, tmp_path: Path, value: str) -> None:
    ended = evaluate(tasks, "http://127.0.0.1:9/v1", tmp_path / "out", "--retry_truncated", value)
    assert ended.code == 2, ended.shown
    assert "--retry_truncated: give a number of tokens" in ended.shown
