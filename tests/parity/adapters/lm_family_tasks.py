"""Vectors of lm-eval's tasks: requests with and without examples, scores of documents, rows of results."""

from __future__ import annotations

import functools
import json
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from lmms_eval.api.task import Answer, Request, ScoredDoc, TaskOptions
from lmms_eval.engine.aggregate import aggregate_task
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.records import answer_record, scored_part
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import LmmsEvalError
from lmms_eval.tasks.lm_eval.config import generation_kwargs
from lmms_eval.tasks.lm_eval.python_task import PythonTask
from lmms_eval.tasks.lm_eval.task import LmEvalTask
from lmms_eval.tasks.selection import build_task
from lmms_eval.tasks.yaml.included import include
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval.tasks.yaml.task import TaskSource
from tests.parity.compare import agree, decode
from tests.parity.packs import absent, pack_of
from tests.parity.vectors import GOLDEN_DIR, PASSED, Vector, Verdict, failed, line_adapter, pending

FOLDER = "lm_family"
CARE = "Answer with care."


@functools.cache
def own_folder() -> Path:
    """A folder of task files with the functions of ``keys.jsonl`` beside them."""
    folder = Path(tempfile.mkdtemp(prefix="lm-family-")) / "lm_eval" / "tasks"
    folder.mkdir(parents=True)
    (folder / "utils.py").write_bytes((GOLDEN_DIR / FOLDER / "keys_utils.py").read_bytes())
    include(folder, is_deep=False, package="lm_eval")
    return folder


@functools.cache
def included(folder: Path) -> Path:
    include(folder, is_deep=False, package="lm_eval")
    return folder


def task_of(record: Mapping[str, Any], folder: Path, options: TaskOptions) -> LmEvalTask:
    """The task with the documents of the record in place of its data."""
    data = Path(tempfile.mkdtemp(prefix="lm-family-data-"))
    files = {}
    splits = record["splits"] if "processed" not in record else dict.fromkeys(record["splits"], record["processed"])
    for split, rows in splits.items():
        files[split] = str(data / f"{split}.jsonl")
        text = "".join(json.dumps(decode(row)) + "\n" for row in rows)
        Path(files[split]).write_text(text, encoding="utf-8")
    if "task_yaml_text" in record:
        file = folder / f"{record['task']}.yaml"
        file.write_text(record["task_yaml_text"], encoding="utf-8")
    else:
        file = folder / record["task_yaml"]
    over: dict[str, Any] = {"dataset_path": "json", "dataset_name": None, "dataset_kwargs": {"data_files": files}}
    raw = {**YamlReader().read(file), **over}
    raw.pop("custom_dataset", None)
    if "processed" in record:
        raw["process_docs"] = None
    task = build_task(TaskSource(record["task"], str(file), raw, over), options)
    assert isinstance(task, LmEvalTask)
    task.load()
    return task


def shown(request: Request, task: LmEvalTask) -> dict[str, Any]:
    if isinstance(task, PythonTask) and request.kind == "generate_until":
        stated = {key: value for key, value in request.generation.items() if key != "max_new_tokens"}
        return {"type": request.kind, "context": request.context, "generation_kwargs": stated}
    if request.kind == "generate_until":
        return {"type": request.kind, "context": request.context, "generation_kwargs": generation_kwargs(task.config)}
    if task.output_type == "loglikelihood_rolling":
        return {"type": "loglikelihood_rolling", "text": request.continuation}
    return {"type": request.kind, "context": request.context, "continuation": request.continuation}


def wanted(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A recorded request; one for each continuation."""
    if "continuations" in request:
        for continuation in request["continuations"]:
            yield {"type": request["type"], "context": request["context"], "continuation": continuation}
    else:
        yield dict(request)


def _in_any_order(context: str) -> str:
    return "".join(sorted(context))


def differing_requests(record: Mapping[str, Any], run: Mapping[str, Any], task: LmEvalTask) -> Iterator[str]:
    for doc_id, requests in enumerate(run["requests"]):
        expected = [one for request in requests for one in wanted(request)]
        made = [shown(request, task) for request in task.exchange(doc_id, 0).open()]
        if "processed" in record:  # the order of the choices is drawn again whenever the documents are read
            expected, made = [[{**one, "context": _in_any_order(one["context"])} for one in each]
                              for each in (expected, made)]  # fmt: skip
        if not agree(decode(expected), made):
            where = f"shots {run['num_fewshot']}, document {doc_id}"
            pair = next(
                ((a, b) for a, b in zip(expected, made, strict=False) if not agree(decode(a), b)),
                (len(expected), len(made)),
            )
            yield f"{where}: {pair[0]!r} != {pair[1]!r}"


def differing_chats(record: Mapping[str, Any], folder: Path) -> Iterator[str]:
    for run in record.get("chat") or ():
        options = TaskOptions(
            num_fewshot=run["num_fewshot"], system_instruction=CARE, apply_chat_template=True,
            fewshot_as_multiturn=run["mode"] == "multiturn",
        )  # fmt: skip
        task = task_of(record, folder, options)
        for doc_id, requests in enumerate(run["requests"]):
            expected = [one for request in requests for one in wanted(request)]
            for request, ours in zip(expected, task.exchange(doc_id, 0).open(), strict=True):
                turns = list(task.legacy_context_turns(ours))
                if request["context"] == "":
                    continue  # without the context
                if request["context"]["messages"] != turns:
                    yield f"chat {run['mode']}, {run['num_fewshot']}: {request['context']['messages']!r} != {turns!r}"
                elif request.get("continuation") != ours.continuation:
                    yield f"chat {run['mode']}: {request.get('continuation')!r} != {ours.continuation!r}"


def answers_of(responses: Sequence[Sequence[Any]], task: LmEvalTask) -> list[Answer]:
    """The answers to one document, one for each repeat; with fewer recorded ones they start again."""
    made = []
    for repeat in range(task.repeats):
        each = [decode(of_request)[repeat % len(of_request)] for of_request in responses]
        if task.output_type == "generate_until" and not isinstance(task, PythonTask):
            made.append(Answer(each[0]))
        elif task.output_type == "loglikelihood_rolling":
            made.append(Answer([[-each[0], False]]))
        elif isinstance(task, PythonTask):
            made.append(Answer([one if isinstance(one, str) else [-one[0], one[1]] for one in each]))
        else:
            made.append(Answer([[-value, greedy] for value, greedy in each]))
    return made


def _listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else list(value)


def differing_scores(record: Mapping[str, Any], task: LmEvalTask) -> Iterator[str]:
    scored = [task.score(doc_id, answers_of(one, task)) for doc_id, one in enumerate(record["responses"])]
    for doc_id, document in enumerate(scored):
        found = {score.filter: score for score in document.scores}
        if set(found) != set(record["scores"]):
            yield f"filters {sorted(record['scores'])} != {sorted(found)}"
            return
        for name, rows in record["scores"].items():
            expected, score = decode(rows[doc_id]), found[name]
            truths = {key: int(value) for key, value in expected["values"].items() if isinstance(value, bool)}
            expected["values"] |= truths  # we count them as numbers at once
            values = json.loads(json.dumps(dict(score.metrics), default=_listed))
            if score.status != "scored":
                yield f"document {doc_id}: {score.reason}"
            elif not agree(expected["values"], values):
                yield f"{name}, document {doc_id}: {expected['values']!r} != {values!r}"
    yield from differing_rows(record, task, scored)


def differing_rows(record: Mapping[str, Any], task: LmEvalTask, scored: Sequence[ScoredDoc]) -> Iterator[str]:
    """Compare the values and errors of the results file."""
    answers = [[answer_record(answer) for answer in answers_of(one, task)] for one in record["responses"]]
    lines = [
        {"task": task.name, "doc_id": doc_id, "answers": answers[doc_id], **scored_part(document)}
        for doc_id, document in enumerate(scored)
    ]
    with tempfile.TemporaryDirectory() as folder, closing(RunStore(Path(folder), "lm-family")) as store:
        options = AggregateOptions(read=lambda _task, _ids: iter(lines), bootstrap_iters=1000, allow_blank=True)
        result = aggregate_task(plan_task(task, None, 0), store, options)
    made: dict[str, Any] = {}
    for metric in result.metrics:
        made[f"{metric.metric},{metric.filter}"] = metric.value
        made[f"{metric.metric}_stderr,{metric.filter}"] = metric.stderr
    for key, expected in record["results"].items():
        if "," in key and not agree(decode(expected), made.get(key), rel_tol=1e-7):
            yield f"{key}: {expected!r} != {made.get(key)!r}"


def verdict_of(record: Mapping[str, Any], folder: Path) -> Verdict:
    try:
        for run in record["runs"]:
            if "raises" in run or ("processed" in record and run["num_fewshot"]):
                continue
            task = task_of(record, folder, TaskOptions(num_fewshot=run["num_fewshot"], chat=False))
            for difference in differing_requests(record, run, task):
                return failed(difference)
        for difference in differing_chats(record, folder):
            return failed(difference)
        if "responses" not in record:
            return PASSED
        task = task_of(record, folder, TaskOptions(num_fewshot=0, chat=False))
        for difference in differing_scores(record, task):
            return failed(difference)
    except LmmsEvalError as error:
        return failed(f"{type(error).__name__}: {error}")
    return PASSED


@line_adapter(f"{FOLDER}/keys.jsonl")
def keys(vector: Vector) -> Verdict:
    return verdict_of(vector.record, own_folder())


@line_adapter(f"{FOLDER}/tasks.jsonl")
def tasks(vector: Vector) -> Verdict:
    with pack_of("lm_eval") as pack:
        if pack is None:
            return pending(absent("lm-eval"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the pack's files
            return verdict_of(vector.record, included(pack.path))
