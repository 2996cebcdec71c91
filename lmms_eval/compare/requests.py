"""Notes on how the requests of two runs differ: options, instructions, prompts, and media as the models got them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lmms_eval.api.generation import LENGTHS, STOPS
from lmms_eval.compare.runs import RunRows
from lmms_eval.results.facts import part_of
from lmms_eval.results.recipe import recipe_title
from lmms_eval.utils.names import some_of

_NAMES = {
    **dict.fromkeys((*LENGTHS, "max_output_tokens"), LENGTHS[0]),
    **dict.fromkeys(STOPS, STOPS[0]),
    **{name: "frames" for name in ("max_num_frames", "max_frames_num")},
    "video_fps": "fps",
}
"""One name for options that back ends name differently."""
_PARTS = ("options", "system_prompt", "chat_template", "chat_template_kwargs", "media", "generation_config")
_SHARED_MEDIA = frozenset({"frames", "fps", "max_pixels", "min_pixels", "total_pixels", "max_image_size"})
"""Limits that all kinds of back ends share."""
_LONGEST = 60
"""Characters shown of a value."""
_MOST_NAMED = 4
_BASELINE = "baseline"
"""The model that answers without reading the prompt."""
_MANY_ROUNDS = ("generate_until_multi_round", "generate_until_agentic", "generate_visual_cot")
"""Output types whose later prompts contain the model's answers."""


def request_notes(first: RunRows, second: RunRows) -> list[str]:
    """Return a sentence for each difference between the requests of two runs.

    Runs of other formats and of earlier versions do not record their requests.
    """
    one, other = first.results or {}, second.results or {}
    if not one or not other:
        return []
    names = f"{first.name} and {second.name}"
    shared = [task for task in first.tasks if task in second.tasks]
    notes = []
    for differences, text in (
        (_in_options, "were asked with other options ({}): {}"),
        (_in_media, "saw other media ({}), medians: {}"),
    ):
        found: dict[str, list[str]] = {}
        for task in shared:
            if what := "; ".join(differences(task, one, other)):
                found.setdefault(what, []).append(task)
        notes += [f"{names} {text.format(some_of(tasks, _MOST_NAMED), what)}" for what, tasks in found.items()]
    return notes + [f"{names} {sentence}" for sentence in _of_runs(one, other)]


def setting_words(task: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two runs of a task, by their results documents, such as ``options``.

    Prompts are recorded for all tasks of a run together: they count as different if the runs' fingerprints are.
    """
    for word, key in (("examples", "n-shot"), ("versions of the task", "versions"), ("documents", "task_hashes")):
        sides = [part_of(document, key).get(task) for document in (first, second)]
        if None not in sides and sides[0] != sides[1]:
            yield word
    counts = [part_of(document, "n-samples", task).get("effective") for document in (first, second)]
    if None not in counts and counts[0] != counts[1]:
        yield "documents"
    if any(True for _ in _in_options(task, first, second)):
        yield "options"
    if any(True for _ in _in_media(task, first, second)):
        yield "media"
    if first.get("system_instruction_sha") != second.get("system_instruction_sha"):
        yield "system instructions"
    elif _prompts_differ(first, second):
        yield "prompts"
    if _identity(part_of(first, "recipe")) != _identity(part_of(second, "recipe")):
        yield "recipes"


def recipe_note(first: RunRows, second: RunRows) -> str:
    """Return a sentence about the recipes of two runs; empty if they had the same one, or none."""
    one, other = first.results or {}, second.results or {}
    recipes = [part_of(document, "recipe") for document in (one, other)]
    if not any(recipes) or _identity(recipes[0]) == _identity(recipes[1]):
        return ""
    shared = [task for task in first.tasks if task in second.tasks]
    sides = [[part_of(recipe, "sets", task) for task in shared] for recipe in recipes]
    differs = {
        word
        for word, keys in _KINDS.items()
        for task in zip(*sides, strict=True)
        if any(task[0].get(key) != task[1].get(key) for key in keys)
    }
    differs |= {"prompts"} if _prompts_differ(one, other) else set()
    differs |= {"options"} if any(any(_in_options(task, one, other)) for task in shared) else set()
    what = ", ".join(word for word in _KINDS if word in differs) or "nothing that the results record"
    names = " and ".join(
        f"{run.name} with {recipe_title(recipe) if recipe else 'no recipe'}"
        for run, recipe in zip((first, second), recipes, strict=True)
    )
    return f"asked by different recipes: {names}. This compares models under their settings, not alone; differs: {what}"


_KINDS: Mapping[str, tuple[str, ...]] = {
    "prompts": ("prompt", "system_prompt"),
    "options": ("options",),
    "pictures and frames": ("media",),
    "reading of answers": ("extract",),
    "judge": ("judge",),
}
"""Keys of what a recipe sets, by the word for what differs."""


def _identity(recipe: Mapping[str, Any]) -> Any:
    return [recipe.get(name) for name in ("name", "variant", "sha256", "differs")]


def pack_notes(first: RunRows, second: RunRows) -> list[str]:
    """Return a sentence for each difference between the packs of shared tasks (``docs/packs.md``)."""
    documents = [first.results or {}, second.results or {}]
    found: dict[str, list[str]] = {}
    for task in (task for task in first.tasks if task in second.tasks):
        sides = [part_of(document, "packs", task) for document in documents]
        if sides[0] != sides[1] and all(documents):
            is_same = sides[0].get("files") == sides[1].get("files")
            shown = " / ".join(f"{side.get('pack', '')} {side.get('version', '')}".strip() or "none" for side in sides)
            found.setdefault(f"{shown}, with {'equal' if is_same else 'other'} task files", []).append(task)
    return [
        f"{first.name} and {second.name} have tasks of different packs ({some_of(tasks, _MOST_NAMED)}): {what}"
        for what, tasks in found.items()
    ]


def _in_media(task: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """Yield the quantities of a task's media whose medians differ. A quantity that one run lacks does not count."""
    sides = [part_of(document, "sent_media", task) for document in (first, second)]
    for name in sides[0]:
        medians = [part_of(side, name).get("median") for side in sides]
        if None not in medians and medians[0] != medians[1]:
            yield f"{name} {_shown(medians[0])} / {_shown(medians[1])}"


def _in_options(task: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between the requests of a task."""
    same_backend = _backend(first) == _backend(second)
    requests = [part_of(document, "effective_requests", task) for document in (first, second)]
    if not all(requests):
        return
    sides = [_flat(request, same_backend) for request in requests]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        values = [side.get(name) for side in sides]
        if values[0] != values[1]:
            yield f"{name} {_shown(values[0])} / {_shown(values[1])}"


def _flat(request: Mapping[str, Any], same_backend: bool) -> dict[str, Any]:
    """Return the fields of a request by unique names; if the back ends differ, only the fields that both kinds have."""
    found: dict[str, Any] = {}
    for part in _PARTS:
        value = request.get(part)
        if isinstance(value, Mapping):
            fields = {_NAMES.get(str(name), str(name)): item for name, item in value.items()}
            if part == "media" and not same_backend:
                fields = {name: item for name, item in fields.items() if name in _SHARED_MEDIA}
            if part in ("options", "media"):
                found |= _plain(fields) if part == "options" else fields
            elif part != "generation_config" or same_backend:
                found |= {f"{part}.{name}": item for name, item in fields.items()}
        elif value is not None and (part != "chat_template" or same_backend):
            found[part] = value
    return found


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Normalise options: greedy decoding is ``temperature`` 0, and a single beam is the default."""
    left = {name: value for name, value in options.items() if name != "do_sample" and (name, value) != ("num_beams", 1)}
    if options.get("do_sample") is False:
        left["temperature"] = 0
    return left


def _of_runs(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """Yield differences that concern the runs as a whole."""
    instructions = [document.get("system_instruction_sha") for document in (first, second)]
    if instructions[0] != instructions[1]:
        texts = " / ".join(_shown(document.get("system_instruction")) for document in (first, second))
        yield f"got other system instructions (--system_instruction): {texts}"
    elif _prompts_differ(first, second):
        yield "got other prompts: texts, instructions, examples, or places of media differ (prompt_fingerprint)"
    ignored = [document.get("ignored_gen_kwargs") or [] for document in (first, second)]
    if ignored[0] != ignored[1]:
        yield f"were asked without other options (--allow_ignored): {_shown(ignored[0])} / {_shown(ignored[1])}"
    lacking = [not part_of(document, "effective_requests") for document in (first, second)]
    stated = [part_of(document, "config").get("gen_kwargs") or None for document in (first, second)]
    if any(lacking) and stated[0] != stated[1]:
        yield f"have other --gen_kwargs: {_shown(stated[0])} / {_shown(stated[1])}"


def _prompts_differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether both runs asked the same documents in a single round, but with different prompts.

    Baselines read no prompt, so theirs never differ.
    """
    if any(part_of(document, "config").get("model") == _BASELINE for document in (first, second)):
        return False
    sides = [_asked(first), _asked(second)]
    prints = [document.get("prompt_fingerprint") for document in (first, second)]
    return None not in prints and prints[0] != prints[1] and None not in sides and sides[0] == sides[1]


def _asked(document: Mapping[str, Any]) -> Any:
    """Return the parts that must agree for the fingerprints to be comparable.

    The result is ``None`` if answers are part of prompts, or if some documents were not asked.
    """
    configs, outcomes = part_of(document, "configs"), part_of(document, "outcomes")
    if any(part_of(configs, task).get("output_type") in _MANY_ROUNDS for task in configs):
        return None
    counts = {}
    for task in configs:
        outcome = part_of(outcomes, task)
        if outcome.get("not_asked") or outcome.get("failed"):
            return None
        counts[task] = [outcome.get("requested"), part_of(configs, task).get("repeats")]
    return [_backend(document).rpartition(" ")[2], part_of(document, "config").get("offset"), counts]


def _backend(document: Mapping[str, Any]) -> str:
    return str(part_of(document, "config").get("model_backend", ""))


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    text = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
