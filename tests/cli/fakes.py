"""Stands in for the evaluator, so that the command line is tested without running a model."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from lmms_eval.config import RunConfig


@dataclass
class Report:
    exit_code: int = 0
    table: str = "|table|"
    lines: list[str] = field(default_factory=lambda: ["last line"])
    ended: bool = False

    def end(self) -> None:
        self.ended = True


@dataclass
class Evaluator:
    """Answers each run with what ``outcome`` says, and remembers the configurations."""

    outcome: Callable[[RunConfig], Report]
    seen: list[RunConfig] = field(default_factory=list)

    def run(self, config: RunConfig, ends: bool = True) -> Report:
        assert not ends  # the command ends it, when it has printed all
        self.seen.append(config)
        return self.outcome(config)


def install(monkeypatch: pytest.MonkeyPatch, outcome: Callable[[RunConfig], Report]) -> Evaluator:
    evaluator = Evaluator(outcome)
    module = types.ModuleType("lmms_eval.evaluation.run")
    module.run = evaluator.run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lmms_eval.evaluation.run", module)
    return evaluator
