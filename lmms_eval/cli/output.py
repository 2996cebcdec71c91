"""Writing to standard output and standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable


def emit(lines: str | Iterable[str]) -> None:
    """Print to standard output; a reader that went away (``| head``) ends the output, not the command."""
    text = lines if isinstance(lines, str) else "\n".join(lines)
    try:
        print(text, flush=True)
    except BrokenPipeError:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)


def complain(text: str) -> None:
    """Print to standard error, secrets redacted."""
    from lmms_eval.utils.redaction import redact

    print(redact(text), file=sys.stderr, flush=True)
