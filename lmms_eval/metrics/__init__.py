"""Metric functions shared by benchmarks: pure, typed, no I/O. ``table`` finds them by name."""

from lmms_eval.metrics.table import AGGREGATIONS, METRICS, AggregationEntry, MetricEntry

__all__ = ["AGGREGATIONS", "METRICS", "AggregationEntry", "MetricEntry"]
