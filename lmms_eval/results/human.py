"""People's scores of judged answers: the list of documents to score, and the correction of a judge's score by them."""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from lmms_eval import stats
from lmms_eval.engine.aggregate import TaskResult
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import DataError, LmmsEvalError, UsageError
from lmms_eval.results.controls import document_scores
from lmms_eval.results.facts import metric_range, part_of
from lmms_eval.results.run import Run, RunTask
from lmms_eval.results.sample import Sample
from lmms_eval.stats.agreement import HumanAgreement
from lmms_eval.stats.labelled import LabelledMean, Stratum, allocate, labelled_mean, strata_of_scores
from lmms_eval.storage.atomic import replacing
from lmms_eval.tasks._task_utils.labels import Label, drawn_strata, read_labels
from lmms_eval.tasks._task_utils.workbooks import write_rows
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.terminal import no_formula

OPTION = "human_scores"
_PERCENT = 50
"""A number that is so many times the mean of the scores is in percent of them; a few documents may lack a judge."""
LIKE_THESE = "the mean human score of questions like these"
ON_LIST = "the mean human score of these documents"


def takes_itself(config: Mapping[str, Any]) -> bool:
    """Whether a task reads the file of human scores by its own ids, as MMIE does. ``config``: ``Task.describe``."""
    wanted = config.get("run_options")
    return isinstance(wanted, list) and OPTION in wanted


class HumanScores(Struct, frozen=True):
    """A judged score and its correction."""

    row: str
    """``METRIC,FILTER``."""
    judge: float
    """The judge's score, over all documents."""
    corrected: LabelledMean
    agreement: HumanAgreement
    """Of judge and people over the labelled documents, in units of the score."""
    documents: int
    """Documents of the score."""
    planned: bool
    """The file states the probability of each document. Otherwise its documents count as drawn at random."""
    unscored: int
    """Drawn documents that people have not scored."""
    labelled: Mapping[int, tuple[float, float]]
    """By document: people's score in units of the metric, and the inverse of the probability of its draw."""

    def as_dict(self) -> dict[str, Any]:
        """Return the task's entry in the results document."""
        found = self.corrected
        return {
            "metric": self.row,
            "judge": self.judge,
            "corrected": found.value,
            "stderr": found.stderr,
            "interval": {**_ends(found.interval), "about": LIKE_THESE},
            "on_list": {**_ends(found.on_list), "about": ON_LIST},
            "weight": found.weight,
            "labels": self.agreement.n,
            "documents": self.documents,
            "drawn": "planned" if self.planned else "taken as random",
            "without_score": self.unscored,
            "agreement": to_dict(self.agreement),
        }

    def line(self, task: str) -> str:
        """Return the sentence below the table."""
        found, metric = self.corrected, self.row.partition(",")[0]
        drawn = "" if self.planned else ", taken as drawn at random"
        missing = f", {self.unscored} drawn ones without a score taken as missing at random" if self.unscored else ""
        return (
            f"{task}: judge's {metric} {self.judge:.4f}; corrected by {self.agreement.n} human scores of "
            f"{self.documents} documents{drawn}{missing}: {found.value:.4f}, CI95 {_shown(found.interval)} for "
            f"questions like these, {_shown(found.on_list)} for these documents"
        )


def _ends(found: stats.Interval | stats.NoInterval) -> dict[str, Any]:
    if isinstance(found, stats.Interval):
        return to_dict(found)
    return {"low": None, "high": None, "reason": found.reason}


def _shown(found: stats.Interval | stats.NoInterval) -> str:
    return f"[{found.low:.4f}, {found.high:.4f}]" if isinstance(found, stats.Interval) else f"none ({found.reason})"


def check_labels(path: Path, plans: Sequence[TaskPlan]) -> None:
    """Check a file of human scores before anything is asked.

    Raises:
        DataError: the file cannot be used, or a row is about no document of a judged task, or has a score outside the
            range of the task's first metric.
        UsageError: no task is judged.
    """
    judged = {plan.task.name: plan for plan in plans if plan.task.has_judged_scores and not plan.task.control_of}
    if not judged:
        raise UsageError("--human_scores: no task of this run is judged; see docs/judges.md")
    own = {name: plan for name, plan in judged.items() if not takes_itself(plan.task.describe())}
    if not own:
        return
    labels = [label for label in read_labels(path) if label.task not in judged or label.task in own]
    for name, found in _by_task(labels, list(own)).items():
        within = own[name].task.metrics[0].score_range
        for label in found:
            if not (label.id.isascii() and label.id.isdigit() and int(label.id) < own[name].original):
                raise DataError(
                    f"{label.where}: task {name!r} has no document {label.id!r}; ids are those of the samples file "
                    f"(doc_id, 0 to {own[name].original - 1})"
                )
            _check_range(label, within)


def _by_task(labels: Sequence[Label], tasks: Sequence[str]) -> dict[str, list[Label]]:
    """Divide labels by their task. Raises ``DataError`` if a label names no task of several, or another."""
    found: dict[str, list[Label]] = {}
    for label in labels:
        if not label.task and len(tasks) > 1:
            raise DataError(f"{label.where}: no task, of {', '.join(tasks)}; give a column task")
        name = label.task or tasks[0]
        if name not in tasks:
            raise DataError(f"{label.where}: no judged task {name!r} in this run, which has {', '.join(tasks)}")
        found.setdefault(name, []).append(label)
    return found


def _check_range(label: Label, within: ScoreRange | None) -> None:
    if within is not None and label.score is not None and label.score not in within:
        raise DataError(f"{label.where}: the score {label.score:g} lies outside of its range, {within}")


def human_findings(
    path: Path, results: Sequence[TaskResult], store: RunStore
) -> tuple[dict[str, HumanScores], list[str]]:
    """Correct the first number of each judged task by people's scores.

    Returns:
        The corrections by task, and a sentence for each task of the file that has none.

    Raises:
        DataError: a score lies outside of the range, or the file is not the whole plan of a task's documents.
    """
    judged = {one.task.name: one for one in results if one.task.has_judged_scores and not one.task.control_of}
    own = {name: one for name, one in judged.items() if not takes_itself(one.task.describe())}
    if not own:
        return {}, []
    labels = [label for label in read_labels(path) if label.task not in judged or label.task in own]
    found: dict[str, HumanScores] = {}
    lines = []
    for name, of_task in _by_task(labels, list(own)).items():
        one = _corrected(own[name], of_task, store)
        if isinstance(one, str):
            lines.append(f"{name}: no correction by --human_scores: {one}")
        else:
            found[name] = one
    return found, lines


def _corrected(result: TaskResult, labels: Sequence[Label], store: RunStore) -> HumanScores | str:
    """Return the correction, or why it is missing."""
    metric = result.metrics[0]
    scores = next(
        (one for row, one in document_scores(result, store).items() if str(row) == f"{metric.metric},{metric.filter}"),
        None,
    )
    if result.early_stop is not None:
        return "the task stopped early"
    if result.task.repeats > 1:
        return f"each document has {result.task.repeats} answers, and a human score is of one"
    if scores is None or scores.strata:
        return f"{metric.metric} is withheld, or is no mean over documents"
    scale = metric.scale
    within = ScoreRange(scores.within.low / scale, scores.within.high / scale)
    for label in labels:
        _check_range(label, within)
    asked = {
        record["doc_id"]
        for record in store.scores(result.task.name, result.plan.doc_ids)
        if record.get("judge") and record["doc_id"] in scores.by_document
    }
    judge: dict[Any, float] = {doc_id: number for doc_id, number in scores.by_document.items() if doc_id in asked}
    if not judge:
        return "no document has a score of the judge"
    strata = drawn_strata(labels, [int(label.id) for label in labels], judge, scale)
    numbers = list(scores.by_document.values())
    by_rule = tuple(number for doc_id, number in scores.by_document.items() if doc_id not in asked)
    corrected = labelled_mean(
        math.fsum(numbers) / len(numbers),
        [*strata, *([Stratum(len(by_rule), by_rule, by_rule)] if by_rule else [])],
        scores.within,
    )
    if scores.named(list(scores.by_document)) is not None:
        corrected = structs.replace(corrected, interval=stats.NoInterval("documents come in clusters"))
    return HumanScores(
        row=f"{metric.metric},{metric.filter}",
        judge=float(metric.value),
        corrected=corrected,
        agreement=stats.human_agreement(
            [score for one in strata for score in one.judge], [score for one in strata for score in one.human]
        ),
        documents=len(numbers),
        planned=labels[0].probability is not None,
        unscored=sum(label.score is None for label in labels) if labels[0].probability is not None else 0,
        labelled={
            int(label.id): (scale * label.score, 1 / (label.probability or 1.0))
            for label in labels
            if label.score is not None
        },
    )


class LabelPlan(Struct, frozen=True):
    """Documents for people to score."""

    task: str
    rows: Sequence[Mapping[str, Any]]
    """The file's rows, in random order, with an empty score."""
    samples: Sequence[Sample]
    """The sample of each row."""
    drawn: Sequence[tuple[int, int]]
    """Documents drawn and all documents, by stratum, from the lowest scores of the judge."""
    is_neyman: bool
    within: ScoreRange
    """Least and greatest score of the judge."""
    scale: ScoreRange
    """Range of a document's score: the one that the task states, else ``within``."""

    @property
    def line(self) -> str:
        """A sentence about the drawing."""
        labels, size = (sum(one[side] for one in self.drawn) for side in (0, 1))
        parts = ", ".join(f"{n} of {of}" for n, of in self.drawn)
        how = "Neyman's allocation" if self.is_neyman else "in proportion"
        strata = f" in {len(self.drawn)} strata by the judge's score ({parts}; {how})" if len(self.drawn) > 1 else ""
        return f"{labels} of {size} judged documents of {self.task}, drawn at random{strata}"


def plan_labels(run: Run, labels: int, task: str = "", seed: int = 0) -> LabelPlan:
    """Draw judged documents of a run for people to score, in strata by the judge's score.

    Args:
        run: a run with samples.
        labels: the number of documents.
        task: the task; it may be left out if only one is judged.
        seed: the same seed and scores draw the same documents.

    Raises:
        UsageError: no task, or several, are judged; or there are not as many judged documents; or documents have
            several answers.
    """
    found = judged_task(run, task, "judge plan")
    samples = judged_samples(found)
    if any(sample.repeats for sample in samples.values()):
        raise UsageError(f"judge plan: {found.name}: documents have several answers, and a human score is of one")
    if not 2 <= labels <= len(samples):
        raise UsageError(f"judge plan: --labels {labels}: {found.name} has {len(samples)} judged documents; 2 or more")
    scores = [float(sample.score or 0.0) for sample in samples.values()]
    strata = strata_of_scores(scores, labels)
    count = max(strata) + 1
    members = [[key for key, stratum in zip(samples, strata, strict=True) if stratum == each] for each in range(count)]
    means = [math.fsum(samples[key].score or 0.0 for key in keys) / len(keys) for keys in members]
    within = ScoreRange(min(scores), max(scores))
    allocation = allocate(labels, [len(keys) for keys in members], means, within)
    generator = random.Random(f"{seed} {found.name}")
    names = generator.sample(range(1, count + 1), count)  # the number does not show the judge's opinion
    has_own_ids = takes_itself(_config(run, found.name))
    rows = [
        (_row(samples[key], has_own_ids, names[number], drawn / len(keys)), samples[key])
        for number, (keys, drawn) in enumerate(zip(members, allocation.labels, strict=True))
        for key in generator.sample(keys, drawn)
    ]
    generator.shuffle(rows)
    return LabelPlan(
        task=found.name,
        rows=[row for row, _ in rows],
        samples=[sample for _, sample in rows],
        drawn=[(drawn, len(keys)) for keys, drawn in zip(members, allocation.labels, strict=True)],
        is_neyman=allocation.is_neyman,
        within=within,
        scale=scale_of(run, found.name, list(samples.values())) or within,
    )


def scale_of(run: Run, task: str, samples: Sequence[Sample]) -> ScoreRange | None:
    """Return the stated range of a document's score; ``None`` if it is not known.

    The range is that of the task's number. If that is 100 times the mean of the documents' scores, so is its range.
    """
    keys = samples[0].keys
    metric = next((name for name in keys.metrics if samples[0].number(name) is not None), "")
    stated = metric_range(run.facts, task, metric)
    if stated is None or not math.isfinite(stated.high - stated.low):
        return None
    number = part_of(run.facts, "results", task).get(f"{metric},{samples[0].filter}")
    scores = [sample.score or 0.0 for sample in samples]
    mean = math.fsum(scores) / len(scores)
    is_percent = isinstance(number, int | float) and mean != 0 and abs(number / mean) > _PERCENT
    found = ScoreRange(stated.low / 100, stated.high / 100) if is_percent else stated
    return found if all(score in found for score in scores) else None


def judged_task(run: Run, name: str, command: str) -> RunTask:
    """Return a judged task by name, or the only one. Raises ``UsageError`` if no task is judged, or several are."""
    judged = {one.name: one for one in run.tasks.values() if any(sample.judge for sample in one.samples())}
    if name:
        found = run.task(name)
        if name not in judged:
            raise UsageError(f"{command}: no sample of {name} in {run.source} was judged")
        return found
    if len(judged) != 1:
        which = f"name one with --task: {', '.join(judged)}" if judged else "score it with --judge_model first"
        raise UsageError(f"{command}: {run.source} has {len(judged)} judged tasks; {which}")
    return next(iter(judged.values()))


def judged_samples(task: RunTask) -> dict[str, Sample]:
    """Return the judged samples with a score by document, through the first filter pipeline."""
    found: dict[str, Sample] = {}
    for sample in task.samples():
        if sample.judge and sample.status == "scored" and sample.score is not None:
            found.setdefault(sample.doc_id, sample)
    return found


def _config(run: Run, task: str) -> Mapping[str, Any]:
    configs = run.facts.get("configs")
    found = configs.get(task) if isinstance(configs, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _row(sample: Sample, has_own_ids: bool, stratum: int, probability: float) -> dict[str, Any]:
    named: dict[str, Any] = {"id": sample.doc_id}
    if has_own_ids:
        named = {"id": sample.doc.get("id", sample.doc_id), "position": sample.doc.get("position", "")}
    return {
        "task": sample.task,
        **named,
        "score": None,
        "question": sample.prompt,
        "answer": sample.answer,
        "reference": sample.target,
        "media": "\n".join(sample.media),
        "stratum": stratum,
        "probability": probability,
    }


def check_free(path: Path) -> None:
    """Check that a plan can be written to a path. Raises ``UsageError`` if the file exists: it may hold scores."""
    if path.exists():
        raise UsageError(f"judge plan: {path} exists and may hold scores; move it, or give another name")


def written_rows(plan: LabelPlan) -> list[dict[str, Any]]:
    """Return the rows of a plan as its files have them: no text is a spreadsheet's formula."""
    return [
        {name: no_formula(value) if isinstance(value, str) else value for name, value in row.items()}
        for row in plan.rows
    ]


def write_plan(plan: LabelPlan, path: Path) -> None:
    """Write the rows of a plan as CSV, or as a workbook if the name ends with ``.xlsx``.

    Raises:
        UsageError: the file exists, since it may hold scores; or it is a workbook and openpyxl is not installed.
        LmmsEvalError: the file cannot be written.
    """
    check_free(path)
    rows = written_rows(plan)
    try:
        if path.suffix.lower() == ".xlsx":
            write_rows(rows, path)
            return
        with replacing(path) as file:
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            file.write(text.getvalue().encode("utf-8", "replace"))
    except OSError as error:
        raise LmmsEvalError(f"cannot write {path}: {error.strerror or error}") from error
