"""Evaluation results in the forms of the hub: ``.eval_results/*.yaml`` and ``model-index``, and their pull request.

The entries are ``huggingface_hub.EvalResultEntry`` and ``huggingface_hub.EvalResult``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from msgspec import Struct, field

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.exchange.numbers import ReportedNumber, ReportedNumbers, ended, numbers_of
from lmms_eval.exchange.origins import DataSource, ModelFacts, folder_name, recipe_facts
from lmms_eval.results.facts import leaves_of, part_of, sample_keys
from lmms_eval.results.run import Run
from lmms_eval.storage.atomic import replacing
from lmms_eval.trackers.hub import first_line

if TYPE_CHECKING:
    from huggingface_hub import EvalResult, EvalResultEntry

FOLDER = ".eval_results"
MODEL_INDEX = "model-index.yaml"
CARD = "README.md"
_PARTIAL = ("stopped_early", "random_sample", "part_of_split")
"""Marks of numbers over a part of the documents."""
_TITLE = "Evaluation results of lmms_eval"


class HubResults(Struct):
    """Results of a run in the forms of the hub."""

    model: str
    """Name of the model, for ``model-index``."""
    entries: dict[str, list[EvalResultEntry]] = field(default_factory=dict)
    """Entries by the name of their file."""
    index: list[EvalResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Sentences about numbers that are not written."""

    @property
    def model_index(self) -> list[dict[str, Any]]:
        """The metadata of a model card."""
        from huggingface_hub.repocard_data import eval_results_to_model_index

        return eval_results_to_model_index(self.model, self.index)

    def files(self) -> dict[str, bytes]:
        """Return the files by their paths in the repository; ``model-index`` is in a file of its own."""
        from huggingface_hub import eval_result_entries_to_yaml

        found = {f"{FOLDER}/{name}": _yaml(eval_result_entries_to_yaml(some)) for name, some in self.entries.items()}
        return found | ({MODEL_INDEX: _yaml({"model-index": self.model_index})} if self.index else {})


def _yaml(value: Any) -> bytes:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode("utf-8", "replace")


def hub_results(run: Run, task_ids: Mapping[str, str], source_url: str = "") -> HubResults:
    """Return the results of a run that the hub's forms can hold.

    A number needs a data set on the hub, and all documents of its split. ``.eval_results`` has one number for each
    task, that of its first metric; ``model-index`` has all of them.

    Args:
        run: a run with results.
        task_ids: the data set's own name of a task, by the task's name here, which is the default.
        source_url: address of further information.

    Raises:
        UsageError: the run has no results, or no such task.
    """
    document = run.document
    if not document:
        raise UsageError(f"{run.source}: no results yet, only a record holds its numbers; continue the run first")
    found = HubResults(ModelFacts.of(document).short)
    known: set[str] = set()
    for numbers in numbers_of(document):
        found.notes += [f"withheld, so not written: {text}" for text in numbers.withheld]
        known.update(numbers.tasks)
        for task in numbers.tasks:
            _add(found, document, numbers, task, (task_ids.get(task, task), source_url))
    if unknown := [task for task in task_ids if task not in known]:
        raise UsageError(f"--task_id {unknown[0]}=...: the run has no number of that task; it has: {', '.join(known)}")
    return found


def _add(
    found: HubResults, document: Mapping[str, Any], numbers: ReportedNumbers, task: str, named: tuple[str, str]
) -> None:
    """Add the numbers of a task or group, or a note why they cannot be added."""
    shown = [number for number in numbers.shown if number.task == task]
    source = _source(document, task)
    if isinstance(source, str):
        found.notes.append(f"not written: {task}: {source}")
        return
    if partial := next((text for name in _PARTIAL if (text := shown[0].marks.get(name))), ""):
        found.notes.append(f"not written: {task}: it is over a part of its split ({partial})")
        return
    number = _first(document, task, shown)
    found.entries.setdefault(f"{folder_name(numbers.name)}.yaml", []).append(_entry(document, number, source, named))
    found.index += [_index(document, one, source, named[1]) for one in shown]


def _source(document: Mapping[str, Any], task: str) -> DataSource | str:
    """Return the data set of a task, or of all tasks of a group; a reason if there is no such one."""
    leaves = leaves_of(document, task)
    sources = [DataSource.of(document, leaf) for leaf in leaves]
    places = {(source.repository, source.revision) for source in sources}
    if len(places) > 1:
        return "its tasks have several data sets"
    if not sources or "/" not in sources[0].repository:
        return "its data are not a data set of the hub"
    first = sources[0]
    if len(sources) == 1:
        return first
    alike = {source.split for source in sources}
    return DataSource(task, first.repository, split=first.split if len(alike) == 1 else "", revision=first.revision)


def _first(document: Mapping[str, Any], task: str, shown: Sequence[ReportedNumber]) -> ReportedNumber:
    """Return the number of the task's first metric that has one."""
    order = {metric: place for place, metric in enumerate(sample_keys(document, task).metrics)}
    return min(shown, key=lambda number: order.get(number.metric, len(order)))


def _entry(
    document: Mapping[str, Any], number: ReportedNumber, source: DataSource, named: tuple[str, str]
) -> EvalResultEntry:
    from huggingface_hub import EvalResultEntry

    task_id, url = named
    moment = ended(document)
    return EvalResultEntry(
        dataset_id=source.repository,
        task_id=task_id,
        value=number.value,
        dataset_revision=source.revision or None,
        date=None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        source_url=url or None,
        notes="; ".join([*_notes(document, number), *(["data read from local files"] if source.is_local else [])]),
    )


def _notes(document: Mapping[str, Any], number: ReportedNumber) -> Iterator[str]:
    version = part_of(document, "library_versions").get("lmms_eval")
    yield f"lmms_eval {version}" if version else "lmms_eval"
    yield f"metric {number.name}"
    if number.n is not None:
        yield f"{number.n} documents"
    if number.low is not None and number.high is not None:
        about = f", {number.estimand}" if number.estimand else ""
        yield f"{number.level:.0%} interval [{number.low:.4f}, {number.high:.4f}] ({number.method}{about})"
    shots = part_of(document, "n-shot").get(number.task)
    if shots is not None:
        yield f"{shots}-shot"
    if (recipe := recipe_facts(document).get("name")) is not None:
        yield f"recipe {recipe}"
    judge = ModelFacts.of_judge(document)
    if judge is not None and number.task in part_of(part_of(document, "judge"), "by_task"):
        yield f"judge {judge.name}"
    yield from number.marks.values()


def _index(document: Mapping[str, Any], number: ReportedNumber, source: DataSource, url: str) -> EvalResult:
    from huggingface_hub import EvalResult

    shots = part_of(document, "n-shot").get(number.task)
    interval = {"low": number.low, "high": number.high, "level": number.level, "method": number.method}
    arguments: dict[str, Any] = {"documents": number.n, "interval": interval if number.low is not None else None}
    return EvalResult(
        task_type=_kind(document, number.task),
        dataset_type=source.repository,
        dataset_name=number.task,
        metric_type=number.metric,
        metric_value=number.value,
        metric_name=number.name,
        metric_args={name: value for name, value in arguments.items() if value is not None} or None,
        dataset_config=source.configuration or None,
        dataset_split=source.split or None,
        dataset_revision=source.revision or None,
        dataset_args=None if shots is None else {"num_few_shot": shots},
        source_url=url or None,
    )


def _kind(document: Mapping[str, Any], task: str) -> str:
    """Return the hub's kind of task by the media that the model saw."""
    sent = [part_of(document, "sent_media", leaf) for leaf in leaves_of(document, task)]
    for kind, name in (("videos", "video"), ("frames", "video"), ("pictures", "image"), ("sounds", "audio")):
        if any(kind in one for one in sent):
            return f"{name}-text-to-text"
    return "text-generation"


def write_results(found: HubResults, folder: Path) -> list[Path]:
    """Write the files into a folder and return their paths. Raises ``LmmsEvalError`` if that fails."""
    paths = []
    try:
        for name, content in found.files().items():
            with replacing(folder / name) as file:
                file.write(content)
            paths.append(folder / name)
    except OSError as error:
        raise LmmsEvalError(f"cannot write into {folder}: {error.strerror or error}") from error
    return paths


def push_results(found: HubResults, repository: str) -> str:
    """Propose the results to a model's repository as one pull request, and return its address.

    Entries of other tasks that are in the repository's files stay, and so do the text and the other metadata of its
    card.

    Raises:
        LmmsEvalError: the hub refuses, or does not answer, or its files cannot be read.
        UsageError: there is no token.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, get_token

    if get_token() is None:
        raise UsageError("--push needs a token: set HF_TOKEN, or log in with `hf auth login`")
    api = HfApi()
    try:
        head = str(api.repo_info(repository).sha)
        files = {
            f"{FOLDER}/{name}": _merged(_present(api, repository, head, f"{FOLDER}/{name}"), entries)
            for name, entries in found.entries.items()
        }
        files[CARD] = _card(_present(api, repository, head, CARD), found)
        operations = [CommitOperationAdd(path, content) for path, content in files.items()]
        commit = api.create_commit(
            repository, operations, commit_message=_TITLE, create_pr=True, parent_commit=head
        )  # fmt: skip
    except Exception as error:  # network and hub errors have no common class
        raise LmmsEvalError(f"{repository}: nothing was pushed: {first_line(error)}") from error
    return str(commit.pr_url or commit.commit_url)


def _present(api: Any, repository: str, head: str, path: str) -> str:
    """Return a file of the repository; empty if it does not exist."""
    import tempfile

    from huggingface_hub.errors import RemoteEntryNotFoundError

    with tempfile.TemporaryDirectory() as folder:
        try:
            there = api.hf_hub_download(repository, path, revision=head, cache_dir=folder)
        except RemoteEntryNotFoundError:  # not its base, which is also raised if the hub does not answer
            return ""
        return Path(there).read_text("utf-8", "replace")


def _merged(present: str, entries: Sequence[EvalResultEntry]) -> bytes:
    """Return the entries of a file with ours in place of those for the same data set and task."""
    from huggingface_hub import eval_result_entries_to_yaml, parse_eval_result_entries

    ours = {(entry.dataset_id, entry.task_id) for entry in entries}
    try:
        stated = parse_eval_result_entries(yaml.safe_load(present) or [])
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"a file of {FOLDER} there cannot be read: {error!r}") from error
    kept = [entry for entry in stated if (entry.dataset_id, entry.task_id) not in ours]
    return _yaml(eval_result_entries_to_yaml([*kept, *entries]))


def _card(present: str, found: HubResults) -> bytes:
    """Return the model card with our results in place of those that differ only in their value."""
    from huggingface_hub import ModelCard

    card = ModelCard(present or "---\n{}\n---\n")
    data: Any = card.data  # declared as the base of ModelCardData
    stated = data.eval_results or []
    kept = [one for one in stated if not any(one.is_equal_except_value(ours) for ours in found.index)]
    data.eval_results = [*kept, *found.index]
    data.model_name = data.model_name or found.model
    return str(card).encode("utf-8", "replace")
