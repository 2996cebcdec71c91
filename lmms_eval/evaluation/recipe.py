"""The recipe of a run (``--recipe``): which tasks it covers, what it changes, and what the model cannot do of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from loguru import logger
from msgspec import Struct, structs

from lmms_eval.api.generation import PIXEL_LIMITS
from lmms_eval.api.model import Model
from lmms_eval.api.task import Selection, Task
from lmms_eval.config import RunConfig
from lmms_eval.config.options import option_table
from lmms_eval.errors import DataError, ItemError, ModelError, UsageError
from lmms_eval.evaluation.judge import judge_options, model_names
from lmms_eval.models.argument_names import FRAMES, RATE
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.recipes.applying import AppliedRecipe, CommandLine, applied, options_with, read_as
from lmms_eval.recipes.recipe import Recipe, read
from lmms_eval.results.recipe import recipe_lines
from lmms_eval.tasks.selection import rebuilt
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.utils.names import some_of
from lmms_eval.utils.records import to_dict

_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "min_pixels": ("min_pixels",),
    "max_pixels": ("max_pixels",),
    "total_pixels": ("total_pixels",),
    "fps": RATE,
    "min_frames": ("min_frames",),
    "max_frames": FRAMES,
    "frame_rule": ("frame_rule",),
    "tiles": ("max_num", "max_tiles", "max_num_tiles", "max_patches", "max_slice_nums"),
    "total_tiles": ("total_max_num",),
}
"""Arguments of models for each limit of media."""
SHOWN = 30
"""Most tasks that a message names."""
_THINKING = ("enable_thinking", "enable_thinking_kwarg")


class RunRecipe(Struct, frozen=True):
    """A recipe as a run applies it."""

    recipe: Recipe
    tasks: Mapping[str, AppliedRecipe]
    """The covered tasks by name."""
    uncovered: tuple[str, ...] = ()
    missing: Mapping[str, Mapping[str, str]] = {}
    """What the model cannot do, with reasons, by task."""

    def as_record(self) -> dict[str, Any]:
        """Return the part ``recipe`` of the results."""
        recipe = self.recipe
        return {
            "name": recipe.name,
            "variant": recipe.variant,
            "sha256": recipe.digest,
            "source": {name: value for name, value in to_dict(recipe.source).items() if value},
            "sets": {name: one.record for name, one in self.tasks.items()},
            "differs": {name: to_dict(one.differs) for name, one in self.tasks.items() if one.differs},
            "not_stated": {name: list(one.recipe.not_stated) for name, one in self.tasks.items()},
            "missing": {name: dict(found) for name, found in self.missing.items()},
            "not_covered": list(self.uncovered),
        }

    def lines(self) -> list[str]:
        """Return lines for the user about what differs from the recipe, is missing, or is not stated."""
        return recipe_lines(self.as_record())

    def bounding(self, config: RunConfig, registry: ModelRegistry) -> RunConfig:
        """Return the configuration for building a model that bounds pictures when it is loaded.

        It has the widest limits of all tasks: the model's processor then passes pictures that the limits of single
        requests have scaled.
        """
        if not getattr(registry.resolve(config.model, config.force_simple).load(), "bounds_at_start", False):
            return config
        found: dict[str, list[int]] = {}
        for one in self.tasks.values():
            for name in PIXEL_LIMITS & one.media.stated.keys():
                found.setdefault(name, []).append(int(one.media.stated[name]))
        widest = {name: (min if name == "min_pixels" else max)(values) for name, values in found.items()}
        return structs.replace(config, model_args={**widest, **config.arguments("model_args")}) if widest else config

    def of_model(self, config: RunConfig, model: Model) -> RunRecipe:
        """Return the recipe with what a model cannot do of it. Warns if the recipe is for other models.

        Raises ``ModelError`` if the model cannot do something, and ``--recipe_partial`` is not given.
        """
        named = [name for name in model_names(config)[:-1] if name]
        if named and not any(self.recipe.fits(name) for name in named):
            logger.warning(
                "--recipe {}: it is for {}, not for {}; the run uses its settings all the same",
                config.recipe, ", ".join(self.recipe.models) or "no model that it names", named[0],
            )  # fmt: skip
        taken = model.generation_options()
        objection = _takes_all if taken is None else taken.objection
        found = {name: one.unplaced(objection, model.media_limits) for name, one in self.tasks.items()}
        found = {name: missing for name, missing in found.items() if missing}
        listed = dict(item for missing in found.values() for item in missing.items())
        shown = "; ".join(f"{key} ({why})" for key, why in listed.items())
        if listed and not config.recipe_partial:
            raise ModelError(
                f"--recipe {config.recipe}: model {config.model!r} cannot do what the recipe states: {shown}. Choose "
                "another back end, or give --recipe_partial, which asks without it; the results list what is missing"
            )
        if listed:
            logger.warning("--recipe {}: the run goes without what is stated here: {}", config.recipe, shown)
        return structs.replace(self, missing=found)


def _takes_all(_name: str, _value: Any) -> str:
    return ""


def command_line(config: RunConfig) -> CommandLine:
    """Return what the command line states about things that recipes state too."""
    arguments = config.arguments("model_args")
    media = {limit: arguments[name] for limit, names in _ARGUMENTS.items() for name in names if arguments.get(name)}
    thinking = next((arguments[name] for name in _THINKING if arguments.get(name) is not None), None)
    system, judge = config.system_instruction, judge_options(config)
    return CommandLine(
        gen_kwargs=config.arguments("gen_kwargs"),
        repeats=config.repeats,
        seed=None if config.seed == option_table()["seed"].default else config.seed[0] or 0,
        system_prompt=arguments.get("system_prompt") if system is None else system,
        thinking=None if thinking is None else thinking is not False,
        media=media,
        judge=judge.name if judge.is_given else None,
        task_settings=tuple(config.arguments("task_kwargs")),
    )


def read_recipe(config: RunConfig, tasks: Sequence[Task]) -> RunRecipe:
    """Read the recipe of ``--recipe`` and what it states for some tasks.

    Raises:
        ConfigError: the file cannot be read, or says something wrong.
        UnknownNameError: there is no recipe or variant of this name.
        UsageError: it does not cover a task, and ``--recipe_partial`` is not given; or it covers none.
    """
    recipe, given = read(config.recipe or ""), command_line(config)
    own = [task for task in tasks if not task.control_of]
    found = {task.name: recipe.task(task.source.base or task.name) for task in own if isinstance(task, YamlTask)}
    covered = {name: one for name, one in found.items() if one is not None}
    uncovered = tuple(task.name for task in own if task.name not in covered)
    covers = some_of(tuple(recipe.tasks), SHOWN) or "no task"
    if not covered:
        raise UsageError(
            f"--recipe {config.recipe}: it covers no task of this run ({some_of(uncovered, SHOWN)}); it covers {covers}"
        )
    if uncovered and not config.recipe_partial:
        raise UsageError(
            f"--recipe {config.recipe}: it does not cover {some_of(uncovered, SHOWN)}; it covers {covers}. Leave "
            "the task out, or give --recipe_partial, which asks it with its own settings"
        )
    return RunRecipe(recipe, {name: applied(name, one, given) for name, one in covered.items()}, uncovered)


def with_recipe(config: RunConfig, selection: Selection) -> Selection:
    """Build the tasks of a selection again with what the recipe states. Raises as ``read_recipe`` does."""
    run, given = read_recipe(config, selection.tasks), command_line(config)

    def made(task: Task) -> Task:
        one = run.tasks.get(task.name)
        if one is None or not isinstance(task, YamlTask):
            return task
        return rebuilt(task, options_with(task, one, given))

    return structs.replace(selection, tasks=tuple(map(made, selection.tasks)))


def with_reading(name: str, selection: Selection, must: bool = False) -> Selection:
    """Build the tasks of a selection again so that their answers are also read as a recipe states.

    ``must``: the recipe must state a reading for a task at least.

    Raises:
        ConfigError: the recipe's file cannot be read, or says something wrong.
        UnknownNameError: there is no recipe or variant of this name, or no rule that it names.
        UsageError: it states a reading for no task, but must.
    """
    recipe = read(name)
    found = {task.name: recipe.task(task.source.base or task.name) for task in selection.tasks if _is_own(task)}
    stated = {task: one for task, one in found.items() if one is not None and one.extract is not None}
    if must and not stated:
        tasks = some_of(tuple(found), SHOWN) or "no task"
        raise UsageError(f"--recipe {name}: it states no reading of the answers for {tasks}; leave it out")

    def made(task: Task) -> Task:
        one = stated.get(task.name)
        if one is None or not isinstance(task, YamlTask):
            return task
        return rebuilt(task, read_as(task, one, f"{recipe.name}:{recipe.variant}"))

    return structs.replace(selection, tasks=tuple(map(made, selection.tasks)))


def _is_own(task: Task) -> TypeGuard[YamlTask]:
    return isinstance(task, YamlTask) and not task.control_of


def check_layouts(config: RunConfig, tasks: Sequence[Task]) -> None:
    """Lay out the first document of each task: a form of the data that a recipe cannot use would fail all of them.

    Raises ``DataError`` if a layout cannot be filled.
    """
    for task in tasks:
        if not isinstance(task, YamlTask) or task.options.layout is None or not len(task):
            continue
        try:
            task.prompts.own_turns(task.documents[0])
        except ItemError as error:
            raise DataError(f"--recipe {config.recipe}: task {task.name!r}, document 0: {error}") from error
