"""The process that checks tasks and models. A job is a JSON line, answered by one line for each step and a last one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from lmms_eval.api.judging import Verdict
from lmms_eval.api.model import Model, lmms
from lmms_eval.api.task import Answer, MetricDefinition, Selection, Task, TaskOptions
from lmms_eval.checks.findings import (
    NO_NETWORK,
    NOT_SCORED,
    Finding,
    finding,
    is_this_machine,
    of_reason,
    of_request,
    refuse_connections,
)
from lmms_eval.checks.workers import spec_of
from lmms_eval.config import build_config, resolved_cli_args
from lmms_eval.engine.aggregate import MetricResult, TaskResult
from lmms_eval.engine.evaluate import EngineOptions, evaluate
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import UnknownNameError
from lmms_eval.models.baseline import Baseline
from lmms_eval.models.building import BuildOptions
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.task_access import gold_answer_of
from lmms_eval.processes import Parent
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import build_from_spec, choose, select_tasks
from lmms_eval.tasks.yaml.included import include, include_again
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.utils.logging import configure_logging
from lmms_eval.utils.records import to_dict


def tried(tasks: Sequence[Task], model: Model, documents: int) -> tuple[TaskResult, ...]:
    """Ask a model about the first documents of loaded tasks, and score the answers.

    Files that an aggregation writes go to a temporary folder. Raises ``LmmsEvalError`` if the model or the data are
    unusable.
    """
    plans = [plan_task(task, documents, 0) for task in tasks]
    with TemporaryDirectory(prefix="lmms-eval-check-") as folder:
        given = resolved_cli_args(
            build_config({"model": "baseline", "tasks": ",".join(task.name for task in tasks), "output_path": folder})
        )
        aggregate = AggregateOptions(bootstrap_iters=0, arguments=SimpleNamespace(**given), allow_blank=True)
        with closing(RunStore(Path(folder), "check")) as store:
            result = evaluate(plans, Selection(tuple(tasks)), model, store, EngineOptions(aggregate=aggregate))
    assert result is not None  # a run of one process aggregates
    return result.tasks


def first_reason(result: TaskResult) -> str:
    """Return the most frequent reason why documents are not scored, or an empty text if all are scored."""
    return next(iter(result.outcome.reasons), "")


def number_of(metric: MetricResult) -> float | None:
    """Return the value of a metric, withheld or not, or ``None`` if it is not a number."""
    value: Any = metric.value if metric.value is not None else metric.partial
    is_number = isinstance(value, int | float) and not math.isnan(value)
    return float(value) if is_number else None


def ends(definition: MetricDefinition) -> tuple[float | None, float | None]:
    """Return the best and the worst value that a metric can have, or ``None`` if that is not known."""
    stated = definition.score_range
    if stated is None:
        return None, None
    low, high = (end if math.isfinite(end) else None for end in (stated.low, stated.high))
    return (low, high) if definition.higher_is_better is False else (high, low)


Begin = Callable[[str], None]
"""Called with the name of each step as it begins."""
_ASKED = {"text": ("Which colour has the sky? Answer with one word.", None), "picture": ("Describe it.", "p.png")}
_TASK = """\
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: rows.jsonl}}}}
test_split: test
doc_to_text: question
doc_to_target: answer
generation_kwargs: {{max_new_tokens: 8}}
metric_list: [{{metric: bypass, aggregation: bypass}}]
"""


def check_model(spec: Mapping[str, Any], begin: Begin) -> list[Finding]:
    """Look up a model, build it, and ask it a question of text and one with a picture.

    ``spec`` has ``name``, ``arguments`` (``--model_args``), ``plugins``, ``force_simple``, ``batch_size`` and
    ``device``.
    """
    begin("import")
    registry = ModelRegistry(spec["plugins"])
    try:
        for folder in registry.plugin_task_folders():
            include(folder)
        resolved = registry.resolve(spec["name"], spec["force_simple"])
        cls = resolved.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the model's module runs here
        return [finding("import", error)]
    found = [Finding("import")]
    begin("arguments")
    try:
        options = BuildOptions(
            batch_size=spec["batch_size"], device=spec["device"], force_simple=spec["force_simple"]
        )  # fmt: skip
        model = registry.build(spec["name"], spec["arguments"], options)[0]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the model's constructor runs here
        return [*found, finding("arguments", error)]
    found.append(Finding("arguments"))
    with closing(model):
        asked = TaskOptions(
            model_name=spec["name"], model_id=resolved.manifest.model_id, chat=resolved.kind == "chat",
            legacy=issubclass(cls, lmms),
        )  # fmt: skip
        return [*found, *_answers(model, asked, begin)]


def _answers(model: Model, options: TaskOptions, begin: Begin) -> Iterator[Finding]:
    address = model.identity().get("base_url")
    if isinstance(address, str) and not is_this_machine(urlsplit(address).hostname or ""):
        text = f"it asks {urlsplit(address).hostname}: an evaluation with --limit 1 shows whether it answers"
        yield Finding("text", "skipped", NO_NETWORK, text, text)
        return
    for step in _ASKED:
        begin(step)
        with _question(step, options) as task:
            try:
                (result,) = tried([task], model, 1)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the model's own code runs here
                yield finding(step, error)
                return
        if result.outcome.failed:
            reason = first_reason(result)
            yield of_request(step, reason)
            return
        yield Finding(step)


@contextmanager
def _question(step: str, options: TaskOptions) -> Iterator[Task]:
    """Make a loaded task of one document, in a temporary folder."""
    text, picture = _ASKED[step]
    with TemporaryDirectory(prefix="lmms-eval-check-") as made:
        folder = Path(made)
        row = {"question": text, "answer": "-"}
        content = _TASK.format(name=f"check_{step}")
        if picture:
            from PIL import Image

            Image.new("RGB", (64, 48), "red").save(folder / picture)
            row["pictures"] = [str(folder / picture)]  # type: ignore[assignment]  # the other values are texts
            content += "doc_to_visual: pictures\n"
        (folder / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        file = folder / "check.yaml"
        file.write_text(content, encoding="utf-8")
        (task,) = select_tasks([str(file)], Catalogue(include_defaults=False), options).tasks
        task.load()
        yield task


_NO_GOLD = "the task states no reference answer; give doc_to_target, or doc_to_gold: an answer that deserves full marks"


def marks(task: Task, documents: int) -> list[Finding]:
    """Score the reference answers of the first documents, then empty answers, and compare them with the best and the
    worst values."""
    config = getattr(task, "config", None)
    stated = [getattr(config, key, None) for key in ("doc_to_target", "doc_to_gold")]
    has_gold = any(value not in (None, "") for value in stated) or (config is None and hasattr(task, "gold_answer"))
    if not has_gold:
        return [Finding("gold", "skipped", "no reference answer", _NO_GOLD, _NO_GOLD)]
    (gold,) = tried([task], Baseline(no_media=True), documents)
    found = _without_numbers("gold", gold)
    if found:
        return [*_judged(task, documents), *found] if gold.outcome.is_empty else found
    # An aggregation may fail over a sample only: one that needs pairs of documents, for example.
    raised = [metric.withheld_reason for metric in gold.metrics if metric.broken]
    if raised and not any(metric.broken and _may_need_more(gold.task, metric.metric) for metric in gold.metrics):
        return [Finding("metrics", "failed", "aggregation wrong", reason, reason) for reason in raised]
    kind = f"aggregation raises over {gold.plan.requested} of {gold.plan.original} documents"
    found = [Finding("metrics", "doubtful", "aggregation raises on a sample", kind, reason) for reason in raised]
    if not task.output_type.startswith("generate_until"):  # there are no empty answers: one choice is always likeliest
        return [*found, _verdict("gold", list(_lacking_full_marks(gold, None)), gold)]
    (empty,) = tried([task], Baseline(strategy="constant", text=""), documents)
    full = _verdict("gold", list(_lacking_full_marks(gold, empty)), gold)
    above = [
        f"{pair.name} of empty answers is {pair.empty:g}, the floor is {worst:g}"
        for pair in _pairs(gold, empty)
        if (worst := ends(pair.definition)[1]) is not None
        and pair.empty is not None
        and not math.isclose(pair.empty, worst, abs_tol=1e-6)
    ]
    floor = _without_numbers("empty", empty) or [_verdict("empty", above, empty)]
    return [*found, full, *floor]


_REPLIES = ("1", "yes", "1 1")
"""Replies of a judge that most readers accept."""


def _judged(task: Task, documents: int) -> Iterator[Finding]:
    """Build the questions to a judge about reference answers, and score them by made-up replies, without a judge."""
    if getattr(getattr(task, "config", None), "doc_to_judge", None) is None:
        return
    for plan in plan_task(task, documents, 0).doc_ids:
        answers = [Answer(gold_answer_of(task, plan))]
        questions = task.judge_questions(plan, answers)
        for question in questions:
            question.build_messages()
        replies = [next(filter(question.accepts, _REPLIES), None) for question in questions]
        if None in replies:
            continue
        given = zip(questions, replies, strict=True)
        verdicts = [Verdict(question.name, reply, True, "check") for question, reply in given]
        try:
            task.score(plan, answers, verdicts)
        except Exception as error:  # noqa: BLE001 - the task's own code runs here
            raised = finding("gold", error)
            text = f"with the reply {replies[0]!r} of a judge: {raised.message}"
            yield Finding("gold", "doubtful", "scoring of a judge's reply raises", raised.cause, text)
            return


def _may_need_more(task: Task, name: str) -> bool:
    """Return whether a metric's aggregation may raise only because it has few documents, as no mean does."""
    return next(one.aggregation_name for one in task.metrics if one.name == name) != "mean"


def _without_numbers(step: str, result: TaskResult) -> list[Finding]:
    """Return the reasons why there are no numbers to compare. The list is empty if there are numbers."""
    reason = first_reason(result)
    if result.outcome.failed:
        return [of_reason(step, reason)]
    if result.outcome.is_empty:
        return [Finding(step, "skipped", NOT_SCORED, reason, reason)]
    is_sample = result.plan.requested < result.plan.original
    broken = [metric for metric in result.metrics if metric.broken and not (metric.n and is_sample)]
    reasons = [metric.withheld_reason for metric in broken]
    return [Finding("metrics", "failed", "aggregation wrong", reason, reason) for reason in reasons]


class _Pair(Struct, frozen=True):
    """A metric's definition, and its values for reference answers and for empty ones."""

    definition: MetricDefinition
    name: str
    gold: float
    empty: float | None

    @property
    def is_better(self) -> bool:
        """True if the reference answers score better than empty ones."""
        if self.empty is None:
            return True
        return self.gold < self.empty if self.definition.higher_is_better is False else self.gold > self.empty


def _pairs(gold: TaskResult, empty: TaskResult | None) -> Iterator[_Pair]:
    definitions = {definition.name: definition for definition in gold.task.metrics}
    others = {} if empty is None else {(one.metric, one.filter): number_of(one) for one in empty.metrics}
    for metric in gold.metrics:
        value = number_of(metric)
        if value is not None:
            name = metric.metric if metric.filter == "none" else f"{metric.metric},{metric.filter}"
            yield _Pair(definitions[metric.metric], name, value, others.get((metric.metric, metric.filter)))


def _lacking_full_marks(gold: TaskResult, empty: TaskResult | None) -> Iterator[str]:
    """Describe metrics of the reference answers that are not the best value.

    A metric without a known best value may be a count that is the same for all answers, so one metric that
    distinguishes reference answers from empty ones is enough.
    """
    pairs = list(_pairs(gold, empty))
    distinguishes = any(pair.is_better for pair in pairs)
    for pair in pairs:
        best, worst = ends(pair.definition)
        if best is not None and worst is not None and not min(best, worst) <= pair.gold <= max(best, worst):
            span = f"the range {min(best, worst):g} to {max(best, worst):g} that metric_list states"
            yield f"{pair.name} of reference answers is {pair.gold:g}, outside of {span}"
        elif best is not None and not math.isclose(pair.gold, best, abs_tol=1e-6):
            yield f"{pair.name} of reference answers is {pair.gold:g}, full marks are {best:g}"
        elif best is None and not distinguishes:
            yield f"{pair.name} of reference answers is {pair.gold:g}, of empty ones {pair.empty:g}"


def _verdict(step: str, complaints: Sequence[str], result: TaskResult) -> Finding:
    if complaints:
        what = "no full marks" if step == "gold" else "above the floor"
        hint = "; a task whose target is not an answer takes doc_to_gold" if step == "gold" else ""
        return Finding(step, "doubtful", what, what, "; ".join(complaints) + hint)
    if all(number_of(metric) is None for metric in result.metrics):
        return Finding(step, "skipped", "no score", "no metric is a number", "its metrics give no number")
    return Finding(step)


_PART_OF_METRICS = ("aggregation", "metric", "filter")
"""Kinds of unknown names that are faults of ``metric_list`` or ``filter_list``."""


def check_task(spec: Mapping[str, Any], documents: int, reader: YamlReader, begin: Begin) -> list[Finding]:
    """Check a task in steps, and call ``begin`` with the name of each step.

    The steps build it, open its data, build the prompts of its first documents, and score reference answers and empty
    ones. The check ends at the first step that fails or is skipped. ``reader`` caches YAML files that several tasks
    share.
    """
    begin("functions")
    try:
        task = build_from_spec(spec, reader)
    except UnknownNameError as error:
        return [finding("metrics" if error.kind in _PART_OF_METRICS else "functions", error)]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the task's modules are imported here
        return [finding("functions", error)]
    found = [Finding("functions")]
    for step, work in (("data", _load), ("prompt", _build_prompts), ("gold", marks)):
        begin(step)
        try:
            made = work(task, documents)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the task's own code runs here
            made = [finding(step, error)]
        found += made
        if any(each.status in ("failed", "skipped") for each in made):
            break
    return found


def _load(task: Task, _documents: int) -> list[Finding]:
    task.load()
    return [Finding("data")]


def _build_prompts(task: Task, documents: int) -> list[Finding]:
    from lmms_eval.models.baseline import open_media

    for doc_id in range(min(documents, len(task))):
        for request in task.exchange(doc_id, 0).open():
            open_media(request.build_messages())
    return [Finding("prompt")]


class _Jobs:
    """Carries out jobs and sends the replies."""

    def __init__(self, start: Mapping[str, Any], parent: Parent) -> None:
        self._start, self._parent = start, parent
        self._reader = YamlReader()
        self._catalogue: Catalogue | None = None
        include_again(start["included"])

    def begin(self, step: str) -> None:
        self._reply({"step": step})

    def serve(self, job: Mapping[str, Any]) -> None:
        specs: list[Mapping[str, Any]] = []
        if job["what"] == "task":
            found = check_task(job["spec"], self._start["documents"], self._reader, self.begin)
        elif job["what"] == "group":
            self.begin("group")
            found, specs = self._check_group(job["name"])
        else:
            found = check_model(job["spec"], self.begin)
        self._reply({"findings": [to_dict(one) for one in found], "members": specs})

    def _check_group(self, name: str) -> tuple[list[Finding], list[Mapping[str, Any]]]:
        """Look up a group. Returns the finding, and the ``spec`` of each of its tasks."""
        try:
            if self._catalogue is None:
                self._catalogue = Catalogue(self._start["include_paths"], self._start["plugins"])
            sources = choose([name], self._catalogue).sources
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the modules of its aggregations are imported here
            return [finding("group", error)], []
        options = TaskOptions(**self._start["options"])
        return [Finding("group")], [spec_of(source, options) for source in sources]

    def _reply(self, message: Mapping[str, Any]) -> None:
        self._parent.send(orjson.dumps(message, default=str))


def serve() -> None:
    """Carry out jobs until standard input ends."""
    parent = Parent()
    start = orjson.loads(parent.receive())
    configure_logging(start["verbosity"])
    refuse_connections()
    jobs = _Jobs(start, parent)
    for line in parent:
        jobs.serve(orjson.loads(line))


if __name__ == "__main__":
    serve()
