"""The policy of a gate: which tasks may fall by how much, read from YAML."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from lmms_eval.errors import ConfigError
from lmms_eval.utils.yaml_bounds import load_bounded

Correction = Literal["holm", "bh", "none"]
_Margin = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Override(_Strict):
    """Keys that a pattern of tasks states for itself; ``None``: those of the whole policy hold."""

    metric: str | None = None
    margin: _Margin | None = None
    minimum_coverage: _Share | None = None
    minimum_documents: _Count | None = None


class Policy(_Strict):
    """A gate's rules."""

    tasks: dict[str, Override] = Field(min_length=1)
    """By name or pattern (``*``, ``?``, ``[...]``) of tasks, groups and benchmarks' numbers; the first that fits
    holds."""
    margin: _Margin | None = None
    """How much worse RUN may be, in the units of the score (of scores from 0 to 1, 0.01 is one percent point)."""
    metric: str | None = None
    """``METRIC`` or ``METRIC,FILTER``; needed where a task has several."""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    correction: Correction = "holm"
    minimum_coverage: _Share = 1.0
    """Share of the documents that must have a number in both runs."""
    minimum_documents: _Count = 2

    @field_validator("tasks", mode="before")
    @classmethod
    def _without_values(cls, value: object) -> object:
        """Take a list of names, and names without keys, for patterns that state nothing."""
        if isinstance(value, list):
            if not all(isinstance(name, str) for name in value):
                raise ValueError("give names or patterns of tasks")
            value = dict.fromkeys(value)
        return {key: one or {} for key, one in value.items()} if isinstance(value, dict) else value

    def rule(self, pattern: str) -> Rule:
        """Return what holds for the tasks of a pattern."""
        own = self.tasks[pattern]
        margin = self.margin if own.margin is None else own.margin
        if margin is None:
            raise ConfigError(f"policy: {pattern!r} has no margin; give one for it, or for all tasks")
        return Rule(
            pattern=pattern,
            metric=self.metric if own.metric is None else own.metric,
            margin=margin,
            minimum_coverage=self.minimum_coverage if own.minimum_coverage is None else own.minimum_coverage,
            minimum_documents=self.minimum_documents if own.minimum_documents is None else own.minimum_documents,
        )

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return the rules in the order of the file."""
        return tuple(self.rule(pattern) for pattern in self.tasks)


class Rule(_Strict):
    """Bars of the tasks that a pattern fits."""

    pattern: str
    metric: str | None
    margin: float
    minimum_coverage: float
    minimum_documents: int

    def fits(self, name: str) -> bool:
        return fnmatch.fnmatchcase(name, self.pattern)


def read_policy(path: Path) -> Policy:
    """Read a policy.

    Raises:
        ConfigError: the file cannot be read or is no policy; the message names the key, and the nearest valid one.
    """
    try:
        content = load_bounded(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"policy {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"policy {path} cannot be read: no text in UTF-8") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"policy {path} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"policy {path}: give keys and values, at least tasks and margin")
    try:
        policy = Policy.model_validate(content)
        policy.rules  # noqa: B018 - a pattern without a margin is told now
    except ValidationError as error:
        raise ConfigError(f"policy {path}: {'; '.join(_told(error))}") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return policy


def _told(error: ValidationError) -> Iterable[str]:
    """Yield a sentence for each mistake, with the nearest valid key for an unknown one."""
    for one in error.errors():
        where = [str(part) for part in one["loc"]]
        if one["type"] == "extra_forbidden":
            known = list(Override.model_fields if len(where) > 1 else Policy.model_fields)
            close = difflib.get_close_matches(where[-1], known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"keys: {', '.join(known)}"
            yield f"unknown key {'.'.join(where)!r}; {hint}"
        elif one["type"] == "missing":
            yield f"the key {'.'.join(where)!r} is missing"
        elif one["type"] in ("dict_type", "model_type"):
            yield f"{'.'.join(where)}: give {'keys and values' if len(where) > 1 else 'names or patterns of tasks'}"
        elif one["type"] == "too_short":
            yield f"{'.'.join(where)}: name at least one task"
        else:
            yield f"{'.'.join(where)}: {one['msg']}"
