from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.runs import RunRows
from lmms_eval.compare.table import comparison_json, comparison_markdown, comparison_text
from lmms_eval.compare.verdicts import CompareOptions, PromptDifference
from tests.compare.runs import column, run, stopped, task

OPTIONS = CompareOptions(draws=300)
NAMES = ("as given", "terse", "expert", "polite")


def asked(
    name: str, scores: dict[str, list[float | None]], digests: dict[str, str] | None = None, **facts: Any
) -> RunRows:
    tasks = []
    for prompt, numbers in scores.items():
        full = "quiz" if prompt == "as given" else f"quiz@{prompt}"
        statuses = ["failed" if one is None else "scored" for one in numbers]
        tasks.append(task([column(numbers)], full, statuses=statuses, **facts))
    variants = {prompt: {"digest": (digests or {}).get(prompt, prompt), "changes": {}} for prompt in scores}
    return replace(run(name, *tasks), results={"prompt_variants": {"quiz": {"variants": variants}}})


def drawn(shares: tuple[float, ...], seed: int, n: int = 120) -> dict[str, list[float | None]]:
    rng = np.random.default_rng(seed)
    level = rng.random(n)
    return {name: [float(one) for one in level < share] for name, share in zip(NAMES, shares, strict=False)}


def over_prompts(first: RunRows, second: RunRows) -> tuple[PromptDifference, ...]:
    return tuple(compare_runs([first, second], OPTIONS).pairs[0].prompts)


def test_the_difference_is_paired_per_prompt_and_over_prompts() -> None:
    left, right = drawn((0.8, 0.75, 0.85, 0.8), 1), drawn((0.6, 0.65, 0.6, 0.6), 1)
    comparison = compare_runs([asked("a", left), asked("b", right)], OPTIONS)
    (row,) = comparison.pairs[0].prompts
    each = {name: float(np.mean(left[name]) - np.mean(right[name])) for name in NAMES}  # type: ignore[arg-type]
    assert row.prompts == pytest.approx(each)
    assert row.value == pytest.approx(np.mean(list(each.values())))
    assert (row.n, row.missing, row.ahead, row.behind) == (120, 0, NAMES, ())
    assert row.ranking == "ranking holds under all 4 prompts"
    assert row.these is not None and row.like_these is not None
    assert row.like_these.low < row.these.low < row.value < row.these.high < row.like_these.high
    assert row.p_these is not None and row.p_like_these is not None and row.p_these <= row.p_like_these < 0.05
    own = {one.name for one in comparison.pairs[0].rows}
    assert own == {"quiz", "quiz@terse", "quiz@expert", "quiz@polite"}
    text = comparison_text(comparison)
    assert "a (first) against b (second), over prompts" in text
    assert "quiz acc: ranking holds under all 4 prompts (as given +" in text
    assert "over prompts" in comparison_markdown(comparison)
    assert json.loads(comparison_json(comparison))["pairs"][0]["prompts"][0]["ahead"] == list(NAMES)


def test_prompts_that_change_the_ranking_are_named() -> None:
    first, second = drawn((0.8, 0.5, 0.8, 0.7), 1), drawn((0.6, 0.7, 0.6, 0.7), 1)
    (row,) = over_prompts(asked("a", first), asked("b", second))
    assert row.ranking == "first ahead under 2 of 4 prompts; ranking changes under: terse, polite"
    assert row.p_like_these is not None and row.p_like_these > 0.05


def test_lower_is_better_turns_the_ranking_around() -> None:
    def worse(run_: RunRows) -> RunRows:
        tasks = {
            name: replace(
                one, columns={key: replace(each, higher_is_better=False) for key, each in one.columns.items()}
            )
            for name, one in run_.tasks.items()
        }
        return replace(run_, tasks=tasks)

    first, second = worse(asked("a", drawn((0.8, 0.8), 1))), worse(asked("b", drawn((0.6, 0.6), 1)))
    (row,) = over_prompts(first, second)
    assert (row.ahead, row.behind) == ((), ("as given", "terse"))
    assert (row.like_these, row.no_like_these, row.p_like_these) == (None, "fewer than 3 prompts", None)
    assert row.these is not None


def test_only_prompts_with_the_same_changes_count() -> None:
    left = asked("a", drawn((0.8, 0.8, 0.8, 0.8), 1), {"terse": "x"})
    right = asked("b", drawn((0.6, 0.6, 0.6), 1), {"terse": "y"})
    comparison = compare_runs([left, right], OPTIONS)
    (row,) = comparison.pairs[0].prompts
    assert list(row.prompts) == ["as given", "expert"]
    assert "quiz: prompts that only one run has, or that differ: terse, polite" in comparison.notes
    other = asked("b", drawn((0.6, 0.6), 1), {"terse": "y"})
    assert over_prompts(left, other) == ()


def test_runs_without_variants_have_no_rows() -> None:
    plain = run("b", task([1, 0, 1]))
    assert over_prompts(asked("a", drawn((0.5, 0.6), 1, 3)), plain) == ()
    assert over_prompts(run("a", task([1, 1, 0])), plain) == ()


def test_documents_without_a_number_are_counted() -> None:
    left = drawn((0.8, 0.8, 0.8), 1)
    left["terse"][0] = None
    comparison = compare_runs([asked("a", left), asked("b", drawn((0.6, 0.6, 0.6), 1))], OPTIONS)
    (row,) = comparison.pairs[0].prompts
    assert (row.n, row.missing) == (119, 1)
    assert "1 documents without a number under one of the prompts are left out" in comparison_text(comparison)


def test_early_stopped_runs_and_clusters() -> None:
    first, second = drawn((0.8, 0.8, 0.8), 1), drawn((0.6, 0.6, 0.6), 1)
    clusters = [f"c{number // 6}" for number in range(120)]
    alone, clustered = (
        over_prompts(asked("a", first, clusters=names), asked("b", second, clusters=names))[0]
        for names in (None, clusters)
    )
    assert alone.value == clustered.value and alone.these != clustered.these
    early = asked("a", first, early_stop=stopped(120, 400))
    assert over_prompts(early, asked("b", second)) == ()
