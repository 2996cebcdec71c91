"""Arguments of the tools, as their callers are told them and as they are checked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lmms_eval.errors import RequestError
from lmms_eval.server.contents import MOST_SAMPLES
from lmms_eval.utils.arguments import comma_list

_LONGEST_SHOWN = 60
_MOST_TASKS = 1000
_LONGEST_WAIT_S = 3600
Mode = Literal["auto", "async", "sync"]


class Arguments(BaseModel):
    """Arguments of a tool: a name that none of them has is an error."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), str_max_length=100_000)


_Kind = TypeVar("_Kind", bound=Arguments)
_Name = Annotated[str, Field(min_length=1, max_length=300)]


def _listed(given: Any) -> Any:
    return list(comma_list(given)) if isinstance(given, str) else given


class ListTasks(Arguments):
    query: str | None = Field(
        default=None, max_length=200, description="part of a name, a tag or the first words of a description; none: all"
    )


class GetTaskInfo(Arguments):
    task_name: _Name = Field(description="name of a task, group or tag, as list_tasks gives it")


class ListModels(Arguments):
    include_aliases: bool = Field(default=False, description="tell the other names of each model too")


class GetModelInfo(Arguments):
    model_name: _Name = Field(description="name or alias of a model, as list_models gives it")


class Evaluate(Arguments):
    model: _Name = Field(description="name or alias of a model, as list_models gives it")
    tasks: Annotated[list[_Name], BeforeValidator(_listed)] = Field(
        min_length=1,
        max_length=_MOST_TASKS,
        description="names of tasks, groups and tags; a text with commas is taken too",
    )
    model_args: dict[str, Any] | str | None = Field(
        default=None, description='arguments of the model, such as {"pretrained": "..."}; get_model_info lists them'
    )
    batch_size: int | str | None = None
    limit: int | float | None = Field(
        default=None, description="documents of each task, or their share below 1; none: all"
    )
    num_fewshot: int | None = None
    gen_kwargs: dict[str, Any] | str | None = Field(default=None, description="options of generation, over the task's")
    log_samples: bool = Field(default=True, description="keep each sample, for get_run_result")
    num_gpus: int = Field(default=1, ge=1, description="GPUs of the run, with a process on each")
    mode: Mode = Field(
        default="auto",
        description="async: answer at once with the run's id; sync: wait up to wait_timeout_s for its end; "
        "auto: wait a few seconds. A run goes on after every answer",
    )
    wait_timeout_s: float = Field(default=90, ge=0, le=_LONGEST_WAIT_S, description="seconds that a call waits at most")


class GetRunStatus(Arguments):
    run_id: _Name = Field(description="id of a run, as evaluate gave it")


class GetRunResult(Arguments):
    run_id: _Name = Field(description="id of a run, as evaluate gave it")
    include_samples: bool = Field(default=False, description="tell samples too, task after task")
    sample_limit: int = Field(default=100, ge=1, le=MOST_SAMPLES, description="samples in the answer at most")
    sample_offset: int = Field(
        default=0, ge=0, le=10**9, description="samples to pass over; next_offset of the answer before"
    )


class CancelRun(Arguments):
    run_id: _Name = Field(description="id of a run, as evaluate gave it")


def read(kind: type[_Kind], given: Mapping[str, Any]) -> _Kind:
    """Check the arguments of a call. Raises ``RequestError``, which names each wrong one, never what was given."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestError("; ".join(dict.fromkeys(_told(kind, one) for one in found))) from None


def _told(kind: type[Arguments], error: Any) -> str:
    name = ".".join(str(part) for part in error["loc"][:1])[:_LONGEST_SHOWN]
    if error["type"] != "extra_forbidden":
        return f"{name}: {error['msg']}"
    close = difflib.get_close_matches(name, kind.model_fields, n=1, cutoff=0.6)
    known = f"did you mean {close[0]}?" if close else f"there are {', '.join(kind.model_fields)}"
    return f"{name!r}: no argument of this tool; {known}"
