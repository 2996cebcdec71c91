"""One layer of confinement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Confined = Literal["files", "network", "processes", "resources"]
NAMESPACES, LANDLOCK, SECCOMP, BUBBLEWRAP = "namespaces", "landlock", "seccomp", "bubblewrap"
NO_NEW_PRIVILEGES, THREADS, LIMITS = "no_new_privs", "threads", "limits"
CONFINES: Mapping[str, tuple[Confined, ...]] = {
    NAMESPACES: ("files", "network"),
    BUBBLEWRAP: ("files", "network"),
    LANDLOCK: ("files",),
    SECCOMP: ("network", "processes"),
    NO_NEW_PRIVILEGES: (),
    THREADS: ("resources",),
    LIMITS: ("resources",),
}


@dataclass(frozen=True, slots=True)
class Layer:
    """One way in which the system holds a program back."""

    name: str
    active: bool
    detail: str
    """Effect of the layer on this machine, or the reason why it cannot be used."""

    @property
    def confines(self) -> tuple[Confined, ...]:
        return CONFINES.get(self.name, ()) if self.active else ()
