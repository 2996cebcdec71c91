"""Functions of the task YAML: messages from documents, predictions and states from replies, and results from states.

The task options are those of ``settings.Settings``.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.outcome import BenchmarkReport, Estimate, NotEvaluated, TaskNumbers, Unscored, Withheld
from lmms_eval.errors import DataError, ItemError, LmmsEvalError
from lmms_eval.tasks._task_utils.file_utils import model_name
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks.general_bench import scoring, summary
from lmms_eval.tasks.general_bench.data.documents import item_of, stated_type
from lmms_eval.tasks.general_bench.data.records import id_key
from lmms_eval.tasks.general_bench.facts import LANGUAGE, tasks_by_id
from lmms_eval.tasks.general_bench.measures import registry
from lmms_eval.tasks.general_bench.measures.registry import scoring_identity
from lmms_eval.tasks.general_bench.nlp.types import type_of
from lmms_eval.tasks.general_bench.prompts import questions, replies
from lmms_eval.tasks.general_bench.readers.regions import mask
from lmms_eval.tasks.general_bench.readers.sides import Side
from lmms_eval.tasks.general_bench.scoring import ItemOutcome
from lmms_eval.tasks.general_bench.settings import Settings


def gold(doc: Mapping[str, Any], settings: Settings) -> str:
    """Return a reply that gives the reference answer, or an empty text if no reply can."""
    item = item_of(doc, settings)
    reference = item.reference
    if isinstance(reference, list | tuple) and reference and all(isinstance(one, str) for one in reference):
        reference = reference[0]
    if reference is None:
        return ""
    if item.facts.modality != LANGUAGE:
        if item.form == "mask" and isinstance(reference, str):
            try:
                # run lengths: the form of a mask in a text
                found = mask(item.reference, Side(item, predicted=False))
                edges = [0, *(int(edge) for run in zip(found.starts, found.ends, strict=True) for edge in run)]
                edges.append(found.height * found.width)
                reference = {
                    "size": list(found.size),
                    "counts": [end - start for start, end in itertools.pairwise(edges)],
                }
            except LmmsEvalError:  # scoring reports the fault for this empty outline
                return "[]"
        return reference if isinstance(reference, str) else json.dumps(reference)
    kind = type_of(stated_type(doc))
    if kind.name == "MultipleChoiceQA":
        return f"answer: {reference}"
    if kind.is_number:
        return f"[{reference}]"
    if kind.name == "Code Defect Detection":
        return "no defect" if reference == "0" else "defect"
    return f"{kind.marker} {reference}".strip().replace("<p>", ", ")


Options = Mapping[str, Any] | None


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[dict[str, Any]]:
    """Return one user turn, media first, then the text. Raises ``ItemError`` if the item cannot be read or asked."""
    settings = Settings.of(lmms_eval_specific_kwargs)
    with _alone():
        return questions.messages(doc, settings)


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> str:
    """Return the question's text, or for an unusable item the reason, which its messages then raise."""
    if doc["problem"]:
        return str(doc["problem"])
    try:
        return questions.text(doc, Settings.of(lmms_eval_specific_kwargs))
    except DataError as error:
        return str(error)


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[Any]:
    """Return the media of the question. Raises ``ItemError`` if the item cannot be read or asked."""
    settings = Settings.of(lmms_eval_specific_kwargs)
    with _alone():
        return questions.visuals(doc, settings)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Turn a fault of the data into the failure of this item; the run continues."""
    try:
        yield
    except DataError as error:
        raise ItemError(str(error)) from error


def doc_to_target(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> str:
    """Return the reference answer for samples, or an empty text for closed sets and unreadable items."""
    if doc["problem"]:
        return ""
    reference = item_of(doc, Settings.of(lmms_eval_specific_kwargs)).reference
    if isinstance(reference, list | tuple) and reference and all(isinstance(one, str) for one in reference):
        return str(reference[0])
    return "" if reference is None else str(reference)[:1000]


def doc_to_gold(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> str:
    """Return a reply with full marks, for ``--model baseline --model_args strategy=gold``."""
    return "" if doc["problem"] else gold(doc, Settings.of(lmms_eval_specific_kwargs))


def doc_to_judge(
    doc: Mapping[str, Any], results: Sequence[Any], lmms_eval_specific_kwargs: Options = None
) -> list[JudgeQuestion]:
    """Return the question to the judge, for the one judged task."""
    from lmms_eval.tasks.general_bench.measures import judged

    settings = Settings.of(lmms_eval_specific_kwargs)
    item = item_of(doc, settings)
    return [judged.question(item, replies.prediction(replies.record(doc, _reply(results), settings)))]


@depends_on(scoring_identity)
def process_results(
    doc: Mapping[str, Any],
    results: Sequence[Any],
    verdicts: Mapping[str, Verdict] | None = None,
    lmms_eval_specific_kwargs: Options = None,
) -> dict[str, Any]:
    """Return the item's state under the metric's name (``Unscored`` if it cannot be evaluated), and its prediction.

    Raises ``DataError`` if the item or its reference cannot be read: the sample fails.
    """
    settings = Settings.of(lmms_eval_specific_kwargs)
    item = item_of(doc, settings)
    made = replies.record(doc, _reply(results), settings)
    name = item.facts.metric
    record = {"place": int(doc["place"]), "record": made}
    try:
        measure = registry.measure_for(item.facts, doc["measured_as"] or item.form)
        context = settings.context.having(candidates=list(doc["candidates"]))
        if verdicts:
            reply = next(iter(verdicts.values())).text
            context = context.having(verdicts={id_key(item.id): reply})
        outcome = scoring.score_item(item, replies.prediction(made), measure, context)
    except NotEvaluated as absent:
        return {name: Unscored(absent.reason), "predictions": record}
    if outcome.status == "failed":
        raise DataError(outcome.note)
    value = {**outcome.as_record(), "measure": measure.name, "form": doc["measured_as"] or item.form}
    if measure.is_mean:
        value["score"] = outcome.state
    return {name: value, "predictions": record}


def _reply(results: Sequence[Any]) -> Any:
    return results[0] if results else ""


def aggregate(values: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate | Withheld:
    """Return the task's number in the unit of the result table, with unanswered items as wrong, and its details."""
    facts = tasks_by_id()[task.describe()["dataset_name"]]
    measure = registry.measure_for(facts, values[0]["form"])
    outcomes = [ItemOutcome.from_record(value) for value in values]
    score = summary.evaluated(lambda: summary.combine(facts, measure, outcomes), facts, measure.name, len(outcomes))
    if score.withheld:
        return Withheld(None, score.withheld)
    kwargs = task.prompts.kwargs or {}
    options = {key: value for key, value in kwargs.items() if not isinstance(value, Mapping)}
    details = {**score.as_dict(), "options": options, "model": model_name(args)}
    return Estimate(score.strict, score.stderr, {summary.KEY: details})


def aggregate_predictions(records: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate:
    """Write ``prediction.json`` and return no value. The details hold its path."""
    from lmms_eval.tasks.general_bench import submission

    path = submission.write_task(records, args, task)
    return Estimate(None, details={} if path is None else {"submission_files": [str(path)]})


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Report the levels for the tasks of a run."""
    from lmms_eval.tasks.general_bench.report import report as whole

    return whole(tasks, stem)
