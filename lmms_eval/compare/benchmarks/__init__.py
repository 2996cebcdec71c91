"""Benchmarks with numbers of their own: one module each computes them from the documents of the benchmark's tasks."""

from __future__ import annotations

from lmms_eval.compare.benchmarks import general_bench, megabench, milebench, mmie

BENCHMARKS = (megabench.BENCHMARK, milebench.BENCHMARK, mmie.BENCHMARK, general_bench.BENCHMARK)
