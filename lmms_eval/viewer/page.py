"""The one HTML file of a report, and the rules by which browsers may load anything into it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from lmms_eval.errors import LmmsEvalError

_BUNDLE = Path(__file__).with_name("bundle")
SCRIPT, STYLE = "app.js", "app.css"


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
<title>lmms-eval report</title>
{head}
</head>
<body>
<div id="app"></div>
<noscript>This report is drawn by a script that lies beside it: allow scripts to read it.</noscript>
{body}
</body>
</html>
"""
