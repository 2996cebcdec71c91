"""The command line in a process of its own, as a person starts it, or in the one of the tests."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lmms_eval.cli.main import main
from tests import forks


@dataclass(frozen=True)
class Ended:
    """What the person sees: exit code and output."""

    code: int
    out: str
    err: str

    @property
    def shown(self) -> str:
        return self.out + self.err


def lmms_eval(
    *arguments: str | Path,
    limit_file_size: int | None = None,
    timeout_s: float = 90,
    module: str = "lmms_eval",
    **environment: str,
) -> Ended:
    """Run ``lmms-eval`` (or another module) with these arguments and further environment variables."""
    done = forks.run(
        "-m",
        module,
        *map(str, arguments),
        env={**os.environ, "OPENAI_API_KEY": "test-key", "HF_HUB_OFFLINE": "1", **environment},
        timeout=timeout_s,
        file_size=limit_file_size,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def in_process(*arguments: str | Path, **environment: str) -> Ended:
    """Run ``lmms-eval`` in this process: a twentieth of the time."""
    out, err = io.StringIO(), io.StringIO()
    with patch.dict(os.environ, environment), redirect_stdout(out), redirect_stderr(err):
        code = main([*map(str, arguments)])
    return Ended(code, out.getvalue(), err.getvalue())


def results(out: Path) -> dict[str, Any]:
    """The one results file below a folder."""
    files = list(out.rglob("2*_results.json"))  # benchmarks write task_results.json
    assert len(files) == 1, files
    content: dict[str, Any] = json.loads(files[0].read_text())
    return content


def journal(out: Path) -> list[dict[str, Any]]:
    """All journaled responses below a folder."""
    return [
        json.loads(line) for path in sorted(out.rglob("responses-*.jsonl")) for line in path.read_text().splitlines()
    ]
