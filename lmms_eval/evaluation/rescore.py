"""Scores a recorded run again from its own journals (``lmms-eval score RUN``), without asking the model.

The recorded configuration is evaluated with a model that cannot be asked, so an answer that the journal lacks is an
error. The judge's options are those given now, so that samples can be judged later, or by another judge.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from loguru import logger

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.config import RunConfig, argument_text, build_config
from lmms_eval.config.options import environment_defaults
from lmms_eval.engine.records import answer_from_record
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.inputs import ModelChoice, RecordedModel, Start, this_command
from lmms_eval.evaluation.record import RunReport
from lmms_eval.evaluation.run import EvaluationRun
from lmms_eval.results.facts import read_document
from lmms_eval.results.files import RUNS, STATE, ResultFiles, find_run, model_folder
from lmms_eval.results.journals import Journals
from lmms_eval.storage.lines import JournalTails, RecordPlace
from lmms_eval.storage.run_folder import DamagedRecord, RunFolder

GIVEN = (
    "allow_blank", "allow_unsafe_code", "error_budget", "geocode_table", "geocoder", "human_scores", "judge_args",
    "judge_base_url", "judge_error_budget", "judge_model", "judge_prompts", "judge_repeats", "judge_retries",
    "launcher_args", "log_samples", "nltk_data", "published", "recipe",
    "reduce", "score_workers", "show_config", "thinking_tags", "truncation_budget", "use_cache", "verbosity",
)  # fmt: skip
"""Options that may be given again; all others are the recorded ones."""
OF_ASKING = ("max_cost", "max_tokens", "processes")
"""Recorded options that only concern asking the model; a judge that is given now has no budget."""
NAMES_OF_JUDGE = ("judge_base_url", "judge_model", "launcher_args")
JUDGE_OPTIONS = ("judge_args", "judge_base_url", "judge_model", "judge_retries", "launcher_args")


class ScoredAnswers:
    """Reads answers from the records of scored documents.

    If the processes of a launch do not share files, their responses are not here, but their scored documents are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tails: JournalTails | None = None
        self._places: Mapping[tuple[str, int], RecordPlace] = {}

    def response(self, request: Request) -> Response | None:
        """Return the answer to a request for one plain text; ``None`` for other requests or without an answer."""
        if self._tails is None:
            journals = Journals.read(self._folder)
            self._tails, self._places = journals.tails, journals.answered()
        place = self._places.get((request.task.name, request.doc_id))
        return response_of(request, [] if place is None else self._tails.at(place)["answers"])


def response_of(request: Request, answers: Sequence[Mapping[str, Any]]) -> Response | None:
    """Return the response of a document's recorded answers; ``None`` for requests other than for one plain text."""
    if request.kind != "generate_until" or request.round or request.repeat >= len(answers):
        return None
    answer = answer_from_record(answers[request.repeat])
    if answer.error is not None or type(answer.value) is not str:
        return None
    first: dict[str, Any] = {
        name: values[0] for name in ("usage", "thoughts", "ended_by") if (values := getattr(answer, name))
    }
    return Response(
        request.id,
        text=answer.value,
        finish_reason=answer.finish_reason,
        model=answer.model,
        stops=answer.stops,
        **first,
    )


class Answers(Protocol):
    """Recorded answers."""

    def response(self, request: Request) -> Response | None:
        """Return the answer to a request for one plain text; ``None`` for other requests or without an answer."""


class ClosedModel(Model):
    """Describes itself as the recorded model did, and answers only from the run's records."""

    kinds: frozenset[RequestKind] = frozenset(
        {
            "generate_until",
            "loglikelihood",
            "loglikelihood_rolling",
            "generate_until_multi_round",
            "generate_visual_cot",
        }
    )
    concurrency = 64

    def __init__(
        self,
        identity: Mapping[str, Any],
        description: Mapping[str, Any],
        answers: Answers,
        requests: Mapping[str, Any] | None = None,
    ) -> None:
        self._identity, self._description, self._answers = identity, description, answers
        self._requests = requests or {}

    def prepare(self, request: Request) -> Request:
        """Return the request unchanged: nothing is sent, so no media is opened."""
        return request

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(self.concurrency):
            for request in requests:
                yield self._answers.response(request) or Response.failure(
                    request.id,
                    "bad_request",
                    "the run holds no answer, and lmms-eval score asks the model nothing: start the run's own command "
                    "again to answer what is missing",
                )

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        """Return what the run's results recorded."""
        sent = self._requests.get(request.task.name)
        return {name: value for name, value in sent.items() if name != "sha256"} if isinstance(sent, Mapping) else {}

    def identity(self) -> Mapping[str, Any]:
        return self._identity

    def describe(self) -> Mapping[str, Any]:
        return self._description


def rescore(place: Path, given: Mapping[str, Any], command: str = "", ends: bool = True) -> RunReport:
    """Score a run again.

    Args:
        place: its folder of journals, its results file, or a folder that holds exactly one run.
        given: the options that are given again, by name.
        command: the command line that continues the run, if the run has not recorded it.
        ends: call the report's ``end``.

    Raises:
        UsageError: there is no such run, an option cannot be given again, or tasks and data have changed.
    """
    refused = sorted(set(given) - set(GIVEN))
    if refused:
        raise UsageError(
            f"score: {', '.join(f'--{name}' for name in refused)} would make it another run; it takes: "
            + ", ".join(f"--{name}" for name in GIVEN)
        )
    folder = run_folder(place)
    try:
        record = RunFolder(folder).read()
    except DamagedRecord as error:
        raise UsageError(f"score: {error}; the run's own command writes it again") from error
    reading = str(given.get("recipe") or "")
    config = _config(folder, record, {name: value for name, value in given.items() if name != "recipe"})
    # The run's own command asks for missing answers; this one does not.
    recorded = _model(folder, record, config)
    start = Start(str(record.get("command") or command or this_command()), recorded=recorded, reading=reading)
    return EvaluationRun(config, start=start).report(ends)


def run_folder(place: Path) -> Path:
    """Find the folder of a run's journals. Raises ``UsageError`` if there is no such folder, or more than one."""
    if place.is_dir():
        found = find_run(place)
        if found is None:
            raise UsageError(f"score: {place} holds 0 recorded runs; name one by its folder or results")
        place = found.path
    if place.is_dir():
        return place
    document = read_document(place)
    if not isinstance(document, dict):
        raise UsageError(f"score: {place} is not the record of a run; give the folder or the results file of a run")
    folder = place.parent / RUNS / str(document.get("run_key"))
    if not (folder / STATE).is_file():
        raise UsageError(f"score: the journals of {place} are gone ({folder}): without them nothing can be scored")
    return folder


def _config(folder: Path, record: Mapping[str, Any], given: Mapping[str, Any]) -> RunConfig:
    """Return the recorded options, with those of the judge that are given now or by the environment.

    If only human scores are given, the recorded judge stays: its replies are in the journal, so it is asked nothing.
    """
    keeps_judge = "human_scores" in given and not any(name in given for name in JUDGE_OPTIONS)
    others = ("config", "baseline", "anchors", *OF_ASKING, *(("launcher_args",) if keeps_judge else JUDGE_OPTIONS))
    values = {
        name: value for name, value in record.get("arguments", {}).items() if value is not None and name not in others
    }
    defaults = {name: found.text for name, found in environment_defaults(os.environ).items() if name in GIVEN}
    values = {**defaults, **values}
    values |= given
    if "human_scores" in given and not any(values.get(name) for name in NAMES_OF_JUDGE):
        raise UsageError(
            "score: --human_scores corrects a judge, and the record of the run names no judge: give the "
            "options of the judge that judged it (--judge_model ...)"
        )
    values |= {"resume": str(folder), "output_path": None}
    if folder.parent.name == RUNS:  # the folder of the results may have been moved as a whole
        base = folder.parent.parent
        inside = model_folder(Path("."), argument_text(values.get("model_args")))
        values["output_path"] = str(base.parent if inside != Path(".") and base.name == inside.name else base)
    else:
        values.pop("log_samples", None)
    return build_config({name: value for name, value in values.items() if value is not None}, {})


def recorded_choice(name: str, model: Mapping[str, Any]) -> ModelChoice:
    """Return the model as its run named it. ``model`` is the part of ``run.json``."""
    return ModelChoice(
        name=name,
        backend=str(model["backend"]),
        chat=bool(model["chat"]),
        legacy=bool(model["legacy"]),
        model_id=str(model["model_id"]),
        ignored_arguments=frozenset(model["ignored_arguments"]),
        opens_media=False,
    )


def _model(folder: Path, record: Mapping[str, Any], config: RunConfig) -> RecordedModel:
    model = record.get("model")
    if not isinstance(model, Mapping):
        raise UsageError(f"score: {folder} was recorded by an earlier version: start its command again with --resume")
    choice = recorded_choice(config.model, model)
    results = ResultFiles(folder.parent.parent, str(record.get("stamp"))).results
    described, requests, ignored, missing = {}, {}, (), {}
    if results.is_file():
        try:
            earlier = read_document(results) or {}
            described, requests = earlier.get("model", {}), earlier.get("effective_requests", {})
            ignored = tuple(earlier.get("ignored_gen_kwargs", ()))
            missing = earlier.get("recipe", {}).get("missing", {})
        except UsageError as error:  # the file is written again anyway
            logger.warning("{}; the model's description of itself is not known", error)
    closed = ClosedModel(model["identity"], described, ScoredAnswers(folder), requests)
    return RecordedModel(choice, closed, ignored, missing)
