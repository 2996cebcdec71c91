"""A plugin package of one class, run by the command line to a score."""

from __future__ import annotations

import importlib
import json
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.workload import text_task
from lmms_eval.cli.main import main
from tests.models.test_registry import write_entry_point

NAME = "bench_text"
DOCUMENTS = 5


@dataclass
class Outcome:
    code: int
    results: dict[str, Any]
    samples: list[dict[str, Any]]

    @property
    def score(self) -> Any:
        return self.results["results"][NAME]["exact_match,none"]

    @property
    def answers(self) -> list[str]:
        return [sample["filtered_resps"] for sample in self.samples]


@dataclass
class Plugins:
    """Plugin packages in a folder on the path, and runs of them."""

    folder: Path
    patch: pytest.MonkeyPatch

    def write(self, code: str, chat: bool = False) -> None:
        """A package ``own_plugin`` with model ``own``, whose class is ``Own``.

        It is named in the environment; a chat class, which that way does not know, by an entry point.
        """
        models = self.folder / "own_plugin" / "models"
        models.mkdir(parents=True)
        (models.parent / "__init__.py").touch()
        table = "{}" if chat else '{"own": "Own"}'
        (models / "__init__.py").write_text(f"AVAILABLE_MODELS = {table}\n")
        if chat:
            path = "own_plugin.models.own.Own"
            manifest = (
                f"from lmms_eval.models.registry_v2 import ModelManifest\nown = ModelManifest('own', None, '{path}')\n"
            )
            (models.parent / "manifest.py").write_text(manifest)
            write_entry_point(self.folder, "own_plugin", "own = own_plugin.manifest:own")
        (models / "own.py").write_text(textwrap.dedent(code))
        self.patch.syspath_prepend(str(self.folder))
        self.patch.setenv("LMMS_EVAL_PLUGINS", "own_plugin")
        importlib.invalidate_caches()

    def run(self, model_args: str = "", *options: str) -> Outcome:
        """The command line over a small task, with model ``own`` of the plugin package."""
        text_task(self.folder / "tasks", DOCUMENTS)
        command = ["--model", "own", "--tasks", NAME, "--include_path", str(self.folder / "tasks")]
        command += ["--output_path", str(self.folder / "out"), "--log_samples", "--batch_size", "2", *options]
        code = main([*command, *(["--model_args", model_args] if model_args else [])])
        (results,) = (self.folder / "out").rglob("*_results.json")
        (samples,) = (self.folder / "out").rglob("*_samples_*.jsonl")
        lines = [json.loads(line) for line in samples.read_text().splitlines()]
        return Outcome(code, json.loads(results.read_text()), lines)


@contextmanager
def forgotten() -> Iterator[None]:
    """Modules of the plugin are forgotten at the end."""
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "own_plugin"]:
            del sys.modules[name]
