"""Finding and loading the weights of networks, in the run's folder of weights or, if that is allowed, on the hub.

A network whose weights or packages are missing makes its task *not evaluated*: the error here names the metric, the
task, what is missing and the setting that supplies it. Nothing is downloaded unless ``Context.download`` is set.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import ConfigError
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures.contract import Context

FILE_ENDINGS = (".safetensors", ".pth", ".pt", ".bin", ".npz", ".ckpt")
"""Endings, after the network's key, of weights that are one file."""
_Loaded = TypeVar("_Loaded")


class Network(Struct, frozen=True):
    """A network and the metrics that use it."""

    key: str
    """Name of its sub-folder (as ``save_pretrained`` writes it) or of its file in the folder of weights."""
    model_id: str
    """Repository on the hub, or empty if the network is missing."""
    package: str
    """Names of the required modules, separated by spaces (``torch transformers``)."""
    metrics: tuple[str, ...]
    """Names of the measures that use it."""


def locate(network: Network, context: Context, item: Item) -> Path | str:
    """Return the source to load a network from: a path in ``context.weights`` (``<key>``, or ``<key>`` with an ending
    of ``FILE_ENDINGS``), else, if ``context.download`` is set, its name on the hub.

    Raises:
        NotEvaluated: its packages or its weights are missing.
    """
    missing = [f"the package {name}" for name in network.package.split() if not _is_installed(name)]
    if missing:
        raise not_evaluated(item, f"{' and '.join(missing)} ({network.key})", f"pip install {network.package}")
    if context.weights is not None:
        for ending in ("", *FILE_ENDINGS):
            if (path := context.weights / (network.key + ending)).exists():
                return path
    if context.download and network.model_id:
        return network.model_id
    place = "no folder of weights is given" if context.weights is None else f"not at {context.weights / network.key}"
    raise not_evaluated(item, f"the weights {network.model_id or network.key} ({place})", _remedy(network))


def loaded(load: Callable[[str, str], _Loaded], network: Network, context: Context, item: Item) -> _Loaded:
    """Return ``load(source, device)`` for the source of a network. Cache ``load`` (``functools.lru_cache``).

    Raises:
        NotEvaluated: packages or weights are missing, or cannot be loaded.
        ConfigError: the device is missing.
    """
    source = locate(network, context, item)
    try:
        return load(str(source), usable_device(context))
    except load_errors() as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise not_evaluated(
            item, f"usable weights of {network.key}: {source} cannot be loaded ({reason})", _remedy(network)
        ) from error


def opener(network: Network) -> Callable[[Callable[[str, str], _Loaded]], Callable[[Context, Item], _Loaded]]:
    """Turn ``load(source, device)`` into a function of context and item, which loads the network once.

    The function raises the errors of ``loaded``.
    """

    def decorated(load: Callable[[str, str], _Loaded]) -> Callable[[Context, Item], _Loaded]:
        once = functools.lru_cache(maxsize=1)(load)

        def opened(context: Context, item: Item) -> _Loaded:
            return loaded(once, network, context, item)

        opened.__doc__ = load.__doc__
        return opened

    return decorated


def not_evaluated(item: Item, missing: str, remedy: str) -> NotEvaluated:
    """Return the error about a missing part. It names the metric, the task, what is missing and how to supply it."""
    return NotEvaluated(f"{item.facts.metric} of {item.facts.name.strip()!r} needs {missing}: {remedy}")


def load_errors() -> tuple[type[Exception], ...]:
    """Return the errors of loading weights from files that are missing, damaged or of another network."""
    errors = (OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError, TypeError, EOFError)
    if not _is_installed("safetensors"):
        return (*errors, pickle.UnpicklingError)
    from safetensors import SafetensorError

    return (*errors, pickle.UnpicklingError, SafetensorError)


def usable_device(context: Context) -> str:
    """Return the device of a run.

    Raises:
        ConfigError: torch does not know it, or it is missing.
    """
    import torch

    try:
        torch.empty(0, device=context.device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"networks of metrics cannot run on device {context.device!r}: {error}") from error
    return context.device


@contextlib.contextmanager
def inference() -> Iterator[None]:
    """Run forward passes with numbers that do not depend on the run: no gradients, full float32, fixed kernels."""
    import torch

    with (
        torch.inference_mode(),
        torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
    ):
        yield


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _remedy(network: Network) -> str:
    local = f"put them at FOLDER/{network.key} and name FOLDER with the setting `weights`"
    return f"{local}, or allow fetching them with `download`" if network.model_id else local
