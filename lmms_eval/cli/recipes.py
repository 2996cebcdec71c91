"""``lmms-eval recipes``: lists, describes, compares and checks recipes, and finds those that fit a model."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.cli.arguments import CommandParser, TaskSources, add_catalogue_flags, command_parser, run_action
from lmms_eval.cli.commands import Action
from lmms_eval.cli.output import complain, emit

if TYPE_CHECKING:
    from lmms_eval.recipes.recipe import Recipe, TaskRecipe

BROKEN = 2


def run(arguments: Sequence[str]) -> int:
    return run_action("recipes", ACTIONS, arguments, logless=tuple(ACTIONS))


def _json_flag(parser: CommandParser) -> None:
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def _as_json(document: Any) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document)).decode()


def _list(arguments: Sequence[str]) -> int:
    parser = command_parser("recipes list", "the recipes that are part of this package")
    _json_flag(parser)
    given = parser.read(arguments)
    from lmms_eval.recipes.recipe import names, read

    _emit_recipes([read(name) for name in names()], given.json)
    return 0


def _for(arguments: Sequence[str]) -> int:
    parser = command_parser("recipes for", "the recipes that fit a model's name or path")
    parser.add_argument("name", metavar="MODEL", help="name of the model on the hub, or its path")
    _json_flag(parser)
    given = parser.read(arguments)
    from lmms_eval.recipes.recipe import fitting, read

    found = [read(name) for name in fitting(given.name)]
    if not found and not given.json:
        complain(f"no recipe is for {given.name}; lmms-eval recipes list shows the models of each")
        return 0
    _emit_recipes(found, given.json)
    return 0


def _emit_recipes(recipes: Sequence[Recipe], is_json: bool) -> None:
    from lmms_eval.utils.terminal import named_table

    rows = [
        {
            "recipe": recipe.name,
            "variants": list(recipe.variants),
            "models": list(recipe.models),
            "benchmarks": list(recipe.tasks),
            "source": recipe.source.repository,
            "date": recipe.source.date,
        }
        for recipe in recipes
    ]
    if is_json:
        emit(_as_json(rows))
        return
    columns: dict[str, list[str]] = {
        "recipe": [recipe.name for recipe in recipes],
        "models": [", ".join(recipe.models) for recipe in recipes],
        "benchmarks": [str(len(recipe.tasks)) for recipe in recipes],
        "source": [f"{recipe.source.repository} {recipe.source.date}".rstrip() for recipe in recipes],
    }
    emit(named_table(columns, numbers=("benchmarks",)).rstrip("\n"))


def _describe(arguments: Sequence[str]) -> int:
    parser = command_parser("recipes describe", "what a recipe states, where, and what it does not state")
    parser.add_argument("name", metavar="NAME[:VARIANT]|FILE", help="recipe of this package, or a YAML file")
    parser.add_argument("--task", default="", metavar="TASK", help="show only this task")
    _json_flag(parser)
    given = parser.read(arguments)
    from lmms_eval.errors import UsageError
    from lmms_eval.recipes.recipe import read

    recipe = read(given.name)
    tasks = dict(recipe.tasks)
    if given.task:
        one = recipe.task(given.task)
        if one is None:
            raise UsageError(f"recipe {recipe.name} does not cover {given.task}; it covers {', '.join(recipe.tasks)}")
        tasks = {given.task: one}
    emit(_as_json(_document(recipe, tasks)) if given.json else _description(recipe, tasks))
    return 0


def _document(recipe: Recipe, tasks: Mapping[str, TaskRecipe]) -> dict[str, Any]:
    from lmms_eval.recipes.showing import shown

    return {
        "name": recipe.name,
        "variant": recipe.variant,
        "variants": recipe.variants,
        "about": recipe.about,
        "models": recipe.models,
        "source": recipe.source,
        "sha256": recipe.digest,
        "contradictions": recipe.contradictions,
        "tasks": {
            name: {"states": shown(name, task), "stated": task.stated, "not_stated": task.not_stated}
            for name, task in tasks.items()
        },
    }


def _description(recipe: Recipe, tasks: Mapping[str, TaskRecipe]) -> Iterator[str]:
    source = recipe.source
    yield f"{recipe.name}: {recipe.about}"
    yield f"models    {', '.join(recipe.models)}"
    yield f"source    {' '.join(filter(None, (source.repository, source.path, source.revision, source.date)))}"
    yield f"variant   {recipe.variant}"
    for name, about in recipe.variants.items():
        if name != recipe.variant:
            yield f"  :{name}  {about}".rstrip()
    for text in recipe.contradictions:
        yield f"note      {text}"
    for group, task in _alike(tasks).items():
        yield ""
        yield from _task_lines(group, task)


def _alike(tasks: Mapping[str, TaskRecipe]) -> dict[str, TaskRecipe]:
    """Return tasks by name. Tasks with the same statements share an entry, whose name is their names."""
    groups: list[tuple[list[str], TaskRecipe]] = []
    for name, task in tasks.items():
        same = next((known for known, other in groups if other == task), None)
        if same is None:
            groups.append(([name], task))
        else:
            same.append(name)
    return {", ".join(known): task for known, task in groups}


def _task_lines(names: str, task: TaskRecipe) -> Iterator[str]:
    from lmms_eval.recipes.showing import shown

    yield names
    rows = shown(names, task)
    width = max(map(len, rows), default=0)
    for key, text in rows.items():
        lines = [repr(text)] if key == "layout" else [text]
        where = f"  ({task.stated[key]})" if key in task.stated else ""
        yield f"  {key:<{width}}  {lines[0]}{where}"
    if task.not_stated:
        yield f"  not stated, so the task's own: {', '.join(task.not_stated)}"


def _diff(arguments: Sequence[str]) -> int:
    parser = command_parser("recipes diff", "in what two recipes differ, for each benchmark")
    parser.add_argument("one", metavar="A", help="first recipe: NAME[:VARIANT], or a YAML file")
    parser.add_argument("other", metavar="B", help="second recipe, in the same forms")
    _json_flag(parser)
    given = parser.read(arguments)
    from lmms_eval.recipes.recipe import read
    from lmms_eval.recipes.showing import differences

    one, other = read(given.one), read(given.other)
    found = differences(one, other)
    if given.json:
        emit(_as_json(found))
        return 0
    for name, lines in found.items():
        emit(name)
        for line in lines:
            pair = [repr(text) if line.key.startswith("layout") else text for text in (line.one, line.other)]
            emit([f"  {line.key}", f"    {given.one}: {pair[0]}", f"    {given.other}: {pair[1]}"])
    same = len(set(one.tasks) & set(other.tasks)) - sum(line[0].key != "covered" for line in found.values())
    emit(f"{len(found)} benchmarks differ or are covered by one of them only; {same} are the same")
    return 0


def _check(arguments: Sequence[str]) -> int:
    parser = command_parser("recipes check", "what is wrong in recipes: fields, tasks, options, rules, patterns")
    parser.add_argument("names", nargs="*", metavar="NAME|FILE", help="recipes to check; default: all of this package")
    add_catalogue_flags(parser)
    given = parser.read(arguments)
    from lmms_eval.errors import UsageError
    from lmms_eval.recipes.recipe import names, read
    from lmms_eval.recipes.showing import problems, without_source

    catalogue = TaskSources.of_flags(given).open()
    known = list(catalogue.tasks)
    is_task = functools.cache(lambda pattern: bool(fnmatch.filter(known, pattern)))
    count = 0
    checked = given.names or names()
    for name in checked:
        try:
            lines = list(problems(name, is_task))
        except UsageError as error:
            lines = [str(error)]
        count += len(lines)
        for line in lines:
            complain(line)
        if not lines and (unsourced := without_source(read(name))):
            total = sum(map(len, unsourced.values()))
            emit(f"{name}: values without a source (key stated): {total}, the first in {next(iter(unsourced))}")
    emit(f"{len(checked)} checked, {count} problems")
    return BROKEN if count else 0


ACTIONS: Mapping[str, Action] = {"list": _list, "describe": _describe, "diff": _diff, "check": _check, "for": _for}
