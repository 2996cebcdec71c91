"""Figures of the server for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lmms_eval.server.service import Service

STATES = ("queued", "running", "completed", "failed", "cancelled")


class _Jobs(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        counts = self._service.store.counts()
        jobs = GaugeMetricFamily("lmms_eval_jobs", "Jobs in the list, by state", labels=["state"])
        for state in STATES:
            jobs.add_metric([state], counts.get(state, 0))
        yield jobs
        scheduler = self._service.scheduler
        ended = CounterMetricFamily("lmms_eval_jobs_ended", "Jobs that have ended since the start", labels=["state"])
        for state, count in scheduler.ended.items():
            ended.add_metric([state], count)
        yield ended
        yield GaugeMetricFamily("lmms_eval_gpus", "GPUs that are given out to jobs", len(scheduler.plan.room.gpus))
        yield GaugeMetricFamily("lmms_eval_gpus_held", "GPUs that running jobs hold", len(scheduler.held_gpus))


class Metrics:
    """The figures of one server."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Jobs(service))
        self._seconds = Histogram(
            "lmms_eval_request_seconds",
            "Time to the beginning of an answer",
            ["method", "route", "status"],
            registry=self._registry,
        )

    def saw(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note an answer; ``route`` is the pattern of the address, so that their number is bounded."""
        self._seconds.labels(method, route, str(status)).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)
