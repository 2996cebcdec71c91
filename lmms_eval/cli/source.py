"""Sources from which commands take their tasks."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lmms_eval.config.environment import environment_defaults
from lmms_eval.config.options import options
from lmms_eval.utils.arguments import comma_list

if TYPE_CHECKING:
    from lmms_eval.config import RunConfig
    from lmms_eval.tasks.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class TaskSource:
    """Folders and plugin packages beside the built-in tasks."""

    include_paths: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    data_root: str | None = None
    run_options: Mapping[str, str] = field(default_factory=dict)
    """Options that tasks may ask for."""

    @classmethod
    def of_config(cls, config: RunConfig) -> TaskSource:
        return cls(config.include_paths, config.plugin_packages, config.data_root, config.for_tasks())

    @classmethod
    def of_flags(cls, given: argparse.Namespace) -> TaskSource:
        """Read the flag of subcommands (``--include-path``); plugins and options of tasks come from the environment."""
        told = environment_defaults(os.environ)
        stated = {
            option.name: told[option.name].text for option in options() if option.for_tasks and option.name in told
        }
        return cls(tuple(given.include_path), plugins_of_environment(), run_options=stated)

    def open(self) -> Catalogue:
        """Raises ``UsageError`` where a folder or package does not exist."""
        from lmms_eval.tasks.catalogue import Catalogue

        return Catalogue(self.include_paths, self.plugins)


def plugins_of_environment() -> tuple[str, ...]:
    """The packages that ``LMMS_EVAL_PLUGINS`` names."""
    found = environment_defaults(os.environ).get("plugins")
    return comma_list(found.text if found else None)
