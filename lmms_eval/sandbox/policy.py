"""The rule that says if a program may run here at all."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lmms_eval.errors import LmmsEvalError
from lmms_eval.sandbox.layer import Confined, Layer

REQUIRED: tuple[Confined, ...] = ("files", "network", "processes")
REMEDY = (
    "enable Landlock or unprivileged user namespaces, or install bubblewrap (`lmms-eval doctor` shows what "
    "is missing); --allow_unsafe_code runs programs without"
)


class SandboxRefused(LmmsEvalError):
    """Nothing here would keep a program from the machine's files, network or processes."""


class SandboxError(LmmsEvalError):
    """The sandbox itself failed: its child could not be started or did not answer."""


def _found_here() -> Sequence[Layer]:
    from lmms_eval.sandbox.layers import probe_layers

    return probe_layers()


@dataclass(frozen=True, slots=True)
class Policy:
    """Conditions that must hold before a program runs."""

    allow_unsafe: bool = False
    """Run also where a required layer is missing; the layers that are there are used all the same."""
    probe: Callable[[], Sequence[Layer]] = _found_here

    def layers(self) -> Sequence[Layer]:
        """All layers, active or not. Raises ``SandboxRefused`` where the active ones do not suffice."""
        layers = self.probe()
        missing = not_confined(layers)
        if missing and not self.allow_unsafe:
            raise SandboxRefused(f"programs are not run: nothing confines their {' and '.join(missing)}; {REMEDY}")
        return layers


def not_confined(layers: Sequence[Layer]) -> tuple[Confined, ...]:
    """Name those of files, network and processes that no active layer confines."""
    held = {part for layer in layers for part in layer.confines}
    return tuple(part for part in REQUIRED if part not in held)


_policy: contextvars.ContextVar[Policy | None] = contextvars.ContextVar("sandbox_policy", default=None)


def current_policy() -> Policy:
    """The run's policy; the strict one where the run has set none."""
    return _policy.get() or Policy()


class using:
    """Context in which, in this thread, ``policy`` is the current one."""

    __slots__ = ("_policy", "_token")

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def __enter__(self) -> None:
        self._token = _policy.set(self._policy)

    def __exit__(self, *_: object) -> None:
        _policy.reset(self._token)
