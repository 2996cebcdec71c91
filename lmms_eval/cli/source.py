"""Where commands take their tasks from."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmms_eval.config.environment import environment_defaults

if TYPE_CHECKING:
    from lmms_eval.config import RunConfig
    from lmms_eval.tasks.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class TaskSource:
    """Folders and plugin packages beside the built-in tasks."""

    include_paths: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    data_root: str | None = None

    @classmethod
    def of_config(cls, config: RunConfig) -> TaskSource:
        return cls(config.include_paths, config.plugin_packages, config.data_root)

    @classmethod
    def of_flags(cls, given: argparse.Namespace) -> TaskSource:
        """For subcommands: ``--include-path``, and plugins from the environment."""
        return cls((given.include_path,) if given.include_path else (), plugins_of_environment())

    def open(self) -> Catalogue:
        """Raises ``UsageError`` where a folder or package does not exist."""
        from lmms_eval.tasks.catalogue import Catalogue

        return Catalogue(self.include_paths, self.plugins)


def plugins_of_environment() -> tuple[str, ...]:
    """The packages that ``LMMS_EVAL_PLUGINS`` names."""
    found = environment_defaults(os.environ).get("plugins")
    return tuple(name for part in (found.text if found else "").split(",") if (name := part.strip()))
