"""Recipes for people: what one states in words, in what two differ, and what is wrong in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from lmms_eval.errors import ItemError, UsageError
from lmms_eval.recipes.extraction import rule
from lmms_eval.recipes.layouts import Fields, Layout, MediaReference, answer_start, render
from lmms_eval.recipes.recipe import Recipe, TaskRecipe, read

NOT_STATED = "not stated"
CHOICE = Fields(question="{question}", query="", hint="{hint}", options=("{first}", "{second}"), images=1)
"""A document with two options, whose fields are their names."""
OPEN = Fields(question="{question}", query="{query}", images=1)
SUBTITLED = Fields(question="{question}", options=("{first}", "{second}"), subtitles="{subtitles}", videos=1)
VIDEO_TASKS = ("video*", "mlvu*", "longvideo*", "mvbench*")


class RecipeDifference(Struct, frozen=True):
    """A key that two recipes state in different ways."""

    key: str
    one: str
    other: str


def sample_of(layout: Layout, fields: Fields) -> str:
    """Return the turn of a layout for such a document as text: ``[image]`` for a picture.

    Raises ``ItemError`` if the layout has no turn for it.
    """
    parts = render(layout, fields)
    turn = "".join(f"[{part.kind}]" if isinstance(part, MediaReference) else part for part in parts)
    start = answer_start(layout, fields)
    return f"{turn} → {start}" if start else turn


def example_of(task: str) -> Fields:
    """Return a document of the kind that a task has, whose fields are their names."""
    return SUBTITLED if any(fnmatchcase(task, pattern) for pattern in VIDEO_TASKS) else CHOICE


def shown(name: str, task: TaskRecipe) -> dict[str, str]:
    """Return what a recipe states for the task ``name``, in words, by key; the layout as an example."""
    found = {key: _in_words(value) for key, value in task.values.items()}
    if task.layout is not None:
        found["layout"] = _example(task.layout, example_of(name))
    return found


def _example(layout: Layout, fields: Fields) -> str:
    try:
        return sample_of(layout, fields)
    except ItemError as error:
        return f"fails for an example: {error}"


def differences(one: Recipe, other: Recipe) -> dict[str, tuple[RecipeDifference, ...]]:
    """Return in what two recipes differ, for each task that both cover, and the tasks that only one covers.

    A task that only one covers has a single difference with the key ``covered``.
    """
    found: dict[str, tuple[RecipeDifference, ...]] = {}
    for name in dict.fromkeys([*one.tasks, *other.tasks]):
        mine, theirs = one.task(name), other.task(name)
        if mine is None or theirs is None:
            found[name] = (RecipeDifference("covered", *("no" if task is None else "yes" for task in (mine, theirs))),)
        elif lines := tuple(_between(name, mine, theirs)):
            found[name] = lines
    return found


def _between(name: str, one: TaskRecipe, other: TaskRecipe) -> Iterator[RecipeDifference]:
    mine, theirs = shown(name, one), shown(name, other)
    for key in dict.fromkeys([*mine, *theirs]):
        left, right = mine.get(key, NOT_STATED), theirs.get(key, NOT_STATED)
        if left != right:
            yield RecipeDifference(key, left, right)
        elif key == "layout" and one.layout != other.layout:
            yield from _of_layouts(one.layout, other.layout)


def _of_layouts(one: Layout | None, other: Layout | None) -> Iterator[RecipeDifference]:
    """Yield the difference of two layouts that the example does not show."""
    for fields in (OPEN, CHOICE, SUBTITLED):
        pair = [NOT_STATED if layout is None else _example(layout, fields) for layout in (one, other)]
        if pair[0] != pair[1]:
            yield RecipeDifference("layout", *pair)
            return
    for key in Layout.__struct_fields__:
        pair = [_in_words(getattr(layout, key, None)) for layout in (one, other)]
        if key not in ("parts", "texts") and pair[0] != pair[1]:
            yield RecipeDifference(f"layout.{key}", *pair)


def _in_words(value: Any) -> str:
    if isinstance(value, tuple):
        return "; ".join(map(str, value))
    if value is None:
        return NOT_STATED
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else "none" if value == "" else str(value)


def problems(name_or_path: str, is_task: Callable[[str], bool]) -> Iterator[str]:
    """Yield what is wrong in a recipe and its variants, a line each.

    Args:
        name_or_path: as for ``read``.
        is_task: says whether there is a task of a name, or one that matches a pattern.

    Raises:
        UsageError: the recipe cannot be read at all.
    """
    first = read(name_or_path)
    seen: set[str] = set()
    for variant in first.variants:
        try:
            found = list(_of_variant(read(name_or_path, variant), is_task))
        except UsageError as error:
            found = [str(error)]
        for line in found:
            if line not in seen:
                seen.add(line)
                yield line


def _of_variant(recipe: Recipe, is_task: Callable[[str], bool]) -> Iterator[str]:
    where = recipe.name
    for pattern in recipe.models:
        if not pattern.strip("*?") or pattern != pattern.strip():
            yield f"{where}: models: {pattern!r} fits every model, or begins or ends with a blank"
    if not recipe.models:
        yield f"{where}: models: no pattern of models' names, so nobody finds it"
    for name, task in recipe.tasks.items():
        key = f"{where}: tasks.{name}"
        if not is_task(name):
            yield f"{key}: there is no such task; lmms-eval tasks search finds names"
        yield from _of_task(key, task)


def _of_task(key: str, task: TaskRecipe) -> Iterator[str]:
    if task.extract is not None:
        try:
            rule(task.extract)
        except UsageError as error:
            yield f"{key}.extract: {error}"
    if task.layout is not None:
        for fields in (CHOICE, OPEN, SUBTITLED):
            try:
                sample_of(task.layout, fields)
            except ItemError as error:
                yield f"{key}.{error}"
                break


def without_source(recipe: Recipe) -> Mapping[str, tuple[str, ...]]:
    """Return the keys of values that the recipe does not say a source of, by task."""
    found = {name: tuple(key for key in task.values if key not in task.stated) for name, task in recipe.tasks.items()}
    return {name: keys for name, keys in found.items() if keys}
