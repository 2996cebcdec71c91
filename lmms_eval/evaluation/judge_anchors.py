"""Judged answers that are fixed in a file, and judged again later: has the judge drifted (``docs/judges.md``)?"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, field
from msgspec.structs import replace

from lmms_eval import stats
from lmms_eval.api.records import AnswerRecord, JudgeVerdict
from lmms_eval.api.request import Request, Response
from lmms_eval.config import build_config
from lmms_eval.errors import DataError, UsageError
from lmms_eval.evaluation.inputs import RecordedModel, Start, this_command
from lmms_eval.evaluation.record import RunReport
from lmms_eval.evaluation.rescore import JUDGE_OPTIONS, ClosedModel, recorded_choice, response_of, run_folder
from lmms_eval.evaluation.run import EvaluationRun
from lmms_eval.results.human import judged_samples, judged_task, scale_of
from lmms_eval.results.journals import Journals
from lmms_eval.results.run import Run, RunTask, load
from lmms_eval.results.sample import Sample
from lmms_eval.results.samples_file import json_text
from lmms_eval.stats.agreement import weighted_kappa
from lmms_eval.stats.differences import PairedFinding, PairOptions, compare_pairs, flip_test
from lmms_eval.stats.interval import ANY_NUMBER
from lmms_eval.storage.atomic import read_json, write_atomically
from lmms_eval.storage.run_folder import RunFolder
from lmms_eval.utils.numbers import ScoreRange
from lmms_eval.utils.records import to_dict
from lmms_eval.utils.redaction import REDACTED

FORMAT = "lmms-eval judge anchors 1"
LEAST_ITEMS = 2
_SIGNALLED = 128
"""Exit codes above this one are those of a run that a signal has ended."""
_KEPT = (
    "allow_media", "allow_unsafe_code", "apply_chat_template", "datasets_cache", "fewshot_as_multiturn", "gen_kwargs",
    "geocode_table", "geocoder", "image_encode_format", "image_jpeg_quality", "include_path", "judge_prompts",
    "media_root", "model", "model_args", "nltk_data", "num_fewshot", "plugins", "process_with_media", "reasoning_tags",
    "data_root", "seed", "system_instruction", "task_kwargs", "thinking_tags", "trust_remote_code", *JUDGE_OPTIONS,
)  # fmt: skip
"""Options of the run that decide what the judge is asked, and how its replies are scored."""


class AnchorItem(Struct, frozen=True):
    """An answer that the judge has scored."""

    doc_id: int
    score: float
    """Score of the document."""
    answers: list[dict[str, Any]]
    """The answers as the journal has them."""
    verdicts: list[dict[str, Any]]
    """The judge's replies, with the prompts as they were sent (``asked``)."""

    def __post_init__(self) -> None:
        convert(self.answers, list[AnswerRecord])
        for verdict in self.verdicts:
            convert({key: value for key, value in verdict.items() if key not in ("asked", "sent_media")}, JudgeVerdict)

    @property
    def prompts(self) -> dict[str, str]:
        """Fingerprints of the prompts, by question."""
        return _prompts(self.verdicts)


def _prompts(verdicts: Any) -> dict[str, str]:
    return {str(one.get("name")): str(one.get("prompt")) for one in verdicts or () if isinstance(one, Mapping)}


class AnchorSet(Struct, frozen=True):
    """Answers that the judge scores again, with everything that scoring needs except for the task and its data."""

    format: str
    task: str
    judge: str
    """Name of the judge that gave the scores."""
    arguments: dict[str, Any]
    """The run's options that matter, by name."""
    model: dict[str, Any]
    """The model as ``run.json`` describes it."""
    items: list[AnchorItem]
    low: float | None = None
    """Lower end of a score's range; ``None`` if it is not known."""
    high: float | None = None

    @property
    def within(self) -> ScoreRange:
        """The range of a score."""
        return ANY_NUMBER if self.low is None or self.high is None else ScoreRange(self.low, self.high)


def draw_anchors(run: Run, count: int, task: str = "", seed: int = 0) -> AnchorSet:
    """Draw judged answers of a run at random. They must be plain texts.

    A plain draw, without strata by the judge's score: otherwise scores would return to the mean without any drift.

    Raises:
        UsageError: no task, or several, are judged; there are not as many judged answers; documents have several
            answers; or the run has no journals.
    """
    found = judged_task(run, task, "judge anchors")
    samples = judged_samples(found)
    folder = run_folder(run.record or run.source)
    journals = Journals.read(folder)
    places = journals.answered()
    items = {
        doc_id: item
        for doc_id, sample in samples.items()
        if doc_id.isdecimal()
        and (place := places.get((found.name, int(doc_id)))) is not None
        and (item := _item(sample, journals.tails.at(place)["answers"])) is not None
    }
    if not LEAST_ITEMS <= count <= len(items):
        raise UsageError(
            f"judge anchors: --items {count}: {found.name} has {len(items)} judged documents with one answer in text; "
            f"{LEAST_ITEMS} or more"
        )
    state = RunFolder(folder).read()
    drawn = random.Random(f"{seed} {found.name}").sample(sorted(items, key=int), count)
    scale = scale_of(run, found.name, list(samples.values()))
    models = [verdict.get("model") for item in items.values() for verdict in item.verdicts]
    return AnchorSet(
        format=FORMAT,
        task=found.name,
        judge=str(next((model for model in models if model), "")),
        arguments={name: value for name, value in state["arguments"].items() if name in _KEPT and value is not None},
        model=dict(state["model"]),
        items=[items[doc_id] for doc_id in sorted(drawn, key=int)],
        low=None if scale is None else scale.low,
        high=None if scale is None else scale.high,
    )


def _item(sample: Sample, answers: Sequence[Mapping[str, Any]]) -> AnchorItem | None:
    if len(answers) != 1 or type(answers[0].get("value")) is not str or sample.score is None:
        return None
    verdicts = [dict(one) for one in sample.whole.get("judge") or () if isinstance(one, Mapping)]
    return AnchorItem(int(sample.doc_id), sample.score, [dict(one) for one in answers], verdicts)


def write_anchors(anchors: AnchorSet, path: Path) -> None:
    """Write the file. Raises ``UsageError`` if it exists, and ``JournalError`` if it cannot be written."""
    if path.exists():
        raise UsageError(f"judge anchors: {path} exists; move it, or give another name")
    write_atomically(path, json_text(to_dict(anchors), indent=2).encode("utf-8", "replace"))


def read_anchors(path: Path) -> AnchorSet:
    """Read the file. Raises ``DataError`` if it is not one of anchors."""
    content = read_json(path)
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise DataError(f"{path} is no file of anchors; lmms-eval judge anchors writes one")
    try:
        found = convert(content, AnchorSet)
    except ValidationError as error:
        raise DataError(f"{path}: damaged: {error}; lmms-eval judge anchors writes such a file") from error
    if len(found.items) < LEAST_ITEMS or len({item.doc_id for item in found.items}) < len(found.items):
        raise DataError(f"{path}: {LEAST_ITEMS} or more items about different documents are needed")
    return found


class _FixedAnswers:
    """The answers of a file of anchors."""

    def __init__(self, anchors: AnchorSet) -> None:
        self._by_document = {item.doc_id: item.answers for item in anchors.items}

    def response(self, request: Request) -> Response | None:
        return response_of(request, self._by_document.get(request.doc_id, []))


class Drift(Struct, frozen=True):
    """A judge's scores now against those of before, over the same answers to the same prompts."""

    task: str
    judge: str
    """Name of the judge now."""
    before: float
    """Mean score before, over the items that have a score now."""
    now: float
    shift: PairedFinding
    """Now − before."""
    equal: float
    """Share of equal scores."""
    kappa: float | None
    """Cohen's κ with quadratic weights."""
    missing: Sequence[int] = field(default_factory=tuple)
    """Documents without a score now."""
    unread: int = 0
    """Answers with a reply that cannot be read; their score follows the task's rule."""
    alpha: float = 0.05
    margin: float = 0.0

    @property
    def has_drifted(self) -> bool:
        """Whether the mean score differs from before, and by more than the margin."""
        return self.shift.p is not None and self.shift.p < self.alpha and abs(self.shift.value) > self.margin

    @property
    def lines(self) -> list[str]:
        """Sentences about the comparison."""
        found, kappa = self.shift, "not defined" if self.kappa is None else f"{self.kappa:.2f}"
        interval = found.interval
        ends = (
            f"CI95 [{interval.low:+.4f}, {interval.high:+.4f}]"
            if isinstance(interval, stats.Interval)
            else f"no interval ({interval.reason})"
        )
        p = "none" if found.p is None else "<0.0001" if found.p < 0.0001 else f"{found.p:.4f}"
        lines = [
            f"{self.task}: {found.n} answers judged again by {self.judge}: mean score {self.before:.4f} before, "
            f"{self.now:.4f} now; shift {found.value:+.4f}, {ends}, p {p} ({found.test}); {self.equal:.1%} of the "
            f"scores equal, kappa {kappa}"
        ]
        if self.missing:
            shown = ", ".join(map(str, self.missing[:5])) + (", ..." if len(self.missing) > 5 else "")
            lines.append(f"{len(self.missing)} answers have no score now, and are left out: documents {shown}")
        if self.unread:
            lines.append(f"{self.unread} answers have a reply that cannot be read")
        beyond = f" and the shift beyond {self.margin:g}" if self.margin else ""
        verdict = f"drift: p is below {self.alpha:g}{beyond}"
        return [*lines, verdict if self.has_drifted else f"no drift: not p below {self.alpha:g}{beyond}"]


def check_anchors(path: Path, given: Mapping[str, Any], alpha: float = 0.05, margin: float = 0.0) -> Drift:
    """Ask a judge about the answers of a file again, without any cache, and compare the scores.

    Args:
        path: the file.
        given: options of the judge; without them, the recorded ones are used.
        alpha: the level of the test.
        margin: the largest shift of the mean score that is no drift, in units of the score.

    Raises:
        DataError: the file is damaged, a prompt is no longer that of the file, or too few answers have a score now.
        UsageError: the judge cannot be opened, or the task is gone.
    """
    anchors = read_anchors(path)
    with tempfile.TemporaryDirectory(prefix="lmms-eval-anchors-") as folder:
        config = build_config(_values(path, anchors, given, folder), {})
        choice = recorded_choice(config.model, anchors.model)
        model = ClosedModel(anchors.model.get("identity", {}), {}, _FixedAnswers(anchors))
        report = EvaluationRun(config, start=Start(this_command(), recorded=RecordedModel(choice, model))).report()
        if report.exit_code > _SIGNALLED:
            raise KeyboardInterrupt
        task = load(folder).task(anchors.task)
        samples, why = judged_samples(task), _reason(task, report)
        asked = {doc_id: _prompts(sample.judge) for doc_id, sample in samples.items()}
        scores = {doc_id: sample.score for doc_id, sample in samples.items() if sample.score is not None}
        unread = sum(
            any(isinstance(one, Mapping) and not one.get("accepted") for one in sample.judge or ())
            for sample in samples.values()
        )
    changed = [item.doc_id for item in anchors.items if asked.get(str(item.doc_id), item.prompts) != item.prompts]
    if changed:
        raise DataError(
            f"{path}: {len(changed)} of {len(anchors.items)} prompts are no longer those of the file (document "
            f"{changed[0]}): task, data or --judge_prompts have changed; lmms-eval judge anchors writes another file"
        )
    items = [item for item in anchors.items if str(item.doc_id) in scores]
    if len(items) < LEAST_ITEMS:
        raise DataError(f"{path}: {len(items)} of {len(anchors.items)} answers have a score now: {why:.300}")
    before, now = [item.score for item in items], [scores[str(item.doc_id)] for item in items]
    judge = report.results.get("judge", {})
    return Drift(
        task=anchors.task,
        judge=str(judge.get("model", "")),
        before=sum(before) / len(before),
        now=sum(now) / len(now),
        shift=shift_of(now, before, anchors.within),
        equal=sum(a == b for a, b in zip(before, now, strict=True)) / len(items),
        kappa=weighted_kappa(before, now),
        missing=[item.doc_id for item in anchors.items if str(item.doc_id) not in scores],
        unread=unread,
        alpha=alpha,
        margin=margin,
    )


def _reason(task: RunTask, report: RunReport) -> str:
    """Return why answers have no score: the judge's error, else the task's words."""
    if given_up := report.results.get("judge", {}).get("given_up"):
        return str(given_up)
    unscored = [sample for sample in task.samples() if sample.status != "scored"]
    verdicts = (one for sample in unscored for one in sample.judge or () if isinstance(one, Mapping))
    errors = [str(one["error"]) for one in verdicts if one.get("error")]
    return next(iter(errors), unscored[0].reason if unscored else "see the log")


def shift_of(now: Sequence[float], before: Sequence[float], within: ScoreRange = ANY_NUMBER) -> PairedFinding:
    """Compare a judge's scores of the same answers.

    If the judge is the same as before, the two scores of an answer are exchangeable, so flips of signs are an exact
    test however skewed the differences are (Fisher 1935). ``compare_pairs`` cannot assume that for two models.
    """
    import numpy as np

    scores = [*now, *before]
    known = within if min(scores) in within and max(scores) in within else ANY_NUMBER
    options = PairOptions(within=known)
    found = compare_pairs(now, before, options=options)
    if found.test != "gaffke":
        return found
    p, test = flip_test(np.subtract(now, before), options.draws, options.seed)
    return replace(found, p=p, test=test)


def _values(path: Path, anchors: AnchorSet, given: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return the options of the run that asks the judge."""
    recorded = {name: value for name, value in anchors.arguments.items() if name in _KEPT}
    if given:
        recorded = {name: value for name, value in recorded.items() if name not in JUDGE_OPTIONS}
    hidden = [name for name in JUDGE_OPTIONS if REDACTED in str(recorded.get(name, ""))]
    if hidden:
        raise UsageError(
            f"judge check: {path} keeps no keys, so its --{hidden[0]} cannot be used: give the judge's options again"
        )
    return {
        **recorded,
        **given,
        "tasks": anchors.task,
        "ids": ",".join(str(item.doc_id) for item in anchors.items),
        "output_path": folder,
        "log_samples": True,
        "error_budget": 1.0,
        "judge_error_budget": 1.0,
    }
