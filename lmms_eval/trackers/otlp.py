"""OpenTelemetry: sends a span for the run, each task and each request to a collector (``--otlp URL``).

Names of attributes that begin with ``gen_ai`` are those of the semantic conventions for generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/). All spans of a run have the same trace id, as have those of its
other processes and of starts that continue it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lmms_eval.trackers.contract import (
    AskedModel,
    Beginning,
    FinalResults,
    FinishedCalls,
    LiveNumbers,
    ModelCall,
    Role,
    RunEnding,
    TaskSamples,
    TrackerError,
    TrackerPlace,
)
from lmms_eval.utils.installed import package_version

SERVICE = "lmms-eval"
SPANS_OF_REQUEST = 512
"""Most spans of one request to the collector, the default of the OpenTelemetry specification."""
PAUSE_S = 30.0
"""Seconds after a failure during which nothing is sent."""
USUAL_S, LAST_S, AFTER_FAILURE_S = 3.0, 2.0, 1.0
"""Seconds that a request to the collector may take with its retries: during the run (if no variable of OpenTelemetry
states it), at its end, and at its end after a failure. The end of a run may have to wait for a request before it."""
_PROVIDERS = {
    "anthropic": "anthropic", "azure": "azure.ai.openai", "gemini": "gcp.gemini", "openai": "openai",
}  # fmt: skip
"""Names of the conventions for back ends. The others keep their own."""
_OPTIONS = {
    "frequency_penalty": float, "max_new_tokens": int, "presence_penalty": float, "seed": int, "temperature": float,
    "top_k": float, "top_p": float,
}  # fmt: skip
"""Numeric generation options with the types of the conventions."""
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT")
_NAMES = {"max_new_tokens": "max_tokens"}
"""Options that have another name there."""


class _TaskSpan(Struct):
    """The open span of a task, with the sums of its requests."""

    span: Any
    end: float
    requests: int = 0
    failed: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    """Known numbers of tokens by the names of the conventions."""


class _Sent(Struct):
    """Spans so far: those that wait, and the numbers of those that were sent and lost."""

    waiting: list[Any] = field(default_factory=list)
    sent: int = 0
    lost: int = 0


class Otlp:
    """The spans of a run, and the collector that receives them."""

    def __init__(self) -> None:
        # The package logs each failed attempt, which this module reports once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._spans = _Sent()
        self._tasks: dict[str, _TaskSpan] = {}
        self._scores: Mapping[str, float] = {}
        self._documents = 0
        self._endpoint = ""
        self._asked: Mapping[Role, AskedModel] = {}
        self._paused_until = -1.0
        self._has_failed = False
        self._run: Any = None

    def start(self, beginning: Beginning) -> TrackerPlace:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import SpanLimits, TracerProvider

        self._endpoint, self._asked = str(beginning.arguments["endpoint"]), beginning.asked
        trace = int(hashlib.sha256(f"{SERVICE} {beginning.run_id}".encode()).hexdigest()[:32], 16)
        known = {"service.name": SERVICE, "service.version": package_version("lmms_eval") or ""}
        given = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        provider = TracerProvider(
            resource=Resource.create({} if given else known),
            id_generator=_ids(trace),
            span_limits=SpanLimits(max_events=10_000),
            shutdown_on_exit=False,
        )
        provider.add_span_processor(_collecting(self._spans.waiting))
        self._tracer = provider.get_tracer(SERVICE, known["service.version"])
        attributes = {
            "lmms_eval.run.id": beginning.run_id,
            "lmms_eval.run.key": str(beginning.config.get("run_key", "")),
            "lmms_eval.run.name": beginning.name,
            "lmms_eval.run.continued": beginning.is_continued,
            "lmms_eval.process.rank": beginning.rank,
            **self._model_attributes("model"),
        }
        self._run = self._tracer.start_span(
            "lmms_eval.run", context=self._below(None), attributes=attributes, start_time=_nanoseconds(beginning.began)
        )
        self._trace = f"{trace:032x}"
        return self._place()

    def step(self, step: LiveNumbers) -> None:
        """Do nothing: spans are no place for numbers that change."""

    def calls(self, finished: FinishedCalls) -> None:
        for call in finished.calls:
            self._add(call)
        self._spans.lost += finished.dropped
        is_stated = any(os.environ.get(name) for name in _TIMEOUTS)
        self._export(LAST_S if finished.is_last else None if is_stated else USUAL_S)
        if finished.dropped:
            raise TrackerError(f"{finished.dropped} requests are left out: the collector is slower than the run")

    def results(self, results: FinalResults) -> None:
        self._scores, self._documents = results.scalars, results.documents

    def samples(self, samples: TaskSamples) -> None:
        """Do nothing: samples are not sent to collectors."""

    def finish(self, ending: RunEnding) -> TrackerPlace:
        from opentelemetry.trace import StatusCode

        if self._run is None:
            return TrackerPlace()
        for name, task in self._tasks.items():
            self._end_task(name, task)
        self._run.set_attributes({"lmms_eval.state": ending.state, "lmms_eval.documents": self._documents})
        own = {name: number for name, number in self._scores.items() if self._task_of(name) is None}
        _add_scores(self._run, own)  # those of groups
        if not ending.has_succeeded:
            self._run.set_status(StatusCode.ERROR, ending.state)
        self._run.end()
        self._paused_until = -1.0  # the spans of tasks and of the run are tried once more
        try:
            self._export(AFTER_FAILURE_S if self._has_failed else LAST_S)
        except TrackerError:
            if not self._has_failed:
                raise
        return self._place()

    def _place(self) -> TrackerPlace:
        lost = f", {self._spans.lost} are lost" if self._spans.lost else ""
        return TrackerPlace(hint=f"trace {self._trace}: {self._spans.sent} spans were sent{lost}")

    def _add(self, call: ModelCall) -> None:
        """Make the span of a request, and open that of its task at the first one."""
        from opentelemetry.trace import SpanKind, StatusCode

        begin = call.end - (call.seconds or 0.0)
        if (task := self._tasks.get(call.task)) is None:
            span = self._tracer.start_span(
                f"lmms_eval.task {call.task}", context=self._below(self._run), start_time=_nanoseconds(begin),
                attributes={"lmms_eval.task.name": call.task},
            )  # fmt: skip
            task = self._tasks[call.task] = _TaskSpan(span, call.end)
        task.end = max(task.end, call.end)
        task.requests, task.failed = task.requests + 1, task.failed + bool(call.error)
        task.tokens.update(_usage(call))
        attributes = {**self._model_attributes(call.role), **_attributes(call)}
        span = self._tracer.start_span(
            f"{attributes['gen_ai.operation.name']} {attributes.get('gen_ai.request.model', '')}".rstrip(),
            context=self._below(task.span), kind=SpanKind.CLIENT, attributes=attributes, start_time=_nanoseconds(begin),
        )  # fmt: skip
        if call.error:
            span.set_status(StatusCode.ERROR, call.error)
        span.end(_nanoseconds(call.end))

    def _end_task(self, name: str, task: _TaskSpan) -> None:
        task.span.set_attributes(
            {
                "lmms_eval.task.requests": task.requests,
                "lmms_eval.task.failed_requests": task.failed,
                **task.tokens,
            }
        )
        prefix = f"{name}/"
        scores = {key: number for key, number in self._scores.items() if self._task_of(key) == name}
        _add_scores(task.span, {key.removeprefix(prefix): number for key, number in scores.items()})
        task.span.end(_nanoseconds(task.end))

    def _task_of(self, score: str) -> str | None:
        """Return the task of a score's name ``TASK/METRIC``; ``None`` if it has no span."""
        task = score.rpartition("/")[0]
        return task if task in self._tasks else None

    def _model_attributes(self, role: Role) -> dict[str, Any]:
        asked = self._asked.get(role)
        if asked is None:
            return {}
        found = {"gen_ai.provider.name": _PROVIDERS.get(asked.provider, asked.provider)}
        return found | ({"gen_ai.request.model": asked.name} if asked.name else {})

    def _below(self, parent: Any) -> Any:
        """Return the context of a span's parent; without one, that of a root span."""
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        return Context() if parent is None else set_span_in_context(parent, Context())

    def _export(self, timeout_s: float | None) -> None:
        """Send the spans that have ended, in requests of ``timeout_s``; ``None``: of the variable's limit.

        After a failure, spans are dropped for some time. Raises ``TrackerError`` if the collector does not take them.
        """
        spans = list(self._spans.waiting)
        self._spans.waiting.clear()
        if time.monotonic() < self._paused_until:
            self._spans.lost += len(spans)
            return
        for begin in range(0, len(spans), SPANS_OF_REQUEST):
            batch = spans[begin : begin + SPANS_OF_REQUEST]
            if reason := _sent(batch, self._endpoint, timeout_s):
                self._spans.lost += len(spans) - begin
                self._paused_until, self._has_failed = time.monotonic() + PAUSE_S, True
                raise TrackerError(f"the collector does not take spans: {reason}")
            self._spans.sent += len(batch)


def _attributes(call: ModelCall) -> dict[str, Any]:
    """Return what the conventions and this package state about a request."""
    is_text = call.kind in ("loglikelihood", "loglikelihood_rolling")
    found: dict[str, Any] = {
        "gen_ai.operation.name": "text_completion" if is_text else "chat",
        "lmms_eval.role": call.role,
        "lmms_eval.task.name": call.task,
        "lmms_eval.document.id": call.doc_id,
        "lmms_eval.request.id": call.id,
        "lmms_eval.request.kind": call.kind,
        "lmms_eval.request.attempts": call.attempts,
    }
    for name, value in call.options.items():
        if name == "until":
            stops = [value] if isinstance(value, str) else [one for one in value if isinstance(one, str)]
            found["gen_ai.request.stop_sequences"] = stops
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[f"gen_ai.request.{_NAMES.get(name, name)}"] = _OPTIONS[name](value)
    found |= _usage(call)
    if call.model:
        found["gen_ai.response.model"] = call.model
    if call.finish_reason:
        found["gen_ai.response.finish_reasons"] = [call.finish_reason]
    if call.error:
        found["error.type"] = call.error
    if call.tools:
        found["lmms_eval.request.tool_calls"] = call.tools
    return found | _texts(call)


def _usage(call: ModelCall) -> dict[str, int]:
    names = ("input_tokens", "output_tokens", "reasoning.output_tokens")
    known = zip(names, call.usage or (), strict=False)
    return {f"gen_ai.usage.{name}": number for name, number in known if number is not None}


def _texts(call: ModelCall) -> dict[str, str]:
    """Return prompt and answer in the form of the conventions; empty unless texts are sent."""
    found = {}
    if call.prompt:
        messages = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in call.prompt]
        found["gen_ai.input.messages"] = json.dumps(messages, ensure_ascii=False)
    if call.answer is not None:
        parts = [{"type": "text", "content": call.answer}]
        message = {"role": "assistant", "parts": parts, "finish_reason": call.finish_reason or "stop"}
        found["gen_ai.output.messages"] = json.dumps([message], ensure_ascii=False)
    return found


def _add_scores(span: Any, scores: Mapping[str, float]) -> None:
    for name, value in scores.items():
        if "_stderr" in name:
            continue
        event = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": float(value)}
        span.add_event("gen_ai.evaluation.result", event)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def _ids(trace: int) -> Any:
    """Return a generator of random span ids, all in one trace."""
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class OneTrace(RandomIdGenerator):  # type: ignore[misc]
        def generate_trace_id(self) -> int:
            return trace

    return OneTrace()


def _collecting(spans: list[Any]) -> Any:
    """Return a processor that keeps the spans that have ended."""
    from opentelemetry.sdk.trace import SpanProcessor

    class Collecting(SpanProcessor):  # type: ignore[misc]
        def on_end(self, span: Any) -> None:
            if span.context.trace_flags.sampled:
                spans.append(span)

    return Collecting()


def _sent(spans: Sequence[Any], endpoint: str, timeout_s: float | None) -> str:
    """Send spans in one request, with retries of the package, and return why that failed; empty if it did not.

    ``timeout_s``: limit for all attempts; ``None``: that of ``OTEL_EXPORTER_OTLP_TIMEOUT``. Headers come from
    ``OTEL_EXPORTER_OTLP_HEADERS``.
    """
    import requests
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    class Watched(requests.Session):
        """Notes how the last attempt ended, which the package only logs. Redirects are not followed."""

        outcome = "no attempt was made"

        def send(self, request: Any, **options: Any) -> Any:
            try:
                response = super().send(request, **{**options, "allow_redirects": False})
            except requests.Timeout:
                self.outcome = "no answer in time"
                raise
            except requests.ConnectionError:
                self.outcome = "it cannot be reached, or ended the connection"
                raise
            except requests.RequestException as error:
                self.outcome = type(error).__name__
                raise
            # The package takes a redirect for success.
            self.outcome = "" if response.status_code < 300 else f"HTTP {response.status_code} {response.reason}"
            return response

    with Watched() as session:
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=timeout_s, session=session)
        result = exporter.export(spans)
        return "" if result is SpanExportResult.SUCCESS and not session.outcome else session.outcome or "it failed"
