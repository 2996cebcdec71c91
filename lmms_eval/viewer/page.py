"""The HTML page of a report, its Content-Security-Policy, and the options and the place of a report."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Literal

from lmms_eval.errors import LmmsEvalError, UsageError
from lmms_eval.results.run import Choice
from lmms_eval.utils.terminal import printable

_BUNDLE = Path(__file__).with_name("bundle")
SCRIPT, STYLE = "app.js", "app.css"
_REPORT = "lmms-eval report"
_TITLE = f"<title>{_REPORT}</title>"
_BEGINNING = 4096
"""The title of a page is within its first bytes, of this number."""


def bundle(name: str) -> str:
    """Read a file of the built front end. Raises ``LmmsEvalError`` if it cannot be read."""
    try:
        return (_BUNDLE / name).read_text("utf-8")
    except OSError as error:
        raise LmmsEvalError(
            f"{_BUNDLE / name} cannot be read: {error.strerror or error}; install the package again, or `make viewer`"
        ) from error


def live_page(nonce: str) -> str:
    """Make the page of a view, which fetches pieces of data from its own origin (``live_policy``)."""
    head = f'<link rel="stylesheet" href="{STYLE}" nonce="{nonce}">'
    body = f'<script src="{SCRIPT}" nonce="{nonce}" data-live></script>'
    return _page(live_policy(nonce), head, body)


def live_policy(nonce: str) -> str:
    """Return the Content-Security-Policy of a view: that of a report, and connections to its own origin."""
    return _policy(nonce, "'self'") + "; connect-src 'self'"


def is_report(page: Path) -> bool:
    """Return whether a file is the page of a report. Raises ``LmmsEvalError`` if it cannot be read."""
    try:
        with open(page, "rb") as file:
            return _TITLE.encode() in file.read(_BEGINNING)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LmmsEvalError(f"cannot read {page}: {error.strerror or error}") from error


def folder_page() -> str:
    """Make the page of a folder, which loads script, style and pieces of data (as scripts) from the folder."""
    nonce = secrets.token_urlsafe(18)
    head = f'<link rel="stylesheet" href="{STYLE}" nonce="{nonce}">'
    body = f'<script src="{SCRIPT}" nonce="{nonce}"></script>'
    return _page(_policy(nonce, "'self' file:"), head, body)


def single_page(chunks: Mapping[str, str], title: str = _REPORT) -> str:
    """Make a page that holds everything. ``chunks`` are JSON without "<", by name."""
    nonce = secrets.token_urlsafe(18)
    head = f'<style nonce="{nonce}">{bundle(STYLE)}</style>'
    data = "\n".join(
        f'<script type="application/json" id="chunk-{name}">{text}</script>' for name, text in chunks.items()
    )
    script = bundle(SCRIPT).replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return _page(_policy(nonce, "data:"), head, f'{data}\n<script nonce="{nonce}">{script}</script>', title)


def _policy(nonce: str, media: str) -> str:
    """Return a Content-Security-Policy that only allows scripts and styles with this page's nonce, and its media.

    The nonce is new for each report, so a text of a model, which is older, cannot contain it. Addresses of scripts must
    pass a policy of trusted types, which only accepts pieces of data.
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


def _page(policy: str, head: str, body: str, title: str = _REPORT) -> str:
    """Return a page that its script draws."""
    refused = "<noscript>This page is drawn by a script that comes with it: allow scripts to read it.</noscript>"
    return html_page(policy, head, f'<div id="app"></div>\n{refused}\n{body}', title)


def html_page(policy: str, head: str, body: str, title: str) -> str:
    """Return an HTML document with a Content-Security-Policy. All arguments are HTML already."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
{head}
</head>
<body>
{body}
</body>
</html>
"""


_DARK = ":root[data-theme=dark]{"


def static_page(title: str, body: str) -> str:
    """Return a page without scripts in the style of reports, which follows the reader's choice of light or dark.

    Args:
        title: the title, as text.
        body: the body, as HTML.
    """
    style = bundle(STYLE)
    _, found, rest = style.partition(_DARK)
    dark = f"@media (prefers-color-scheme:dark){{:root{{{rest.partition('}')[0]}}}}}" if found else ""
    style = f"{style}{dark}main>h3{{margin:24px 0 4px}}"
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return html_page(policy, f"<style>{style}</style>", body, escape(printable(title)))


PAGE = "index.html"
_LOCK = ".writing"
"""File in a folder that is being written. A kill leaves the file there, without its lock."""


def check_place(out: Path, single_file: bool) -> None:
    """Check that a report overwrites nothing but a report.

    Raises ``UsageError`` if the place holds something else, and ``LmmsEvalError`` if it cannot be read.
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
        raise UsageError(f"{out} holds something other than a report: give --out another name")


@contextlib.contextmanager
def writing_alone(folder: Path) -> Iterator[None]:
    """Lock a folder, so that two processes do not mix the pieces of their reports.

    Raises ``UsageError`` if another process writes to it, and ``LmmsEvalError`` if it cannot be made or written.
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
    """Lock the file and return whether it is ours. Another process may have unlinked it in between.

    On a file system without locks, it counts as ours.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return path.exists() and os.path.samestat(os.fstat(handle), path.stat())


Media = Literal["thumbnails", "full", "none"]
"""Media in a report: thumbnails, the originals too, or no media."""

_DERIVED = frozenset({"messages", "asked"})
"""Keys of texts that contain prompts and answers: the conversation, and the prompt of a judge."""
_ANSWERS = frozenset({"resps", "filtered_resps", "raw_resps", "thoughts"})


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of a report: the samples that it holds, and what it shows of them.

    Raises ``UsageError`` if the limit is not a positive number.
    """

    media: Media = "thumbnails"
    only_failed: bool = False
    """True if the report only holds samples that failed."""
    choice: Choice = field(default_factory=Choice)
    """Choice of samples by ``--ids`` and ``--where``."""
    limit: int | None = None
    """Most samples of each task."""
    redact: frozenset[str] = frozenset()
    """Keys of samples, documents and settings with values that are left out. Leaving out a prompt or an answer also
    leaves out the conversation and the judge's prompt."""
    allowed: tuple[Path, ...] = ()
    """Additional folders with media of foreign runs that are shown."""
    single_file: bool = False
    compare: bool = True
    """True if the runs are compared with each other."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit {self.limit}: give a number of samples from 1 on")
        redact = self.redact
        if redact & _ANSWERS:
            redact |= {"extracted", "thoughts"}
        if redact & (_ANSWERS | {"input"}):
            redact |= _DERIVED
        if "thoughts" in self.redact:  # the raw answers contain thoughts in tags
            redact |= {"resps", "raw_resps"}
        object.__setattr__(self, "redact", redact)
