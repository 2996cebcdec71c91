"""Spans of a run at a collector on loopback, and collectors that are down, slow, hang or die."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.config.tracking import OTLP, destination_arguments
from lmms_eval.errors import ConfigError
from lmms_eval.evaluation.run import run
from lmms_eval.trackers.contract import (
    AskedModel,
    Beginning,
    FinalResults,
    FinishedCalls,
    ModelCall,
    RunEnding,
)
from lmms_eval.trackers.session import (
    CALLS_OF_MESSAGE,
    COLLECTOR,
    MOST_CALLS,
    CallBuffer,
    TrackerProcess,
    TrackerReport,
    TrackerTimeouts,
)
from lmms_eval.utils.redaction import REDACTED
from tests.cases import for_each
from tests.evaluation.judged_kit import NAME as RATED
from tests.evaluation.judged_kit import rated_task
from tests.evaluation.kit import DOCUMENTS, NAME, Told, config, fails_on
from tests.faults.command import in_process, lmms_eval
from tests.installed import needs
from tests.servers.collector import Collector, attributes
from tests.servers.stub import StubServer

needs("opentelemetry")
needs("opentelemetry.exporter.otlp.proto.http")
SECRET = "cAnArY7secret42value"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADERS", "TRACES_HEADERS", "TIMEOUT", "COMPRESSION"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def call(number: int, **changes: Any) -> ModelCall:
    facts: dict[str, Any] = {
        "id": f"t/{number}/0/0/0", "task": "t", "doc_id": number, "role": "model", "kind": "generate_until",
        "end": 1_000.0 + number, "seconds": 0.5, "options": {}, "model": None, "usage": None, "finish_reason": "stop",
        "error": "", "attempts": 1, "tools": 0,
    }  # fmt: skip
    return ModelCall(**{**facts, **changes})


def begun(url: str, patience: TrackerTimeouts = COLLECTOR) -> TrackerProcess:
    asked = {"model": AskedModel("openai", "m"), "judge": AskedModel("anthropic", "j")}
    beginning = Beginning({"endpoint": f"{url}/v1/traces"}, "id", "name", {}, asked=asked, began=999.0)  # type: ignore[arg-type]
    return TrackerProcess("otlp", "lmms_eval.trackers.otlp:Otlp", beginning, patience)


def ended(tracker: TrackerProcess, calls: Sequence[ModelCall] = (), **scores: float) -> TrackerReport:
    tracker.send(FinishedCalls(tuple(calls), is_last=True))
    tracker.send(FinalResults(1, {f"t/{name}": value for name, value in scores.items()}, {}, {}, {}, "r.json"))
    tracker.send(RunEnding("complete"))
    return tracker.wait(time.monotonic())


def by_name(collector: Collector) -> dict[str, Any]:
    return {span.name: span for span in collector.spans}


def test_a_request_has_the_attributes_of_the_conventions() -> None:
    options = {"max_new_tokens": 16, "temperature": 0, "top_k": 5, "until": ["\n", "END"], "seed": 3}
    full = call(3, options=options, model="m-2026", usage=(11, 2, None), finish_reason="length", attempts=2, tools=4)
    verdict = call(3, id="t/3/judge/q/0", role="judge", seconds=None, error="timeout", finish_reason=None)
    with Collector() as collector:
        assert ended(begun(collector.url), [full, verdict], acc=0.25, acc_stderr=0.1).state == "finished"
    spans = by_name(collector)
    root, task, chat, judged = (spans[name] for name in ("lmms_eval.run", "lmms_eval.task t", "chat m", "chat j"))
    assert attributes(chat) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-2026", "gen_ai.response.finish_reasons": ["length"],
        "gen_ai.request.max_tokens": 16, "gen_ai.request.temperature": 0.0, "gen_ai.request.top_k": 5.0,
        "gen_ai.request.seed": 3, "gen_ai.request.stop_sequences": ["\n", "END"], "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 2, "lmms_eval.role": "model", "lmms_eval.task.name": "t",
        "lmms_eval.document.id": 3, "lmms_eval.request.id": "t/3/0/0/0", "lmms_eval.request.kind": "generate_until",
        "lmms_eval.request.attempts": 2, "lmms_eval.request.tool_calls": 4,
    }  # fmt: skip
    assert (chat.start_time_unix_nano, chat.end_time_unix_nano) == (1_002_500_000_000, 1_003_000_000_000)
    assert (chat.kind, chat.status.code) == (3, 0)
    told = attributes(judged)
    assert (told["gen_ai.provider.name"], told["error.type"], judged.status.code) == ("anthropic", "timeout", 2)
    assert judged.start_time_unix_nano == judged.end_time_unix_nano
    assert (chat.parent_span_id, judged.parent_span_id, task.parent_span_id, root.parent_span_id) == (
        task.span_id, task.span_id, root.span_id, b"",
    )  # fmt: skip
    assert {span.trace_id for span in collector.spans} == {root.trace_id}
    assert attributes(task)["lmms_eval.task.failed_requests"] == 1
    assert attributes(task)["gen_ai.usage.input_tokens"] == 11
    assert [attributes(event) for event in task.events] == [
        {"gen_ai.evaluation.name": "acc", "gen_ai.evaluation.score.value": 0.25}
    ]
    assert root.start_time_unix_nano == 999_000_000_000
    assert collector.resources[0]["service.name"] == "lmms-eval"


def test_likelihoods_are_completions() -> None:
    with Collector() as collector:
        ended(begun(collector.url), [call(0, kind="loglikelihood", options={"until": "x", "temperature": True})])
    told = attributes(by_name(collector)["text_completion m"])
    assert told["gen_ai.request.stop_sequences"] == ["x"]
    assert "gen_ai.request.temperature" not in told


def test_a_run_sends_its_tree_without_texts(tmp_path: Path) -> None:
    with Collector() as collector:
        report = run(config(tmp_path, model="told", otlp=collector.url, error_budget=0.5), Told(fails_on(2)))
    assert report.results["trackers"]["otlp"]["state"] == "finished"
    assert report.lines[-1] == f"otlp: trace {collector.spans[0].trace_id.hex()}: {DOCUMENTS + 2} spans were sent"
    assert collector.paths[0] == "/v1/traces"
    spans = by_name(collector)
    assert attributes(spans[f"lmms_eval.task {NAME}"])["lmms_eval.task.requests"] == DOCUMENTS
    assert attributes(spans["lmms_eval.run"])["lmms_eval.documents"] == DOCUMENTS
    assert attributes(spans["lmms_eval.run"])["lmms_eval.state"] == "complete"
    (score,) = (
        attributes(event)["gen_ai.evaluation.score.value"]
        for event in spans[f"lmms_eval.task {NAME}"].events
        if attributes(event)["gen_ai.evaluation.name"] == "exact_match"
    )
    assert score == report.results["results"][NAME]["exact_match,none"]
    failed = [attributes(span) for span in collector.spans if "error.type" in attributes(span)]
    assert [(one["lmms_eval.document.id"], one["error.type"]) for one in failed] == [(2, "timeout")]
    assert not any("ANSWER" in str(span) for span in collector.spans)


def test_texts_are_sent_if_they_are_asked_for(tmp_path: Path) -> None:
    with Collector() as collector:
        run(config(tmp_path, model="told", otlp=collector.url, otlp_content=True), Told())
    told = [attributes(span) for span in collector.spans if "gen_ai.input.messages" in attributes(span)]
    assert len(told) == DOCUMENTS
    for one in told:
        (message,) = json.loads(one["gen_ai.input.messages"])
        (answer,) = json.loads(one["gen_ai.output.messages"])
        assert (message["role"], answer["role"]) == ("user", "assistant")
        assert message["parts"][0]["content"].partition("ANSWER=")[2] == answer["parts"][0]["content"]


def test_questions_to_the_judge_are_spans_of_their_task(tmp_path: Path) -> None:
    rated_task(tmp_path / "tasks", DOCUMENTS)
    with StubServer() as server, Collector() as collector:
        judge = {"judge_model": "jury", "judge_base_url": server.url, "judge_args": "api_key=none"}
        run(config(tmp_path, model="told", tasks=RATED, otlp=collector.url, otlp_content=True, **judge), Told())
    judged = [attributes(span) for span in collector.spans if span.name == "chat jury"]
    assert len(judged) == DOCUMENTS
    assert {one["lmms_eval.role"] for one in judged} == {"judge"}
    assert {one["gen_ai.provider.name"] for one in judged} == {"openai"}
    assert all(one["gen_ai.usage.input_tokens"] > 0 for one in judged)
    assert all(json.loads(one["gen_ai.input.messages"])[-1]["parts"][0]["content"] for one in judged)


def test_starts_of_a_run_share_a_trace(tmp_path: Path) -> None:
    with Collector() as collector:
        run(config(tmp_path, model="told", otlp=collector.url), Told(fails_on(1)))
        first = {span.trace_id for span in collector.spans}
        collector.spans.clear()
        run(config(tmp_path, model="told", otlp=collector.url), Told())
    assert {span.trace_id for span in collector.spans} == first
    spans = by_name(collector)
    assert attributes(spans["lmms_eval.run"])["lmms_eval.run.continued"]
    assert attributes(spans[f"lmms_eval.task {NAME}"])["lmms_eval.task.requests"] == 1  # the others were answered


def test_each_process_sends_its_requests_to_the_same_trace(tmp_path: Path) -> None:
    config(tmp_path)  # writes the task
    with Collector() as collector:
        ended_run = lmms_eval(
            "--model", "baseline", "--tasks", NAME, "--include_path", tmp_path / "tasks", "--output_path",
            tmp_path / "out", "--processes", "2", "--otlp", collector.url,
        )  # fmt: skip
    assert ended_run.code == 0
    assert len({span.trace_id for span in collector.spans}) == 1
    roots = [attributes(span)["lmms_eval.process.rank"] for span in collector.spans if span.name == "lmms_eval.run"]
    asked = [attributes(span)["lmms_eval.document.id"] for span in collector.spans if span.name.startswith("chat")]
    assert (sorted(roots), sorted(asked)) == ([0, 1], [*range(DOCUMENTS)])


def test_headers_come_from_the_environment_and_are_never_printed(tmp_path: Path) -> None:
    config(tmp_path)  # writes the task
    words = ["--model", "baseline", "--tasks", NAME, "--include_path", tmp_path / "tasks", "--verbosity", "DEBUG"]
    given = {"OTEL_EXPORTER_OTLP_HEADERS": f"x-team={SECRET},authorization=Basic%20{SECRET}b"}
    found = []
    for status in (200, 401):
        with Collector(status) as collector:
            url = f"{collector.url}/base?key={SECRET}c"
            out = tmp_path / str(status)
            found.append(in_process(*words, "--output_path", out, "--otlp", url, "--show_config", **given))
        assert collector.paths[0] == f"/base/v1/traces?key={SECRET}c"
        assert collector.heads[0]["x-team"] == SECRET
        assert collector.heads[0]["authorization"] == f"Basic {SECRET}b"
    assert [one.code for one in found] == [0, 0]
    assert found[1].err.count("HTTP 401") == 1
    assert REDACTED in found[1].out
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET not in "".join(one.out + one.err for one in found)
    assert SECRET.encode() not in written


def test_a_collector_that_dies_costs_one_line() -> None:
    with Collector(dies_after=1) as collector:
        tracker = begun(collector.url)
        tracker.send(FinishedCalls((call(0),)))
        until(lambda: len(collector.spans) == 1)
        time.sleep(0.1)  # until it is dead
        begin = time.monotonic()
        report = ended(tracker, [call(number) for number in range(1, 1_200)], acc=1.0)
    assert time.monotonic() - begin < 8
    assert report.state == "failed"
    assert report.error == "the collector does not take spans: it cannot be reached, or ended the connection"
    assert report.place.hint.endswith("1 spans were sent, 1201 are lost")


@pytest.mark.parametrize(
    ("faults", "said"),
    [({"status": 503}, "HTTP 503"), ({"status": 302}, "HTTP 302"), ({"delay": 60.0}, "no answer in time")],
)
def test_a_collector_that_fails_or_hangs_does_not_hold_the_run_up(faults: dict[str, Any], said: str) -> None:
    with Collector(**faults) as collector:
        tracker = begun(collector.url)
        until(lambda: tracker.report().state == "running")
        begin = time.monotonic()
        report = ended(tracker, [call(0)])
    assert time.monotonic() - begin < 7
    assert (report.state, said in report.error) == ("failed", True)


def test_after_a_failure_nothing_is_tried_for_a_while() -> None:
    with Collector(401) as collector:
        tracker = begun(collector.url)
        for number in range(5):
            tracker.send(FinishedCalls((call(number),)))
        report = ended(tracker)
    assert len(collector.paths) == 2  # the first one, and the spans of the run at its end
    assert report.place.hint.endswith("0 spans were sent, 7 are lost")


def test_without_a_collector_the_run_ends_as_ever(tmp_path: Path) -> None:
    report = run(config(tmp_path, model="told", otlp="http://127.0.0.1:1"), Told())
    plain = run(config(tmp_path, model="told", output_path=str(tmp_path / "plain")), Told())
    assert report.exit_code == 0
    assert report.results["results"] == plain.results["results"]
    assert report.results["trackers"]["otlp"]["state"] == "failed"
    assert "otlp failed: the collector does not take spans" in report.lines[-1]


def test_what_waits_is_bounded() -> None:
    buffer = CallBuffer()
    for number in range(MOST_CALLS + 7):
        buffer.add(call(number))
    messages = buffer.take(is_last=False)
    assert [len(one.calls) for one in messages] == [CALLS_OF_MESSAGE] * (MOST_CALLS // CALLS_OF_MESSAGE)
    assert [one.dropped for one in messages][-2:] == [0, 7]
    assert buffer.take(is_last=True) == []
    for number in range(20_000):
        buffer.add(call(number, answer="x" * 4_000))
    (*_, last) = buffer.take(is_last=False)
    assert last.dropped > 10_000


def test_requests_that_are_left_out_are_counted() -> None:
    with Collector() as collector:
        tracker = begun(collector.url)
        tracker.send(FinishedCalls((call(0),), dropped=7))
        report = ended(tracker)
    assert report.error == "7 requests are left out: the collector is slower than the run"
    assert report.place.hint.endswith("3 spans were sent, 7 are lost")


@for_each(
    ("given", "endpoint"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
        ("https://h.example/otel/v1/traces", "https://h.example/otel/v1/traces"),
        ("https://u:p@h.example/otel?key=1#x", "https://u:p@h.example/otel/v1/traces?key=1"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
    ],
)
def test_spans_are_posted_below_the_address(given: str, endpoint: str) -> None:
    assert destination_arguments(OTLP, given) == {"endpoint": endpoint}


@for_each("given", ["localhost:4318", "grpc://localhost:4317", "http://", "http://h:99999", "http://[::1", "http:///x"])
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="--otlp: give the address of a collector that takes OTLP over HTTP"):
        destination_arguments(OTLP, given)


def until(holds: Any) -> None:
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.02)
