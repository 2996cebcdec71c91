"""Benchmarks whose own numbers are compared: one module for each says how they are made of its tasks' documents."""

from __future__ import annotations

from lmms_eval.compare.benchmarks import general_bench, megabench, milebench, mmie

BENCHMARKS = (megabench.BENCHMARK, milebench.BENCHMARK, mmie.BENCHMARK, general_bench.BENCHMARK)
