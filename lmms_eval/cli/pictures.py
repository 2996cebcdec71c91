"""Pictures in the terminal, by the protocol of kitty or iTerm, where the terminal says that it has one."""

from __future__ import annotations

import base64
import io
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

Protocol = Literal["kitty", "iterm"]
LONGEST_SIDE = 512
"""Pixels of a thumbnail."""
MOST_BYTES = 64 << 20
"""Of a file that is opened."""
MOST_PICTURES = 8
_CHUNK = 4096


def protocol(environ: Mapping[str, str], is_terminal: bool) -> Protocol | None:
    """Tell how the terminal shows pictures; ``None`` where it does not say, and inside of multiplexers."""
    if not is_terminal or "TMUX" in environ or environ.get("TERM", "").startswith(("screen", "tmux")):
        return None
    if "KITTY_WINDOW_ID" in environ or environ.get("TERM") == "xterm-kitty":
        return "kitty"
    return "iterm" if environ.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm") else None


def show_pictures(paths: Iterable[str]) -> None:
    """Show thumbnails of local pictures, as far as the terminal can; files that are none are passed over."""
    how = protocol(os.environ, sys.stdout.isatty())
    if how is None:
        return
    for path in list(paths)[:MOST_PICTURES]:
        if (data := thumbnail(Path(path))) is not None:
            sys.stdout.write(escape_sequence(how, data) + "\n")
    sys.stdout.flush()


def thumbnail(path: Path) -> bytes | None:
    """Make a PNG of at most ``LONGEST_SIDE`` pixels; ``None`` if the file is no picture that can be opened."""
    from PIL import Image

    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_BYTES:
            return None
        with Image.open(path) as picture:
            picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            made = io.BytesIO()
            picture.convert("RGB").save(made, "PNG")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return made.getvalue()


def escape_sequence(how: Protocol, png: bytes) -> str:
    """Write a picture as the terminal wants it; of the file nothing but its pixels goes there."""
    text = base64.b64encode(png).decode("ascii")
    if how == "iterm":
        return f"\x1b]1337;File=inline=1;size={len(png)}:{text}\x07"
    chunks = [text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK)]
    first = ["a=T,f=100,q=2,"] + [""] * (len(chunks) - 1)
    more = [1] * (len(chunks) - 1) + [0]
    return "".join(f"\x1b_G{keys}m={flag};{chunk}\x1b\\" for keys, flag, chunk in zip(first, more, chunks, strict=True))
