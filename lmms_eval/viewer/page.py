"""The one HTML file of a report, and the rules by which browsers may load anything into it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.results.run import Choice

_BUNDLE = Path(__file__).with_name("bundle")
SCRIPT, STYLE = "app.js", "app.css"
_TITLE = "<title>lmms-eval report</title>"
_BEGINNING = 4096
"""Bytes of a page in which its title stands."""


def bundle(name: str) -> str:
    """Read a file of the built front end. Raises ``LmmsEvalError`` if it is not there."""
    try:
        return (_BUNDLE / name).read_text("utf-8")
    except OSError as error:
        raise LmmsEvalError(
            f"{_BUNDLE / name} cannot be read: {error.strerror or error}; install the package again, or `make viewer`"
        ) from error


def live_page(nonce: str) -> str:
    """Make the page of a view: it fetches pieces of data from where it came from itself (``live_policy``)."""
    head = f'<link rel="stylesheet" href="{STYLE}" nonce="{nonce}">'
    body = f'<script src="{SCRIPT}" nonce="{nonce}" data-live></script>'
    return _page(live_policy(nonce), head, body)


def live_policy(nonce: str) -> str:
    """Content-Security-Policy of a view: as that of a report, and pieces of data are fetched."""
    return _policy(nonce, "'self'") + "; connect-src 'self'"


def is_report(page: Path) -> bool:
    """Tell whether a file is the page of a report. Raises ``LmmsEvalError`` if it cannot be read."""
    try:
        with open(page, "rb") as file:
            return _TITLE.encode() in file.read(_BEGINNING)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LmmsEvalError(f"cannot read {page}: {error.strerror or error}") from error


def folder_page() -> str:
    """Make the page of a folder: it loads script and style beside it, and pieces of data as scripts."""
    nonce = secrets.token_urlsafe(18)
    head = f'<link rel="stylesheet" href="{STYLE}" nonce="{nonce}">'
    body = f'<script src="{SCRIPT}" nonce="{nonce}"></script>'
    return _page(_policy(nonce, "'self' file:"), head, body)


def single_page(chunks: Mapping[str, str]) -> str:
    """Make a page that holds everything; ``chunks`` are JSON without "<", by name."""
    nonce = secrets.token_urlsafe(18)
    head = f'<style nonce="{nonce}">{bundle(STYLE)}</style>'
    data = "\n".join(
        f'<script type="application/json" id="chunk-{name}">{text}</script>' for name, text in chunks.items()
    )
    script = bundle(SCRIPT).replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return _page(_policy(nonce, "data:"), head, f'{data}\n<script nonce="{nonce}">{script}</script>')


def _policy(nonce: str, media: str) -> str:
    """Content-Security-Policy: nothing but scripts and styles that bear this page's nonce, and pictures beside it.

    The nonce is new for each report, so that no text of a model, which was written before, can know it. Addresses of
    scripts go through one policy of trusted types, which lets only pieces of data pass.
    """
    rules = {
        "default-src": "'none'",
        "script-src": f"'nonce-{nonce}'",
        "style-src": f"'nonce-{nonce}'",
        "img-src": media,
        "media-src": media,
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "lmms-chunks",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _page(policy: str, head: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
{_TITLE}
{head}
</head>
<body>
<div id="app"></div>
<noscript>This report is drawn by a script that lies beside it: allow scripts to read it.</noscript>
{body}
</body>
</html>
"""


PAGE = "index.html"
_LOCK = ".writing"
"""File in a folder that is being written; a kill leaves it there, without its lock."""


def check_place(out: Path, single_file: bool) -> None:
    """Check that nothing is lost where a report is written.

    Raises:
        UsageError: there is something else than a report.
        LmmsEvalError: it cannot be read.
    """
    try:
        if single_file and out.is_dir():
            raise UsageError(f"{out} is a folder: with --single_file give --out the name of a file")
        if single_file or out.is_file():
            is_free = not out.exists() or (single_file and is_report(out))
        else:
            is_empty = not out.is_dir() or all(item.name == _LOCK for item in out.iterdir())
            is_free = is_empty or is_report(out / PAGE)
    except OSError as error:
        raise LmmsEvalError(f"cannot read {out}: {error.strerror or error}") from error
    if not is_free:
        raise UsageError(f"{out} holds something else than a report: give --out another name")


@contextlib.contextmanager
def writing_alone(folder: Path) -> Iterator[None]:
    """Keep other processes from writing the same report: two of them would mix their pieces.

    Raises:
        UsageError: another process writes it.
        LmmsEvalError: the folder cannot be made or written.
    """
    path = folder / _LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LmmsEvalError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        if not _is_locked(handle, path):
            raise UsageError(f"{folder} is being written by another process: wait for it, or give --out another name")
        yield
        path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _is_locked(handle: int, path: Path) -> bool:
    """Lock the file, which another process may have unlinked in between; where there are no locks it counts as ours."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return path.exists() and os.path.samestat(os.fstat(handle), path.stat())


Media = Literal["thumbnails", "full", "none"]
"""Pictures in a report: small ones, the originals beside them, or none of any medium."""


_SAID_AGAIN = frozenset({"messages", "asked"})
"""Keys of texts that are made of others: the conversation, and the prompt of a judge."""
_ANSWERS = frozenset({"resps", "filtered_resps", "raw_resps", "thoughts"})
_SAID = _ANSWERS | {"input"}
_READ = frozenset({"extracted"})
"""Keys of what scoring read in an answer."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Selection of what a report holds.

    Raises:
        UsageError: the limit is none.
    """

    media: Media = "thumbnails"
    only_failed: bool = False
    """Only samples that failed."""
    choice: Choice = field(default_factory=Choice)
    """Only samples that ``--ids`` and ``--where`` choose."""
    limit: int | None = None
    """Samples of each task at most."""
    redact: frozenset[str] = frozenset()
    """Keys of samples, documents and settings whose values are left out. A prompt or answer that is left out is so
    from the conversation and the judge's prompt too."""
    allowed: tuple[Path, ...] = ()
    """Folders from which media of foreign runs are shown too."""
    single_file: bool = False
    compare: bool = True
    """Runs are compared with each other."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit {self.limit}: give a number of samples from 1 on")
        if self.redact & _SAID:
            read = _READ | {"thoughts"} if self.redact & _ANSWERS else frozenset()
            if "thoughts" in self.redact:  # what the model wrote holds them, if they stood in tags
                read |= {"resps", "raw_resps"}
            object.__setattr__(self, "redact", self.redact | _SAID_AGAIN | read)
