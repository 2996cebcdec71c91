"""Whether programs may run: the policy of a run, which is known before any program is there."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lmms_eval.errors import LmmsEvalError

if TYPE_CHECKING:
    from lmms_eval.sandbox.layers import Confined, Layer

REQUIRED: tuple[Confined, ...] = ("files", "network", "processes")
REMEDY = (
    "enable Landlock or unprivileged user namespaces, or install bubblewrap (`lmms-eval doctor` shows what "
    "is missing); --allow_unsafe_code runs programs without"
)


class SandboxRefused(LmmsEvalError):
    """No layer on this machine would keep a program from the machine's files, network or processes."""


def _probe() -> Sequence[Layer]:
    from lmms_eval.sandbox.layers import probe_layers  # most runs have no programs

    return probe_layers()


class Policy(Struct, frozen=True):
    """Conditions that must hold before a program runs."""

    allow_unsafe: bool = False
    """Run even if a required layer is missing; the available layers are still used."""
    probe: Callable[[], Sequence[Layer]] = _probe

    def layers(self) -> Sequence[Layer]:
        """Return all layers, active or not. Raises ``SandboxRefused`` if the active ones do not suffice."""
        layers = self.probe()
        missing = not_confined(layers)
        if missing and not self.allow_unsafe:
            raise SandboxRefused(f"programs are not run: nothing confines their {' and '.join(missing)}; {REMEDY}")
        return layers


def not_confined(layers: Sequence[Layer]) -> tuple[Confined, ...]:
    """Return which of files, network and processes no active layer confines."""
    held = {part for layer in layers for part in layer.confines}
    return tuple(part for part in REQUIRED if part not in held)


_policy: contextvars.ContextVar[Policy | None] = contextvars.ContextVar("sandbox_policy", default=None)


def current_policy() -> Policy:
    """Return the run's policy, by default the strict one."""
    return _policy.get() or Policy()


class using:
    """A context that makes ``policy`` the current one in this thread."""

    __slots__ = ("_policy", "_token")

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def __enter__(self) -> None:
        self._token = _policy.set(self._policy)

    def __exit__(self, *_: object) -> None:
        _policy.reset(self._token)
