"""Inputs that stall naive readers, over every parser and every metric.

``LMMS_EVAL_TEST_FUZZ=1 python -m tests.tasks.megabench.stalls`` measures texts of a megabyte (else of a fifth).
Prints a Markdown table with the worst times; the bar is one second each (exit code 1 above it).
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.metrics import METRICS, MetricSpec
from lmms_eval.tasks.megabench.metrics.latex_process import _guard
from lmms_eval.tasks.megabench.scoring.parsers import PARSERS, AnswerShape, parse_repaired
from lmms_eval.utils.terminal import Column, markdown_table
from tests.tasks.megabench.fuzzing import MEGABYTE, NASTY

BAR_S = 1.0
SHAPE = AnswerShape("a", single_line=True)
SANDBOXED = frozenset({"program_judge"})
"""Its limits are the sandbox's own, see tests/sandbox."""

TEXTS: Mapping[str, str] = MappingProxyType(
    NASTY
    | {
        "fence and 1,000 newlines after the marker": "Answer: ```json" + "\n" * 1000 + "{",
        "json fence and a megabyte of newlines": "Answer:\n```json" + "\n" * MEGABYTE + "{",
        "parentheses": "(" * MEGABYTE,
        "balanced parentheses": "(" * 5_000 + ")" * 5_000,
        "balanced brackets": "[" * 5_000 + "]" * 5_000,
        "balanced braces": '{"a":' * 5_000 + "1" + "}" * 5_000,
        "balanced brackets, shallow": "[" * 90 + "]" * 90,
        "a list of brackets": "[" + "[1]," * 200_000 + "]",
        "mixed brackets": "([{" * 300_000,
        "closing brackets": "]" * MEGABYTE,
        "a text": "a b c, " * (MEGABYTE // 7),
        "sentences": "A word is here. " * (MEGABYTE // 16),
        "lines": "word\n" * (MEGABYTE // 5),
        "commas": "," * MEGABYTE,
        "single quotes": "'" * MEGABYTE,
        "double quotes": '"' * MEGABYTE,
        "quoted words": "{" + "'a': 'b', " * (MEGABYTE // 10) + "}",
        "broken quotes": "{" + "'a': it's, " * (MEGABYTE // 11) + "}",
        "escaped quotes": '{"' + '\\"' * (MEGABYTE // 2) + '"}',
        "asterisks": "*" * MEGABYTE,
        "asterisks and a marker": "*" * MEGABYTE + "Answer:" + "*" * MEGABYTE,
        "bold words": "**a** " * (MEGABYTE // 6),
        "bold markers": "**Answer:** " * (MEGABYTE // 12),
        "a starred marker and blanks": "*Answer:" + " " * MEGABYTE,
        "markers in lines": "Answer:\n" * (MEGABYTE // 8),
        "markers without colon": "**Answer" * (MEGABYTE // 8),
        "markers and blanks": ("**Answer:" + " " * 2000) * 400,
        "powers in LaTeX": "10^{10^{10}}",
        "towers in LaTeX": "9^{9^{9^{9}}}",
        "exponents": "1e999999999",
        "power of a sum": "(x+y)^{99999}",
        "factorial": "99999999!",
        "factorials": "((99!)!)!",
        "binomial": r"\binom{99999999}{4999999}",
        "sum": r"\sum_{i=1}^{99999999} i^{99}",
        "product": r"\prod_{i=1}^{99999999} i",
        "integral": r"\int_0^1 \sin(\cos(\sin(x^{x^x}))) dx",
        "limit": r"\lim_{x \to 0} \frac{\sin(x^{99})}{x^{99}}",
        "roots": r"\sqrt{" * 200 + "2" + "}" * 200,
        "many roots": r"\sqrt{" * 2_000 + "2" + "}" * 2_000,
        "closed fractions": r"\frac{1}{" * 200 + "2" + "}" * 200,
        "many closed fractions": r"\frac{1}{" * 1_000 + "2" + "}" * 1_000,
        "a megabyte of fractions": r"\frac{1}{2}+" * (MEGABYTE // 12) + "1",
        "a short sum of fractions": r"\frac{1}{2}+" * 700 + "1",
        "a formula of 9,000 characters": "x_{1}+" * 1_500 + "1",
        "letters of 5,000 characters": "abcde" * 1_000,
        "words of 5,000 characters": "word " * 1_000,
        "digits of 4,000 characters": "9" * 4_000,
        "digits of 9,000 characters": "9" * 9_000,
        "parentheses of 4,000 characters": "(" * 2_000 + "1" + ")" * 2_000,
        "parentheses of 200 characters": "(" * 100 + "1" + ")" * 100,
        "bars of 200 characters": "|" * 200,
        "bars around letters": "|a" * 60,
        "signs of 4,000 characters": "-" * 4_000 + "1",
        "indices": "a_{" * 200 + "b" + "}" * 200,
        "powers of letters": "a^{" * 200 + "b" + "}" * 200,
        "a polynomial": "+".join(f"{i}x^{{{i}}}" for i in range(400)),
        "a product of sums": "".join(f"(x+{i})" for i in range(60)),
        "sines": "+".join(f"\\sin({i}x)^{{9}}" for i in range(60)),
        "a matrix": r"\begin{matrix}" + r"1 & 2 \\ " * 500 + r"\end{matrix}",
        "boxed LaTeX of a megabyte": r"\boxed{" + r"\alpha+" * (MEGABYTE // 7) + "}",
        "dollars around letters": "$a$ " * (MEGABYTE // 4),
        "boxes": "<box>0,0,1,1</box>" * (MEGABYTE // 18),
        "points": "<point>0,0</point>" * (MEGABYTE // 18),
        "box list": "[" + "(0, 0, 1, 1), " * 14_000 + "]",
        "long box list": "[" + "(0, 0, 1, 1), " * 70_000 + "]",
        "number list": "[" + "0.5, " * 39_000 + "]",
        "long number list": "[" + "0.5, " * 200_000 + "]",
        "steps": "(move a b)\n" * (MEGABYTE // 11),
        "steps without end": "(move " * (MEGABYTE // 6),
        "long step": "(move " + "a " * (MEGABYTE // 2) + ")",
        "chinese": "北京大学的" * (MEGABYTE // 15),
        "macron letters": "ā" * (MEGABYTE // 2),
        "overlines": r"\overline{a}_b" * (MEGABYTE // 14),
        "equals signs in a line": "=" * MEGABYTE,
        "delimiters": r"\(" * (MEGABYTE // 2),
        "percent signs": "%" * MEGABYTE,
        "surrogates": "\ud800" * (MEGABYTE // 3),
    }
)

VALUES: Mapping[str, Any] = MappingProxyType(
    {
        "value: a long list": [1] * 200_000,
        "value: a list of texts": ["word"] * 200_000,
        "value: a list of boxes": [(0.0, 0.0, 1.0, 1.0)] * 50_000,
        "value: a list of points": [(0.0, 1.0)] * 50_000,
        "value: a large dictionary": {str(number): "[1, 2]" for number in range(20_000)},
        "value: dictionaries": ast.literal_eval("{'a': " * 90 + "1" + "}" * 90),
        "value: lists": ast.literal_eval("[" * 90 + "1" + "]" * 90),
        "value: a huge integer": 9**200_000,
        "value: an infinite number": float("inf"),
        "value: NaN": float("nan"),
    }
)
"""What the ``json`` parser can hand to a metric."""

_TRUTHS = {
    "nbbox": "[(0, 0, 1, 1)]", "xml_norm": "<point>0.5, 0.5</point>", "xml_nbbox": "<box>0, 0, 1, 1</box>",
    "sequence_coords": "[(0, 1)]", "general": "5", "boxed": r"\boxed{5}", "latex": r"\frac{x+1}{2}",
    "text_with": r"The result is $\frac{x+1}{2}$.", "number": "5", "positive": "5", "normalized_rmse": "0.5",
    "angle": "[90, 45]", "gleu": "北京大学在北京", "chess": "Nf3, Qh7#", "near": "the colour of the sky",
}  # fmt: skip
_DICTS = {"dict_nbbox": {"a": [(0, 0, 1, 1)]}, "dict": {"a": "[1, 2]", "b": "x"}}
_DOMAIN = """(define (domain d)
 (:action move :parameters (?a ?b) :precondition (and (at ?a) (not (shut ?b))) :effect (and (at ?b) (not (at ?a))))
 (:action wait :parameters (?a) :precondition (at ?a) :effect (waited ?a)))"""
_CONTEXT = {
    "domain_pddl": _DOMAIN,
    "task_pddl": "(define (problem p) (:init (at a)) (:goal (and (at b))))",
    "bounding_boxes": ["(0, 0, 1, 1)"],
}
CONTEXTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "": _CONTEXT,
        "length": {"length": ">5"},
        "contain": {"contain##times": "word##3"},
        "acrostic": {"acrostic": "abc"},
        "syllables": {"syllables": "[5,7]5"},
        "rhymes": {"rhyming_scheme": "aabb"},
        "metre": {"poetry_meter": "iambic"},
    }
)
CONTEXT_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "parentheses": "(" * MEGABYTE,
        "actions": "(:action a " * (MEGABYTE // 11),
        "one long action": "(:action a (" + "(b ?c) " * (MEGABYTE // 7) + ") () ())(:action b () () ())",
        "conjunctions": "(and " * (MEGABYTE // 5),
        "parameters": "(:action a :parameters (" + "?a " * (MEGABYTE // 3) + ") () ())",
    }
)
"""In the place of a planning domain and of a planning problem."""


@dataclass(frozen=True, slots=True)
class Case:
    """One call that must come back soon, with a value or an error."""

    target: str
    text: str
    call: Callable[[], Any]

    def seconds(self) -> float:
        """Processor time of the call, here and in the LaTeX process, whatever comes of it: others' work does not count.

        Wall time where the LaTeX process was ended. Raises ``NotEvaluated`` where something is missing.
        """
        child, before, start, wall = _guard.child_pid, _child_seconds(), time.process_time(), time.perf_counter()
        self._run()
        if _guard.child_pid != child:
            return time.perf_counter() - wall
        return time.process_time() - start + _child_seconds() - before

    def _run(self) -> None:
        try:
            self.call()
        except NotEvaluated:
            raise
        except Exception:  # noqa: BLE001 - scored 0 with the error recorded; only the time counts here
            pass


def _child_seconds() -> float:
    """Processor time that the LaTeX process has used."""
    if _guard.child_pid is None:
        return 0.0
    fields = Path(f"/proc/{_guard.child_pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def parser_cases(text: str) -> Iterator[Case]:
    """Every parser, official and repaired, on one text of ``TEXTS``."""
    reply = TEXTS[text]
    for name, parser in PARSERS.items():
        yield Case(f"parser {name}", text, functools.partial(parser, reply, SHAPE))
        yield Case(f"parser {name}, repaired", text, functools.partial(parse_repaired, name, reply, SHAPE))


def metric_cases(name: str, texts: Mapping[str, Any]) -> Iterator[Case]:
    """One metric, official and fixed, on each of the texts or values."""
    spec = METRICS[name]
    if not spec.path or spec.judged or spec.needs == "a geocoder":
        return
    for label, function in _functions(spec):
        for kind, target in _targets(spec):
            for text, response in texts.items():
                yield Case(f"{label}{kind and f' ({kind})'}", text, functools.partial(function, response, target))


def context_cases() -> Iterator[Case]:
    """Planning domains and problems that a data set might hold."""
    spec = METRICS["symbolic_planning_test"]
    for label, function in _functions(spec):
        for text, content in CONTEXT_TEXTS.items():
            for key in ("domain_pddl", "task_pddl"):
                context = {**_CONTEXT, key: content}
                yield Case(f"{label} ({key})", text, functools.partial(function, "(move a b)", context))


def _functions(spec: MetricSpec) -> Iterator[tuple[str, Callable[..., Any]]]:
    yield spec.name, spec.load()
    if spec.fixed:
        yield f"{spec.name}, fixed", spec.load_fixed()


def _targets(spec: MetricSpec) -> Iterator[tuple[str, Any]]:
    if spec.name == "constrained_generation":
        yield from ((kind, context) for kind, context in CONTEXTS.items() if kind)
    elif spec.needs_context:
        yield "", _CONTEXT
    else:
        yield "", truth_of(spec.name)


def truth_of(name: str) -> Any:
    """A true answer that the metric can read."""
    for prefix, value in _DICTS.items():
        if name.startswith(prefix):
            return value
    return next((truth for prefix, truth in _TRUTHS.items() if name.startswith(prefix)), "[1, 'a']")


def all_cases(chosen: str) -> Iterator[Case]:
    """All cases whose target contains ``chosen``."""
    for text in TEXTS:
        yield from (case for case in parser_cases(text) if chosen in case.target)
    for name in METRICS:
        if name not in SANDBOXED:
            yield from (case for case in metric_cases(name, {**TEXTS, **VALUES}) if chosen in case.target)
    yield from (case for case in context_cases() if chosen in case.target)


def main() -> int:
    """Measure all cases; returns 1 if one of them is above the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the name of a parser or metric")
    parser.add_argument("--all", action="store_true", help="each case, not the worst of each parser and metric")
    given = parser.parse_args()
    METRICS["general_single_numerical_match"].load()("x", "y")  # the child process is there
    METRICS["gleu_cn"].load()("北京", "北京")  # so are the dictionary and NLTK's data
    with contextlib.suppress(NotEvaluated):  # told below
        METRICS["constrained_generation"].load()("A word.", CONTEXTS["contain"])
    gc.freeze()  # the inputs of this table are no work of the functions
    rows: list[tuple[float, Case]] = []
    count = 0
    for case in all_cases(given.only):
        count += 1
        try:
            rows.append((case.seconds(), case))
            if rows[-1][0] > BAR_S:
                sys.stderr.write(f"{case.target}: {case.text}: {rows[-1][0]:.1f} s\n")
        except NotEvaluated as missing:
            sys.stderr.write(f"{case.target}: not evaluated: {missing}\n")
    rows.sort(key=lambda row: -row[0])
    slow = sum(seconds > BAR_S for seconds, _ in rows)
    worst: dict[str, tuple[float, Case]] = {}
    for seconds, case in rows:
        worst.setdefault(f"{case.target} {case.text}" if given.all else case.target, (seconds, case))
    table = markdown_table(
        [
            Column("Target", tuple(case.target for _, case in worst.values()), is_text=True),
            Column("Worst input", tuple(case.text for _, case in worst.values()), is_text=True),
            Column("Seconds", tuple(f"{seconds:.3f}" for seconds, _ in worst.values())),
        ]
    )
    sys.stdout.write(f"{table}\n\n{count} cases, {slow} above {BAR_S:g} s\n")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
