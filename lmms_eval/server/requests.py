"""The body of a submission: the fields of the server's interface, and every option of a run by its name."""

from __future__ import annotations

import difflib
import json
import re
import typing
from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from lmms_eval.config import build_config
from lmms_eval.config.options import RunConfig, options
from lmms_eval.errors import LmmsEvalError, RequestError, UsageError

NOT_TAKEN: Mapping[str, str] = {
    "config": "a request holds the options themselves",
    "dry_run": "nothing is asked then: use lmms-eval --dry_run",
    "max_restarts": "the server restarts what was killed",
    "output_path": "here it is called output_dir",
    "power_analysis": "no run: use lmms-eval power",
    "processes": "here it is called num_gpus",
    "resume": "the server resumes what was killed",
    "show_config": "GET /jobs/{id}/results gives the scores",
    "tui": "a server has no terminal",
}
"""Options of a run that a request does not accept, with the reasons."""
_TAKE_LISTS = frozenset(
    {"allow_media", "ids", "include_path", "plugins", "reasoning_tags", "seed", "thinking_tags", "until"}
)
_LISTS = list[Any] | str | int
"""Further types of the options that configuration files may state as lists."""
_LIST_OF_TASKS = 'give a list of at least one name, such as ["megabench_demo"]'
_LONGEST = 60
_FLAG = re.compile(r"--(\w+)")
_DEEPEST = 32
"""Levels of a body; no option is nested as deep."""
FAMILY_FIELDS = (
    "model", "tasks", "model_args", "num_fewshot", "batch_size", "device", "limit", "gen_kwargs", "log_samples",
    "predict_only", "num_gpus", "output_dir",
)  # fmt: skip
"""Fields that a stored request always has, given or not."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


@cache
def body_type() -> type[BaseModel]:
    """Build the type of the body from the declaration of the options."""
    hints = typing.get_type_hints(RunConfig)
    fields: dict[str, Any] = {
        "model": (str, Field(min_length=1, description="model name or alias; GET /models lists them")),
        "tasks": (list[str], Field(min_length=1, description="names of tasks, groups and tags; GET /tasks lists them")),
        "model_args": (dict[str, Any] | str | None, Field(None, description="arguments of the model")),
        "num_fewshot": (int | None, None),
        "batch_size": (int | str | None, None),
        "device": (str | None, None),
        "limit": (int | float | None, None),
        "gen_kwargs": (str | dict[str, Any] | None, None),
        "log_samples": (bool, Field(True, description="write a line for each sample")),
        "predict_only": (bool, False),
        "num_gpus": (int, Field(1, ge=1, description="GPUs of the run; above 1 with a process on each")),
        "output_dir": (str | None, Field(None, description="output folder on the server's machine")),
    }
    for option in options():
        if option.name in NOT_TAKEN:
            continue
        more = _LISTS if option.name in _TAKE_LISTS else None
        kind, stated = fields.get(option.name, (hints[option.name] | more | None, None))
        field = stated if hasattr(stated, "description") else Field(stated, description=option.text)
        fields[option.name] = (kind, field)
    return create_model("EvaluateRequest", __base__=_Body, **fields)


class InvalidBodyError(RequestError):
    """A body of the wrong form. ``details`` lists the mistakes field by field."""

    def __init__(self, details: list[dict[str, Any]]) -> None:
        super().__init__("; ".join(str(detail["msg"]) for detail in details))
        self.details = details


def read_body(body: bytes) -> dict[str, Any]:
    """Read a submission and fill in defaults. Raises ``InvalidBodyError`` if it is not JSON, or a field is wrong."""
    try:
        given = json.loads(body)
        level = [given]
        for _ in range(_DEEPEST):
            inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
            level = [*chain.from_iterable(inner)]
        if level:
            raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()  # no lone surrogates, no NaN
    except (ValueError, RecursionError) as error:
        raise InvalidBodyError([_detail(("body",), "json_invalid", f"the body is not JSON: {error}")]) from None
    try:
        read = body_type().model_validate(given)
    except ValidationError as error:
        details = []
        for one in error.errors(include_url=False, include_input=False):
            message = one["msg"]
            if one["loc"] == ("tasks",) and one["type"] in ("list_type", "too_short"):
                message = _LIST_OF_TASKS
            if one["type"] == "extra_forbidden":
                name = str(one["loc"][-1])[:_LONGEST]
                close = difflib.get_close_matches(name, body_type().model_fields, n=1, cutoff=0.6)
                message = f"unknown field {name!r}" + (f"; did you mean {close[0]}?" if close else "")
                message = f"{name}: {NOT_TAKEN[name]}" if name in NOT_TAKEN else message
            details.append(_detail(("body", *one["loc"]), one["type"], message))
        raise InvalidBodyError(details) from None
    shown = {name: getattr(read, name) for name in FAMILY_FIELDS}
    more = {name: getattr(read, name) for name in sorted(read.model_fields_set) if name not in shown}
    plain: dict[str, Any] = json.loads(json.dumps({**shown, **more}))
    return plain


def check_options(request: Mapping[str, Any]) -> None:
    """Check the values by the rules of the command line. Raises ``InvalidBodyError``."""
    values = {
        name: value for name, value in request.items() if value is not None and name not in ("num_gpus", "output_dir")
    }
    try:
        build_config({**values, "output_path": "."})
    except UsageError as error:
        named = _FLAG.match(str(error))
        place = ("body", named[1]) if named and named[1] in values else ("body",)
        raise InvalidBodyError([_detail(place, "value_error", str(error))]) from None


def unknown_name(field: str, error: LmmsEvalError) -> InvalidBodyError:
    """Return the error for a field that names something that does not exist."""
    return InvalidBodyError([_detail(("body", field), "unknown_name", f"{field}: {error}")])


def _detail(place: tuple[Any, ...], kind: str, message: str) -> dict[str, Any]:
    return {"type": kind, "loc": list(place), "msg": message}
