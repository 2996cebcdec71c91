"""Plans what is asked in addition to a task: controls, rotations of choices, variants of the prompt, and repeats.

The options are ``--ablate``, ``--permute_choices``, ``--prompt_variants`` and ``--repeat_share``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from heapq import nsmallest
from itertools import islice
from typing import Any

from loguru import logger
from msgspec.structs import replace

from lmms_eval.api.messages import AUDIO_SUFFIXES, IMAGE_SUFFIXES
from lmms_eval.api.task import Task, TaskOptions
from lmms_eval.config import RunConfig
from lmms_eval.config.rules import control_name, controls_of
from lmms_eval.engine.plan import TaskPlan, draw_place
from lmms_eval.errors import UsageError
from lmms_eval.tasks.controls.changes import media_of
from lmms_eval.tasks.controls.control import AskedAgain, ControlTask, VariantTask
from lmms_eval.tasks.controls.derangement import derangement
from lmms_eval.tasks.selection import with_changed_documents, with_options
from lmms_eval.tasks.yaml.choices import NO_QUESTION, ROTATION
from lmms_eval.tasks.yaml.prompts import dump
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.utils.prompt_variants import PromptVariant, option_letters, parse_variants

LEAST_AGAIN = 20
"""Documents of a task that are asked again at least."""
_PROBED = 16
"""Documents that are examined before a task is assumed to have no media."""
_SHOWN = 3
"""Most task names in one line."""
_SUFFIXES = (*IMAGE_SUFFIXES, *AUDIO_SUFFIXES, "mp4", "mkv", "avi", "mov", "webm")
_ENDINGS = tuple(f".{suffix}" for suffix in _SUFFIXES)
_BETWEEN = re.compile(r"[\s'\",\[\]]+")
_LONGEST_NAMES = 100_000
"""Texts of more characters are not searched for file names."""


def with_controls(config: RunConfig, plans: tuple[TaskPlan, ...], is_legacy: bool) -> tuple[TaskPlan, ...]:
    """Insert the plans of each task's controls, rotations and variants after its own, and add the documents to ask
    again.

    Raises ``UsageError`` if no task has the requested controls, a task does not state where its choices are, or has
    none, or a task cannot have a variant.
    """
    again = _asked_again(plans, config.repeat_share, config.seed[0] or 0) if config.repeat_share else ()
    return (*_with_changes(config, plans, is_legacy), *again)


def _asked_again(plans: Sequence[TaskPlan], share: float, seed: int) -> Iterator[TaskPlan]:
    """Yield the plans of the documents that are asked a second time, drawn at random; a larger share adds documents.

    Raises ``UsageError`` if every task asks its documents several times anyway.
    """
    several = [plan.task.name for plan in plans if plan.task.repeats > 1]
    why = "already asks each document several times (repeats in its YAML)"
    if several and len(several) == len(plans):
        raise UsageError(f"--repeat_share: {_some(several)} {why}; leave the option out")
    if several:
        logger.warning("--repeat_share: {} {}, so nothing is asked again", _some(several), why)
    for plan in plans:
        if plan.requested and plan.task.repeats == 1:
            task = AskedAgain(plan.task)
            count = max(LEAST_AGAIN, math.ceil(share * plan.requested))
            doc_ids = sorted(nsmallest(count, plan.doc_ids, key=partial(draw_place, f"{seed}:{task.name}")))
            yield TaskPlan(task, doc_ids, plan.original)


def _with_changes(config: RunConfig, plans: tuple[TaskPlan, ...], is_legacy: bool) -> tuple[TaskPlan, ...]:
    names = controls_of(config.ablate)
    given = parse_variants(config.prompt_variants) if config.prompt_variants else None
    if not names and config.permute_choices is None and given is None:
        return plans
    made: list[TaskPlan] = []
    refused: dict[str, list[str]] = {}
    for plan in plans:
        made.append(plan)
        for name in names:
            if reason := _refusal(plan, name, is_legacy):
                refused.setdefault(f"no control {name}: {reason}", []).append(plan.task.name)
            else:
                task = _control(plan, name, config.seed[0] or 0)
                made.append(TaskPlan(task, plan.doc_ids, plan.original))
        if config.permute_choices is not None:
            made += _rotations(plan, config.permute_choices)
        if given is not None:
            varied = variants_of(plan, given.variants)
            made += [TaskPlan(task, plan.doc_ids, plan.original, plan.sample) for task in varied]
    lines = [f"{_some(tasks)}: {reason}" for reason, tasks in refused.items()]
    if names and not any(isinstance(plan.task, ControlTask) and plan.task.variant is None for plan in made):
        raise UsageError("--ablate: " + "; ".join(lines))
    for line in lines:
        logger.warning(line)
    has_others = any(plan.task.control_of and plan.task.variant is None for plan in made)
    if config.permute_choices is not None and not has_others:
        raise UsageError("--permute_choices: no document has choices with an answer among them")
    return tuple(made)


def _some(tasks: Sequence[str]) -> str:
    shown = ", ".join(tasks[:_SHOWN])
    return shown if len(tasks) <= _SHOWN else f"{shown} and {len(tasks) - _SHOWN} more"


def _refusal(plan: TaskPlan, name: str, is_legacy: bool) -> str:
    """Return why a task has no such control, or an empty text if it has."""
    task = plan.task
    if is_legacy and not isinstance(task, YamlTask):
        return "its media cannot be kept from a class plugin, which asks a task of another class for them itself"
    if name == "choices-only":
        has_choices = isinstance(task, YamlTask) and any(map(task.choice_texts, plan.doc_ids[:_PROBED]))
        return "" if has_choices else "it states no choices (choices or doc_to_choice in its YAML)"
    if isinstance(task, YamlTask) and task.config.doc_to_visual is None and task.config.doc_to_messages is None:
        return "its documents have no media"
    if not any(_shows_media(task, doc_id) for doc_id in plan.doc_ids[:_PROBED]):
        return f"its first {min(_PROBED, plan.requested)} documents show no media"
    if name == "shuffled-media" and plan.requested < 2:
        return "one document alone has no other to take media from: ask two documents or more"
    return ""


def _shows_media(task: Task, doc_id: int) -> bool:
    try:
        return bool(media_of(dump(task.exchange(doc_id, 0).open()[0].build_messages())))
    except Exception:  # noqa: BLE001 - a task's own functions may raise anything; the document fails when it is asked
        return True


def _control(plan: TaskPlan, name: str, seed: int) -> ControlTask:
    task = plan.task
    if name == "shuffled-media":
        media = {doc_id: _media_key(task, doc_id) for doc_id in plan.doc_ids}
        return ControlTask(task, name, donors=derangement(plan.doc_ids, seed, media))
    asked = None
    if name == "choices-only" and isinstance(task, YamlTask) and task.choice_columns and task.choice_columns.question:
        asked = with_changed_documents(task, control_name(task.name, name), NO_QUESTION)
        asked.load()
    return ControlTask(task, name, asked)


def _media_key(task: Task, doc_id: int) -> Hashable:
    """Identify a document's media without opening them, by the names and sizes of its files."""
    if not isinstance(task, YamlTask):
        return doc_id
    documents = task.documents
    stored = tuple(tuple(documents.source.media(name, [doc_id])[0]) for name in documents.media_columns)
    if any(stored):
        return stored
    doc = documents.text_view(doc_id)
    names = tuple(name for value in dict(doc).values() for name in _file_names(value))
    if names or not task.cluster_key:
        return names or doc_id
    return str(doc.get(task.cluster_key, doc_id))


def _file_names(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) < _LONGEST_NAMES:
        yield from (word for word in _BETWEEN.split(value) if word.lower().endswith(_ENDINGS))
    elif isinstance(value, Mapping):
        yield from (name for item in value.values() for name in _file_names(item))
    elif isinstance(value, list | tuple):
        yield from (name for item in value for name in _file_names(item))


def variants_of(plan: TaskPlan, variants: Sequence[PromptVariant]) -> list[VariantTask]:
    """Build the variants of a task's prompt.

    ``pre_prompt`` and ``post_prompt`` replace the task's settings of these names if its prompts show them; otherwise
    they frame the question. Raises ``UsageError`` if a task cannot have a variant, or two variants ask the same.
    """
    task = plan.task
    where = f"--prompt_variants: task {task.name!r}"
    if not isinstance(task, YamlTask):
        raise UsageError(f"{where} makes its prompts itself (class in its YAML): leave the task or the option out")
    probed = plan.doc_ids[:: max(1, plan.requested // _PROBED)]
    shown = _shown_settings(task, probed)
    made = [VariantTask(with_options(task, _options(task, variant, shown)), variant) for variant in variants]
    for one in made:
        if one.variant.option_labels is not None:
            _check_labels(one.variant, task, plan.doc_ids)
    asked: dict[tuple[str, ...], str] = {_prompts(task, probed): "the task's own prompt"}
    for one in made:
        prompts = _prompts(one, probed)
        if prompts and prompts in asked:
            raise UsageError(
                f"{where}: variant {one.control!r} gives the same prompts as {asked[prompts]}; change it or leave "
                "it out"
            )
        asked[prompts] = f"variant {one.control!r}"
    return made


def _options(task: YamlTask, variant: PromptVariant, shown: frozenset[str]) -> TaskOptions:
    """Return the options of a task for a variant. Raises ``UsageError`` if a later round cannot have it."""
    given = {"pre_prompt": variant.pre_prompt, "post_prompt": variant.post_prompt}
    settings = {name: text for name, text in given.items() if text is not None and name in shown}
    before, after = ((text or "") if name not in shown else "" for name, text in given.items())
    frames = before or after or variant.option_labels
    if frames and task.output_type not in ("generate_until", "multiple_choice", "loglikelihood"):
        raise UsageError(
            f"--prompt_variants: task {task.name!r} asks in several requests (output_type {task.output_type}), whose "
            f"prompts the variant {variant.name!r} cannot change; give it only system_prompt, or leave the task out"
        )
    if variant.option_labels and task.output_type != "generate_until":
        raise UsageError(
            f"--prompt_variants: task {task.name!r} compares the likelihoods of its choices, which have no labels; "
            f"leave option_labels of {variant.name!r} out"
        )
    options = task.options
    return replace(
        options,
        task_kwargs={**options.task_kwargs, **settings},
        system_instruction=options.system_instruction if variant.system_prompt is None else variant.system_prompt,
        question_frame=(before, after),
        option_labels=variant.option_labels or (),
    )


_MARK = "@lmms-eval-prompt-mark@"


def _shown_settings(task: YamlTask, doc_ids: Sequence[int]) -> frozenset[str]:
    """Return which of the settings ``pre_prompt`` and ``post_prompt`` a task has and shows in its prompts."""
    settings = task.prompts.kwargs if isinstance(task.prompts.kwargs, Mapping) else {}
    found = set()
    for name in {"pre_prompt", "post_prompt"} & set(settings):
        options = replace(task.options, task_kwargs={**task.options.task_kwargs, name: _MARK})
        if any(_MARK in text for text in _prompts(with_options(task, options), doc_ids)):
            found.add(name)
    return frozenset(found)


def _prompts(task: Task, doc_ids: Sequence[int]) -> tuple[str, ...]:
    """Return the texts of the prompts of some documents, as far as they can be made."""
    made = []
    for doc_id in doc_ids:
        try:
            for request in task.exchange(doc_id, 0).open()[:1]:
                made.append(request.context)
                made.append(request.build_messages().text())
        except Exception as error:  # noqa: BLE001 - a task's own functions may raise anything
            logger.debug("{}: no prompt of document {}: {!r}", task.name, doc_id, error)
    return tuple(made)


def _check_labels(variant: PromptVariant, task: YamlTask, doc_ids: Sequence[int]) -> None:
    """Check that the documents show options in lines of their own, and that each option has a label."""
    labels, most, where = variant.option_labels or (), 0, f"--prompt_variants: variant {variant.name!r}"
    for doc_id in doc_ids:
        with suppress(Exception):  # a task's own functions may raise anything; the document fails when it is asked
            most = max(most, len(option_letters(task.exchange(doc_id, 0).open()[0].context)))
    if not most:
        raise UsageError(
            f"{where}: task {task.name!r} shows no options in lines A., B., ... that option_labels could change; "
            "leave the key or the task out"
        )
    if most > len(labels):
        raise UsageError(
            f"{where}: option_labels has {len(labels)} labels, but a document of task {task.name!r} has {most} options"
        )


def _rotations(plan: TaskPlan, most: int) -> Iterator[TaskPlan]:
    """Yield the plans of the other orders of a task's choices, each for the documents with enough choices."""
    task = plan.task
    if not isinstance(task, YamlTask) or task.choice_columns is None:
        raise UsageError(
            f"--permute_choices: task {task.name!r} does not say where its documents have their choices (key choices "
            "in its YAML, docs/task_guide.md); leave the task or the option out"
        )
    columns, documents = task.choice_columns, task.documents
    orders = {doc_id: columns.rotations(documents.text_view(doc_id)) for doc_id in plan.doc_ids}
    for turn in islice(range(1, most), max([1, *orders.values()]) - 1):
        rotated = with_changed_documents(task, control_name(task.name, f"{ROTATION}{turn}"), f"{ROTATION}{turn}")
        rotated.control_of, rotated.alias, rotated.report = task.name, f"{ROTATION}{turn}", None
        rotated.load()
        doc_ids = [doc_id for doc_id in plan.doc_ids if orders[doc_id] > turn]
        yield TaskPlan(rotated, doc_ids, plan.original)
    if not any(count > 1 for count in orders.values()):
        logger.warning("{}: no rotations: no document has choices with an answer among them", task.name)
