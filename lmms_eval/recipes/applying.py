"""Changes of a task by a recipe: the task's own settings come first, over them the recipe, over it the command line.

Each value of the recipe that the command line replaces is listed, and so is what the recipe does not state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from msgspec import Struct, structs

from lmms_eval.api.generation import LENGTHS, STOPS, TEMPLATE_OPTIONS, TILE_LIMITS, VIDEO_LIMITS, RequestLimits
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import UsageError
from lmms_eval.recipes.documents import READERS, LaidOut, limits_of, names_frames, reader_of
from lmms_eval.recipes.layouts import Fields
from lmms_eval.recipes.reading import reading_of
from lmms_eval.recipes.recipe import TaskRecipe
from lmms_eval.tasks.yaml.settings import is_above_zero
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.utils.records import to_dict

_FRAME_SETTINGS = ("pre_prompt", "post_prompt", "format", "prompt_format", "prompt_type", "shot_type")
"""Settings of tasks that only their own prompts show."""
NO_JUDGE = "none"
THINKING = "enable_thinking"
"""The variable of chat templates that switches thinking."""
_NEUTRAL: Mapping[str, tuple[float, ...]] = {
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
}
"""Values of options that change nothing, so that a back end without the option can do what is stated."""


class CommandLine(Struct, frozen=True):
    """Settings of the command line that recipes have too."""

    gen_kwargs: Mapping[str, Any] = {}
    repeats: int | None = None
    seed: int | None = None
    system_prompt: str | None = None
    """``--system_instruction``, or the model's argument."""
    thinking: bool | None = None
    """The model's argument."""
    media: Mapping[str, Any] = {}
    """Limits among the model's arguments, by the names of ``RequestLimits``."""
    judge: str | None = None
    task_settings: tuple[str, ...] = ()
    """Names in ``--task_kwargs``."""


class Replaced(Struct, frozen=True):
    """A value that the run has in place of the recipe's."""

    recipe: Any
    run: Any


class AppliedRecipe(Struct, frozen=True):
    """A recipe's settings of one task, as a run has them."""

    task: str
    recipe: TaskRecipe
    gen_kwargs: Mapping[str, Any]
    """The recipe's generation options that the command line does not replace."""
    media: RequestLimits
    """The recipe's limits, or those of the command line in their place."""
    differs: Mapping[str, Replaced]
    """What the command line replaces, by the recipe's keys (``gen_kwargs.temperature``)."""

    @property
    def cannot(self) -> dict[str, str]:
        """Statements that no run can follow, by the recipe's keys, with the reason."""
        found = {f"not_reproducible.{number}": text for number, text in enumerate(self.recipe.not_reproducible, 1)}
        if self.recipe.thinking.budget is not None:
            found["thinking.budget"] = "no back end closes thoughts after a number of tokens"
        if self.recipe.media.stitched:
            found["media.stitched"] = "the source does not state how it puts several pictures together"
        if self.recipe.media.double_first and self.recipe.layout is None:
            found["media.double_first"] = "the recipe states no layout for this task"
        return found

    @property
    def record(self) -> dict[str, Any]:
        """The recipe's settings in the run by kind, for results and comparisons."""
        layout = self.recipe.layout
        text = b"" if layout is None else orjson.dumps(to_dict(layout), option=orjson.OPT_SORT_KEYS)
        found = {
            "prompt": hashlib.sha256(text).hexdigest()[:16] if text else None,
            "system_prompt": self.recipe.system_prompt,
            "options": dict(self.gen_kwargs),
            "media": self.media.stated,
            "extract": self.recipe.extract,
            "judge": None if self.recipe.judge is None else self.recipe.judge.model,
        }
        return {name: value for name, value in found.items() if value not in (None, {})}

    def unplaced(self, objection: Callable[[str, Any], str], media_limits: frozenset[str]) -> dict[str, str]:
        """Return what a model cannot do of what is stated, by the recipe's keys, with the reason.

        Args:
            objection: returns the reason why the model has no place for a generation option and its value, or "".
            media_limits: names of the limits that the model applies to single requests.
        """
        found = dict(self.cannot)
        for name, value in self.gen_kwargs.items():
            if value not in _NEUTRAL.get(name, ()) and (why := objection(name, value)):
                key = f"thinking.enabled ({THINKING})" if name == TEMPLATE_OPTIONS else f"gen_kwargs.{name}={value}"
                found[key] = why if not why.startswith("did you mean") else "the model has no such option"
        for name, value in self.media.stated.items():
            if name not in media_limits:
                found[f"media.{name}={value}"] = "it applies no such limit to a request"
        return found


def applied(task: str, recipe: TaskRecipe, given: CommandLine) -> AppliedRecipe:
    """Return what a recipe changes about a task, given what the command line states."""
    differs: dict[str, Replaced] = {}
    gen_kwargs = _options_left(recipe, given, differs)
    limits = _limits_left(recipe, given, differs)
    for key, in_recipe, in_run in (
        ("repeats", recipe.repeats, given.repeats),
        ("seed", recipe.seed, given.seed),
        ("system_prompt", recipe.system_prompt, given.system_prompt),
    ):
        if in_recipe is not None and in_run is not None and in_recipe != in_run:
            differs[key] = Replaced(in_recipe, in_run)
    if recipe.judge is not None:
        judge = None if recipe.judge.model == NO_JUDGE else recipe.judge.model
        if judge != given.judge:
            differs["judge.model"] = Replaced(judge, given.judge)
    return AppliedRecipe(task, recipe, gen_kwargs, limits, differs)


def _options_left(recipe: TaskRecipe, given: CommandLine, differs: dict[str, Replaced]) -> dict[str, Any]:
    """Return the generation options that the command line leaves, and note those that it replaces."""
    stated, enabled = dict(recipe.gen_kwargs), recipe.thinking.enabled
    if enabled is not None and given.thinking is None:
        stated[TEMPLATE_OPTIONS] = {**stated.get(TEMPLATE_OPTIONS, {}), THINKING: enabled}
    elif enabled not in (None, given.thinking):
        differs["thinking.enabled"] = Replaced(enabled, given.thinking)
    kept = {}
    for name, value in stated.items():
        over = _overriding(name, given.gen_kwargs)
        if over is None:
            kept[name] = value
        elif over[0] != value:
            differs[f"gen_kwargs.{name}"] = Replaced(value, over[0])
    if "temperature" in given.gen_kwargs and not is_above_zero(given.gen_kwargs["temperature"]):
        kept.pop("do_sample", None)  # it would contradict the temperature
    return kept


def _limits_left(recipe: TaskRecipe, given: CommandLine, differs: dict[str, Replaced]) -> RequestLimits:
    """Return the limits with those of the command line in their places, which are noted."""
    limits = limits_of(recipe.media)
    for name, stated in limits.stated.items():
        if name in given.media:
            # A rule of frames needs the number; of tiles the model has its own argument.
            limits = structs.replace(limits, **{name: None if name in TILE_LIMITS else given.media[name]})
            if given.media[name] != stated:
                differs[f"media.{name}"] = Replaced(stated, given.media[name])
    if limits.max_frames is not None and limits.min_frames is not None:
        limits = structs.replace(limits, min_frames=min(limits.min_frames, limits.max_frames))
    if names_frames(recipe.layout, recipe.media):  # the layout takes the frames itself, and sends pictures
        return structs.replace(limits, **dict.fromkeys(VIDEO_LIMITS))
    return limits


def _overriding(name: str, given: Mapping[str, Any]) -> tuple[Any] | None:
    """Return the value of the command line that takes the place of an option, perhaps under another name."""
    names = next((names for names in (LENGTHS, STOPS) if name in names), (name,))
    return next(((given[one],) for one in names if one in given), None)


def options_with(task: YamlTask, one: AppliedRecipe, given: CommandLine) -> TaskOptions:
    """Return the options of a task under a recipe.

    Raises ``UsageError`` if the layout cannot ask the task, or the command line states settings that it would hide.
    """
    recipe, options = one.recipe, task.options
    layout = None if recipe.layout is None else _laid_out(task, recipe, given)
    system = recipe.system_prompt if given.system_prompt is None else options.system_instruction
    seed = recipe.seed if given.seed is None and recipe.seed is not None else options.seed
    media = one.media if one.media.stated else None
    changed = {
        "readers": READERS,
        "layout": None if recipe.layout is None else to_dict(recipe.layout),
        "media": to_dict(one.media) | {"double_first": bool(recipe.media.double_first)},
        "frames": None if layout is None else [layout.media.frames, layout.media.fps, layout.media.frame_rule],
        "system_prompt": system,
        "seed": seed,
    }
    canonical = orjson.dumps(changed, option=orjson.OPT_SORT_KEYS)
    return structs.replace(
        options,
        gen_kwargs={**one.gen_kwargs, **options.gen_kwargs},
        repeats=options.repeats if options.repeats is not None else recipe.repeats,
        system_instruction=system or None,
        seed=seed,
        layout=layout,
        media=media,
        asked_by=hashlib.sha256(canonical).hexdigest(),
    )


def read_as(task: YamlTask, recipe: TaskRecipe, name: str) -> TaskOptions:
    """Return the options of a task whose answers are also read as the recipe ``name`` states; the prompts stay.

    Raises ``UsageError`` if the recipe names an unknown rule.
    """
    fields = reader_of(task.name) or _reader_by_columns(task)
    return structs.replace(task.options, second_reading=reading_of(recipe, fields, task.options.run_options, name))


def _laid_out(task: YamlTask, recipe: TaskRecipe, given: CommandLine) -> LaidOut:
    if task.output_type != "generate_until":
        raise UsageError(
            f"--recipe: task {task.name!r} asks in another way (output_type {task.output_type}) than the recipe, which "
            "states one prompt for one answer; leave the task out"
        )
    hidden = [name for name in given.task_settings if name in _FRAME_SETTINGS]
    if hidden:
        raise UsageError(
            f"--task_kwargs {hidden[0]}: the recipe's layout takes the place of the prompt of task {task.name!r} that "
            "this setting changes; leave one of them out, or change the layout in a recipe of your own"
        )
    assert recipe.layout is not None
    read = reader_of(task.name) or _reader_by_columns(task)
    media, over = recipe.media, given.media
    if media.frames is not None and "max_frames" in over:
        media = structs.replace(media, frames=over["max_frames"])
    if media.fps is not None and "fps" in over:
        media = structs.replace(media, fps=over["fps"])
    return LaidOut(task.name, recipe.layout, media, read, task.prompts.kwargs)


def _reader_by_columns(task: YamlTask) -> Callable[[Mapping[str, Any]], Fields]:
    """Return a reader for a task of the user: columns ``question`` and ``hint``, and the options of ``choices``."""

    def read(doc: Mapping[str, Any]) -> Fields:
        columns = task.choice_columns
        options = () if columns is None else tuple(str(option) for option in columns.options(doc))
        return Fields(question=str(doc["question"]), hint=str(doc.get("hint") or ""), options=options)

    return read
