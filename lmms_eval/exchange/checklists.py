"""Checklists for reports of evaluations, each item with what a results document states about it.

The items are worded here and grouped as the documents are: NIST AI 800-2, "Practices for Automated Benchmark
Evaluations of Language Models" (initial public draft, 2026), and STREAM, "A Standard for Transparently Reporting
Evaluations in AI Model Reports" (arXiv 2508.09853).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from lmms_eval.errors import UsageError
from lmms_eval.exchange.run_facts import IN_PART, RunDescription

NIST = "NIST AI 800-2 (initial public draft)"
STREAM = "STREAM"
ABSENT = "absent"


class ChecklistItem(Struct, frozen=True):
    """An item of a checklist."""

    list: str
    section: str
    key: str
    """Name in ``--about FILE``. Items of both lists that ask the same have one key."""
    text: str
    finder: Callable[[RunDescription], str] | None = None
    """Returns what the run states, or an empty text; ``None`` for what only people know."""


class ItemAnswer(Struct, frozen=True):
    """An item with its answer."""

    item: ChecklistItem
    text: str
    """Empty if it is absent."""
    is_stated: bool = False
    """The answer comes from ``--about``."""

    @property
    def is_partial(self) -> bool:
        return self.text.startswith(IN_PART)

    @property
    def shown(self) -> str:
        """The answer, or that it is absent and who can fill it."""
        if self.text:
            return self.text
        by = "people who know" if self.item.finder is None else "a run that records it, or people who know"
        return f"{ABSENT}; to be filled by {by} (--about, {self.item.key})"


def _list(name: str, *sections: tuple[str, Mapping[str, str]]) -> Iterator[ChecklistItem]:
    for section, items in sections:
        for key, text in items.items():
            yield ChecklistItem(name, section, key, text, FINDERS.get(key))


FINDERS: Mapping[str, Callable[[RunDescription], str]] = {
    "benchmark": RunDescription.benchmarks,
    "items": RunDescription.documents,
    "model_version": RunDescription.model_version,
    "access": RunDescription.access,
    "prompts": RunDescription.prompts,
    "settings": RunDescription.settings,
    "tools": RunDescription.tools,
    "shots_and_repeats": RunDescription.shots_and_repeats,
    "scoring": RunDescription.scoring,
    "auto_grader": RunDescription.judge,
    "grader_validation": RunDescription.judge_validation,
    "software": RunDescription.software,
    "hardware": RunDescription.hardware,
    "quality_checks": RunDescription.quality,
    "contamination": RunDescription.contamination,
    "cost": RunDescription.cost,
    "statistics": RunDescription.statistics,
    "uncertainty": RunDescription.uncertainty,
    "alternatives": RunDescription.alternatives,
    "comparison": RunDescription.comparison,
    "subgroups": RunDescription.subgroups,
    "transcripts": RunDescription.transcripts,
    "withheld": RunDescription.withheld_numbers,
    "limits": RunDescription.limits,
}
"""What a run states, by key; other keys are known to people only."""

ITEMS: tuple[ChecklistItem, ...] = (
    *_list(
        NIST,
        (
            "Objectives and choice of benchmarks",
            {
                "objective": "the question or decision that the evaluation serves",
                "construct": "what the benchmark is taken to measure, and why it fits the question",
                "benchmark": "the benchmark, its version and the revision of its data",
                "items": "how many items were used, of how many, and how they were chosen",
                "contamination": "what was done about contamination and shortcuts",
            },
        ),
        (
            "Implementing and running",
            {
                "model_version": "the exact model and version",
                "access": "how the model was reached: weights, service, engine",
                "prompts": "system prompt, templates and prompts as sent",
                "settings": "sampling options and limits of the answers",
                "tools": "tools and scaffolding",
                "shots_and_repeats": "examples in the prompt, and answers per item",
                "scoring": "how answers are read and scored",
                "auto_grader": "the model that grades, and its prompts",
                "grader_validation": "how far the grader agrees with people",
                "software": "software and versions, so that the run can be repeated",
                "hardware": "hardware",
                "quality_checks": "failures, refusals and cut answers, counted",
                "read_by_people": "transcripts read by people, and what they found",
                "cost": "tokens, time and money",
            },
        ),
        (
            "Analysing and reporting",
            {
                "statistics": "each number with its number of items",
                "uncertainty": "uncertainty, its method, and what it is about",
                "comparison": "a baseline: chance, another model, people",
                "subgroups": "results by part of the benchmark",
                "withheld": "numbers that are not given, and why",
                "transcripts": "items, answers and scores that others can inspect",
                "limits": "limits of the numbers",
                "claims": "claims no wider than the evidence",
            },
        ),
    ),
    *_list(
        STREAM,
        (
            "Threat relevance",
            {
                "threat": "the capability measured, and the threat model that it matters for",
                "thresholds": "results that would rule the capability in or out",
                "example_item": "an example of an item with an answer",
            },
        ),
        (
            "Test construction, grading and scoring",
            {
                "items": "number of items, and their relation to the whole test",
                "scoring": "form of the answers and how they are scored",
                "answer_key": "how reference answers were made and checked",
                "human_graders": "people who grade: who, how many, how far they agree",
                "auto_grader": "automated grading: the model and its prompts",
                "grader_validation": "automated grading: checks against people",
            },
        ),
        (
            "Model elicitation",
            {
                "model_version": "the exact model versions tested",
                "safeguards": "safety measures that were active during the test",
                "settings": "how the model was elicited: options, reasoning, attempts",
                "prompts": "prompts as sent",
                "prompt_search": "what was tried to find prompts and options",
                "tools": "tools and scaffolding",
            },
        ),
        (
            "Model performance",
            {
                "statistics": "representative statistics of the performance",
                "uncertainty": "uncertainty, and the number of runs",
                "alternatives": "results under other conditions: ablations, other prompts",
            },
        ),
        (
            "Baseline performance",
            {
                "human_baseline": "people's performance and how it was measured, or why it was not",
                "comparison": "other baselines",
            },
        ),
        (
            "Interpretation of the results",
            {
                "conclusions": "conclusions, and how the results support them",
                "falsification": "results that would have led to other conclusions",
                "forecast": "what is expected of the next models",
                "review": "time and process of the interpretation, and disagreements",
            },
        ),
    ),
)


def answers(run: RunDescription, about: Mapping[str, str]) -> tuple[ItemAnswer, ...]:
    """Return all items with their answers. ``about`` holds what people add, by key, and comes first.

    Raises:
        UsageError: ``about`` has a key that no item has.
    """
    known = {item.key for item in ITEMS}
    if unknown := [key for key in about if key not in known]:
        raise UsageError(f"--about: no item {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    found = {key: finder(run) for key, finder in FINDERS.items()}
    return tuple(
        ItemAnswer(item, about[item.key], is_stated=True)
        if item.key in about
        else ItemAnswer(item, found.get(item.key, ""))
        for item in ITEMS
    )
