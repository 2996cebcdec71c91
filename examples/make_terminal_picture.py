"""Make the README's picture of a terminal: ``python examples/make_terminal_picture.py [FOLDER]``.

Runs a small model in a pseudo-terminal, kills it midway, gives the same command again, and draws the final screen of
the terminal in headless Chromium. Needs Playwright and rich (extra ``dev``) and Chromium.
"""

from __future__ import annotations

import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import time
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

from make_screenshots import DEFAULT_FOLDER, REPOSITORY, WIDTH, chromium_page, save
from PIL import Image

COLUMNS, ROWS = 108, 60
COMMAND = (
    "lmms-eval --model hf --model_args pretrained=embedded,dtype=float32,batch_size=1 --tasks megabench_demo "
    "--gen_kwargs max_new_tokens=96 --output_path out"
)
SHOWN = COMMAND.replace(" --tasks", " \\\n      --tasks")
KILLED_AT = re.compile(rb"\b[2-5]\d/59")
"""The run is killed when the progress display shows this text."""
LINES = 40
"""Number of lines to draw; the lines below are the rest of the breakdown."""
PATIENCE_S = 300
PAGE = """<meta charset="utf-8"><style>
body {{ margin: 0; background: #16181d; color: #d7dae0 }}
pre {{ margin: 0; padding: 20px 24px; font: 14px/20px "DejaVu Sans Mono", monospace;
  white-space: pre-wrap; overflow-wrap: anywhere }}
</style>{body}"""
_ERASED = re.compile(r"\x1b\[[0-9]*[KJ]")
_MOVES = re.compile(r"\x1b\[\??[0-9;]*[A-HJKSTfhlnr]")


def run(folder: Path, is_killed: bool) -> str:
    """Run the command in a terminal, kill it midway if asked to, and return everything that it wrote."""
    end, inner = pty.openpty()
    ioctl(inner, TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    words = [sys.executable, "-m", *COMMAND.replace("lmms-eval", "lmms_eval", 1).split()]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
    )
    os.close(inner)
    written, deadline = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            part = os.read(end, 65536)
        except OSError:  # the program has ended
            break
        written += part
        if is_killed and KILLED_AT.search(written):
            process.kill()
            is_killed = False
    process.wait(PATIENCE_S)
    os.close(end)
    return written.decode()


def last_state(written: str) -> str:
    """Return the final lines of the screen: if a display overwrote itself, only its last state."""
    lines = []
    for line in written.replace("\r\n", "\n").split("\n"):
        states = [state for state in _ERASED.sub("", line).split("\r") if _MOVES.sub("", state).strip()]
        lines.append(_MOVES.sub("", states[-1]) if states else "")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def drawn(text: str) -> str:
    """Return coloured text as an HTML page."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text), soft_wrap=True, highlight=False)
    body = console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
    return PAGE.format(body=body)


def make(folder: Path) -> None:
    """Make the picture, replacing an existing one."""
    prompt = "\x1b[1;32m$\x1b[0m "
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch).resolve()
        first, second = (last_state(run(place, is_killed)) for is_killed in (True, False))
    text = f"{prompt}{SHOWN}\n{first}\nKilled\n{prompt}{SHOWN}\n{second}".replace(f"{place}/", "")
    with chromium_page() as page:
        page.set_content(drawn(text))
        picture = page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": LINES * 20 + 30}, full_page=True)
    path = folder / "terminal.webp"
    folder.mkdir(parents=True, exist_ok=True)
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    sys.stdout.write(f"{path}: {image.width}x{image.height}, {save(image, path):,} bytes\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER)
