"""``--launcher_args``: the program that serves a judge, and its arguments."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from lmms_eval.errors import ModelError

HEALTH, MODELS = "/health", "/v1/models"


class ServerProgram(Struct, frozen=True):
    """A server program for the chat-completions protocol."""

    module: str
    """The module, run as with ``python -m``."""
    package: str
    command: tuple[str, ...]
    """The arguments before the model."""
    ready: str
    """The path that returns status 200 once the server takes requests."""
    key: str
    """How the key is passed: ``env:NAME``, the option that takes it, or empty if the program does not support keys."""
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The program's options by our names for them."""


PROGRAMS: Mapping[str, ServerProgram] = {
    "vllm": ServerProgram(
        "vllm.entrypoints.openai.api_server", "vllm", ("--model",), HEALTH, "env:VLLM_API_KEY",
        {"tp": "tensor-parallel-size", "dp": "data-parallel-size", "mem_fraction_static": "gpu-memory-utilization"},
    ),
    "sglang": ServerProgram(
        "sglang.launch_server", "sglang", ("--model-path",), HEALTH, "--api-key",
        {"tp": "tp-size", "dp": "dp-size", "gpu_memory_utilization": "mem-fraction-static"},
    ),
    "transformers": ServerProgram("transformers.cli.transformers", "transformers", ("serve",), HEALTH, ""),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Serving:
    """The settings of a judge's server."""

    name: str
    model: str
    host: str = "127.0.0.1"
    port: int = 0
    """0 selects any free port."""
    timeout_s: float = 1800.0
    """The limit for the time from the start until the server takes requests."""
    api_key: str = field(default="", repr=False)
    """If empty, a key is generated for the run."""
    gpus: str | None = None
    """GPUs in the form of ``CUDA_VISIBLE_DEVICES``; ``None``: all visible ones."""
    options: tuple[str, ...] = ()
    """Further arguments of the program."""

    @property
    def program(self) -> ServerProgram:
        return PROGRAMS[self.name]

    def command(self, port: int) -> list[str]:
        """Return the program's arguments."""
        return [*self.program.command, self.model, "--host", self.host, "--port", str(port), *self.options]

    def describe(self) -> dict[str, Any]:
        """Return the description of the server in the results."""
        return {"name": self.name, "model": self.model, "options": list(self.options)}


def read_serving(given: Mapping[str, Any]) -> Serving:
    """Read the arguments: those of ``Serving``, and any option of the program by its name (``max_model_len=4096``).

    Raises:
        ModelError: the program or model is missing, or a value is not valid.
    """
    rest = dict(given)
    name = str(rest.pop("name", ""))
    if name not in PROGRAMS:
        close = difflib.get_close_matches(name, PROGRAMS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(PROGRAMS)}"
        raise ModelError(f"--launcher_args: name={name or '?'} is not a program that serves a judge; {hint}")
    model = str(rest.pop("model", "") or "")
    if not model:
        raise ModelError("--launcher_args: model=NAME is missing: the model that judges, by name or folder")
    gpus, stated = None, rest.pop("gpus", None)
    if stated not in (None, ""):
        parts = stated if isinstance(stated, list | tuple) else str(stated).replace("+", ";").split(";")
        gpus = ",".join(str(part).strip() for part in parts)
    if gpus and not {"tp", "tensor_parallel_size", "tp_size"} & rest.keys() and name != "transformers":
        rest["tp"] = len(gpus.split(","))
    host = str(rest.pop("host", None) or "127.0.0.1")
    port = _number("port", rest.pop("port", 0), int, 0)
    timeout_s = _number("timeout", rest.pop("timeout", 1800), float, 1)
    api_key = str(rest.pop("api_key", "") or "")
    options: list[str] = []
    for key, value in rest.items():
        flag = f"--{PROGRAMS[name].names.get(key, key.replace('_', '-'))}"
        if value is not None and value is not False:
            options += [flag] if value is True else [flag, str(value)]
    return Serving(name, model, host, port, timeout_s, api_key, gpus, tuple(options))


def check_program(serving: Serving) -> None:
    """Raise ``ModelError`` if the program is not installed."""
    package = serving.program.package
    if importlib.util.find_spec(package) is None:
        raise ModelError(f"--launcher_args: {serving.name} is not installed here: pip install {package}")
    if serving.name == "transformers" and not all(map(importlib.util.find_spec, ("fastapi", "uvicorn"))):
        raise ModelError("--launcher_args: transformers serve needs: pip install 'transformers[serving]'")


def _number(name: str, value: Any, kind: Callable[[Any], Any], least: float) -> Any:
    try:
        number = kind(value)
    except (TypeError, ValueError):
        number = None
    if number is None or number < least:
        raise ModelError(f"--launcher_args: {name}={value} is not valid; give a number of at least {least}")
    return number
