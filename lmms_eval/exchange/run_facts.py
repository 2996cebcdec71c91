"""Sentences about a run for its report card: what it measured, how, and what it records about each question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from lmms_eval.exchange.numbers import ReportedNumber, ReportedNumbers, is_control, numbers_of
from lmms_eval.exchange.origins import DataSource, ModelFacts, RequestOptions, judge_texts
from lmms_eval.results.facts import leaves_of, part_of
from lmms_eval.results.run import Run
from lmms_eval.results.sample import finite, json_cell
from lmms_eval.results.tables import WITHOUT
from lmms_eval.utils.names import some_of
from lmms_eval.viewer.certainty import IN_WORDS

MOST_NAMED = 6
IN_PART = "in part: "
"""Beginning of a text that states only a part of what is asked."""
_DIGITS = 16


class RunDescription:
    """A run with results, in words. Each method returns a text that is empty if the run states nothing about it."""

    def __init__(self, run: Run) -> None:
        self.run, self.document = run, run.document
        self.model, self.judged = ModelFacts.of(run.document), ModelFacts.of_judge(run.document)

    @cached_property
    def numbers(self) -> tuple[ReportedNumbers, ...]:
        return numbers_of(self.document)

    @cached_property
    def shown(self) -> tuple[ReportedNumber, ...]:
        return tuple(number for numbers in self.numbers for number in numbers.shown)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The leaf tasks, without controls."""
        names = [leaf for numbers in self.numbers for leaf in leaves_of(self.document, numbers.name)]
        return tuple(name for name in dict.fromkeys(names) if not is_control(name))

    @cached_property
    def sources(self) -> tuple[DataSource, ...]:
        return tuple(DataSource.of(self.document, task) for task in self.tasks)

    def part(self, *keys: str) -> Mapping[str, Any]:
        found = self.document
        for key in keys:
            found = part_of(found, key)
        return found

    def same(self, values: Mapping[str, str]) -> str:
        """Return the value that all tasks share, or each value with its tasks."""
        by_value: dict[str, list[str]] = {}
        for task, value in values.items():
            by_value.setdefault(value, []).append(task)
        if len(by_value) <= 1:
            return next(iter(by_value), "")
        return "; ".join(f"{value} ({some_of(tasks, MOST_NAMED)})" for value, tasks in by_value.items() if value)

    # What was measured.

    def benchmarks(self) -> str:
        """Return tasks, versions and revisions of data; empty if some data have neither a revision nor a hash."""
        if not all(source.revision or source.task_hash for source in self.sources):
            return ""
        versions = self.part("versions")
        revisions = {source.task: self.revision(source) for source in self.sources}
        named = {task: f"version {versions.get(task, 'unknown')}, {revisions[task]}" for task in self.tasks}
        return f"{some_of(list(self.tasks), MOST_NAMED)}: {self.same(named) if len(named) < MOST_NAMED else 'see Data'}"

    def revision(self, source: DataSource) -> str:
        """Return the revision of a task's data, or what identifies its documents."""
        if source.revision:
            return f"{source.repository} at {source.revision}"
        name = source.repository or "local data"
        return f"{name}, documents {source.task_hash[:_DIGITS]}" if source.task_hash else name

    def documents(self) -> str:
        asked = [self.counts(task) for task in self.tasks]
        if not asked or any(None in pair for pair in asked):
            return ""
        total, whole = sum(pair[0] or 0 for pair in asked), sum(pair[1] or 0 for pair in asked)
        marks = dict.fromkeys(text for number in self.shown for name, text in number.marks.items() if name in _CHOSEN)
        how = "; ".join(marks) if marks else "all of them" if total == whole else "the first ones"
        return f"{total:,} of {whole:,} items: {how}"

    def counts(self, task: str) -> tuple[int | None, int | None]:
        """Return the numbers of documents of the run and of the split."""
        found = self.part("n-samples", task)
        asked, whole = found.get("effective"), found.get("original")
        return (asked if isinstance(asked, int) else None, whole if isinstance(whole, int) else None)

    # The model and how it was asked.

    def model_version(self) -> str:
        """Return the model with what identifies its weights, if that is recorded."""
        described = self.part("model")
        revision = next((described[name] for name in ("revision", "commit", "sha") if described.get(name)), "")
        if not revision:
            return f"{IN_PART}{self.model.name}, no revision is recorded"
        return f"{self.model.name}, revision {revision}"

    def access(self) -> str:
        model = self.model
        engine = f"{model.engine} {model.engine_version}".strip()
        place = f"engine {engine}" if engine else f"service {model.platform}" if model.platform else ""
        return "; ".join(filter(None, (f"back end {self.document.get('model_source')}", place, model.deployment)))

    def prompts(self) -> str:
        fingerprint = self.document.get("prompt_fingerprint")
        if not fingerprint:
            return ""
        system = self.document.get("system_instruction_sha")
        template = self.document.get("chat_template_sha")
        return "; ".join(
            filter(
                None,
                (
                    f"fingerprint of all prompts {str(fingerprint)[:_DIGITS]}",
                    f"system instruction {str(system)[:_DIGITS]}" if system else "no system instruction",
                    f"chat template {str(template)[:_DIGITS]}" if template else "",
                ),
            )
        )

    def options(self, task: str) -> str:
        """Return the generation options of a task."""
        found = RequestOptions.of(self.document, task).options
        return ", ".join(f"{name} {json_cell(value)}" for name, value in found.items() if value is not None)

    def settings(self) -> str:
        return self.same({task: self.options(task) for task in self.tasks})

    def tools(self) -> str:
        if "run_key" not in self.document:
            return ""
        arguments = self.model.details.get("model_args", "")
        return "tools by an MCP server" if "mcp_server" in arguments else "no tools configured"

    def shots_and_repeats(self) -> str:
        shots, configs = self.part("n-shot"), self.part("configs")
        return self.same(
            {
                task: f"examples: {shots.get(task, 0)}, answers per item: {part_of(configs, task).get('repeats', 1)}"
                for task in self.tasks
            }
        )

    # Scoring.

    def scoring(self) -> str:
        metrics = {
            task: ", ".join(dict.fromkeys(n.metric for n in self.shown if n.task == task)) for task in self.tasks
        }
        named = self.same({task: text for task, text in metrics.items() if text})
        return f"{IN_PART}{named}; their rules: lmms-eval tasks describe TASK" if named else ""

    def judge(self) -> str:
        if self.judged is None:
            return "no model grades" if "run_key" in self.document else ""
        prints = dict.fromkeys(
            f"{name} {digest}" for task in self.tasks for name, digest in judge_texts(self.document, task).items()
        )
        return "; ".join(filter(None, (self.judged.name, f"texts {', '.join(prints)}" if prints else "")))

    def judge_validation(self) -> str:
        if self.judged is None:
            return "no model grades" if "run_key" in self.document else ""
        found = self.part("human_scores")
        return "; ".join(text for task in found if (text := _agreement(task, part_of(found, task))))

    def quality(self) -> str:
        outcomes = {task: self.part("outcomes", task) for task in self.tasks}
        if not all(outcomes.values()):
            return ""
        names = ("failed", "unscored", "not_asked", "blank", "filtered", "truncated", "judge_unread")
        totals = {name: sum(int(one.get(name) or 0) for one in outcomes.values()) for name in names}
        return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in totals.items())

    # Certainty.

    def statistics(self) -> str:
        if not self.shown or any(number.n is None for number in self.shown):
            return ""
        return f"{len(self.shown)} numbers, each with its number of items (Results)"

    def uncertainty(self) -> str:
        methods = dict.fromkeys(number.method for number in self.shown if number.low is not None)
        about = dict.fromkeys(number.estimand for number in self.shown if number.low is not None and number.estimand)
        if not methods:
            return ""
        without = sum(number.low is None for number in self.shown)
        rest = f"; {without} numbers without an interval, with the reason" if without else ""
        words = [next((text for one, text in IN_WORDS.items() if one == name), name) for name in about]
        where = f", about {', '.join(words)}" if words else ""
        return f"one run; 95 % intervals by {', '.join(methods)}{where}{rest}"

    def alternatives(self) -> str:
        return "; ".join((*self._controls(), *self._variants()))

    def contamination(self) -> str:
        return "; ".join(self._controls())

    def _controls(self) -> Iterator[str]:
        names = list(dict.fromkeys(name for task in self.part("controls").values() for name in _controls_in(task)))
        if names:
            yield "asked again " + ", ".join(WITHOUT.get(name, name) for name in names)
        if any(isinstance(task, Mapping) and task.get("rotations") for task in self.part("controls").values()):
            yield "choices of the questions rotated"

    def _variants(self) -> Iterator[str]:
        if found := self.part("prompt_variants"):
            yield f"{max(len(part_of(part_of(found, task), 'variants')) for task in found)} other prompts"
        if self.part("noise_floor"):
            yield "a part of the items asked a second time"

    def comparison(self) -> str:
        paired = self.part("paired")
        names = dict.fromkeys(
            str(part_of(rows, row).get("baseline")) for rows in paired.values() for row in rows if part_of(rows, row)
        )
        chance = any(part_of(one, "chance") for one in self.part("controls").values() if isinstance(one, Mapping))
        known = {
            f"runs: {', '.join(names)}": names,
            "chance level": chance,
            "published numbers": self.part("published"),
        }
        return "; ".join(text for text, is_there in known.items() if is_there)

    def subgroups(self) -> str:
        found = [task for task in self.part("sub_scores") if not is_control(task)]
        groups = [name for name in self.part("groups") if not is_control(name)]
        parts = [f"parts of {some_of(found, MOST_NAMED)}"] if found else []
        return "; ".join((*parts, *([f"tasks of {some_of(groups, MOST_NAMED)}"] if groups else [])))

    def withheld_numbers(self) -> str:
        found = [text for numbers in self.numbers for text in numbers.withheld]
        return f"{len(found)} numbers (Results)" if found else "no number is withheld"

    def limits(self) -> str:
        marked = {number.task: "; ".join(number.marks.values()) for number in self.shown if number.marks}
        return self.same(marked) if marked else ""

    def transcripts(self) -> str:
        found = [task for task in self.tasks if task in self.run.tasks]
        if not found:
            return ""
        return f"samples of {some_of(found, MOST_NAMED)} with prompts, answers and scores (samples files of the run)"

    # Machine and cost.

    def software(self) -> str:
        versions = self.part("library_versions")
        names = ("lmms_eval", "python", "torch", "transformers", "vllm", "sglang", "openai")
        known = [f"{name} {versions[name]}" for name in names if versions.get(name)]
        commit = self.document.get("git_hash")
        return ", ".join([*known, *([f"commit {str(commit)[:12]}"] if commit else [])])

    def hardware(self) -> str:
        machine = self.part("machine")
        gpus = machine.get("gpus")
        cards = f"GPUs {', '.join(map(str, gpus))}" if isinstance(gpus, Sequence) and gpus else "no GPU in this process"
        if not machine:
            return ""
        where = "" if self.model.engine else " (the machine that asked)"
        return f"{machine.get('platform', '')}, {machine.get('cpus', '?')} CPUs, {cards}{where}"

    def cost(self) -> str:
        total = self.part("usage", "total")
        counts = {name: finite(total.get(name)) for name in ("input_tokens", "output_tokens")}
        found = [f"{name.replace('_', ' ')} {count:,.0f}" for name, count in counts.items() if count is not None]
        price = self.part("usage", "cost")
        if finite(price.get("total")) is not None:
            found.append(f"cost {price['total']:.4g} {price.get('currency', '')}".strip())
        seconds = finite(self.document.get("total_evaluation_time_seconds")) or _seconds(self.document)
        return ", ".join([*found, *([f"{seconds:,.0f} s"] if seconds else [])])


_CHOSEN = ("stopped_early", "random_sample", "part_of_split")


def _controls_in(task: Any) -> list[str]:
    return [name for name in task if name not in ("chance", "rotations")] if isinstance(task, Mapping) else []


def _seconds(document: Mapping[str, Any]) -> float | None:
    begin, end = finite(document.get("start_time")), finite(document.get("end_time"))
    return None if begin is None or end is None else end - begin


def _agreement(task: str, entry: Mapping[str, Any]) -> str:
    """Return what people's scores of a task's documents say about its judge."""
    judge, corrected = finite(entry.get("judge")), finite(entry.get("corrected"))
    if judge is None or corrected is None:
        return ""
    return f"{task}: {entry.get('labels')} items scored by people, judge {judge:.4g}, corrected {corrected:.4g}"
