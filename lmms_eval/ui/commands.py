"""Commands of the package in processes of their own: they load what the server does without."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from lmms_eval.errors import LmmsEvalError
from lmms_eval.utils.redaction import redact_text

PATIENCE_S = 180.0


def output_of(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run ``lmms-eval`` with these words and return what it prints.

    Raises:
        LmmsEvalError: it ends with an error, or takes too long.
    """
    command = [sys.executable, "-m", "lmms_eval", *words]
    try:
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, errors="replace", timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        raise LmmsEvalError(f"lmms-eval {words[0]} took longer than {PATIENCE_S:g} s and was ended") from None
    if done.returncode != 0:
        raise LmmsEvalError(f"lmms-eval {words[0]}: {redact_text(done.stderr.strip()[-2000:])}")
    return redact_text(done.stdout)


def missing_of(task: str, places: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Say what of a task is missing here: its data and packages are tried, nothing is downloaded.

    Raises:
        LmmsEvalError: it cannot be told.
    """
    found = json.loads(output_of(["tasks", "describe", "--json", *places, "--", task], environment))
    return [str(text) for text in found.get("missing") or ()]
