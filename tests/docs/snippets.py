"""Blocks of a page, run in its order in a folder of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lmms_eval.compare.gate import read_policy
from lmms_eval.config import load_configs, parse_flags
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.describing import describe
from lmms_eval.tasks.general_bench.data.forms import load_field_maps
from lmms_eval.utils.prices import read_prices
from tests.docs.pages import ROOT, Block
from tests.docs.services import commands_of, stopped_after

LANGUAGES = ("bash", "console", "python", "yaml")
"""Blocks of these are run, or say why they are not."""
REASONS = (
    "it makes an environment",
    "it takes hours",
    "it takes minutes",
    "needs a GPU",
    "needs a key",
    "needs data of the benchmark",
    "needs weights",
)
"""Reasons for which a block is not run here."""
TIMEOUT_S = 300
_MARK = re.compile(r"(not run|run by|file|read as|run first|prints|exit code|stopped after)(?:: (.*))?")
BEGINNINGS = ("not", "run", "read", "file", "exit", "stop")
"""A comment before a block that begins so is meant as a mark."""
_NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def marked(block: Block) -> tuple[str, str]:
    """Return how a block is tested: the word of its mark and what stands behind it; two empty texts without one."""
    found = _MARK.fullmatch(block.mark)
    return (found[1], found[2] or "") if found else ("", "")


def fault_of_mark(block: Block) -> str:
    """Return what is wrong with a block's mark; empty if nothing is."""
    word, text = marked(block)
    if word == "not run" and text not in REASONS:
        return f"{block.place}: {text!r} is none of the reasons {REASONS}"
    if word == "run by":
        test = ROOT / text
        if not test.is_file() or block.page.name not in test.read_text(encoding="utf-8"):
            return f"{block.place}: {text} is no test that reads this page"
    if word == "read as" and text not in READERS:
        return f"{block.place}: nothing reads {text!r}; known: {sorted(READERS)}"
    if word == "exit code" and not text.isdigit():
        return f"{block.place}: {text!r} is no exit code"
    if word == "stopped after" and not text:
        return f"{block.place}: name the text that is printed when the command can be used"
    if not word and (block.mark.startswith(BEGINNINGS) or block.language == "yaml"):
        return (
            f"{block.place}: write before the block <!-- file: NAME -->, <!-- read as: KIND -->, <!-- run by: TEST --> "
            f"or <!-- not run: REASON -->, not {block.mark!r}"
        )
    return ""


class Folder:
    """Folder in which the blocks of a page run: as a clone of the repository, whose examples are copies."""

    def __init__(self, path: Path, addresses: Mapping[str, str]) -> None:
        self.path = path
        self.addresses = addresses
        """Addresses of the pages, and those of servers that are there."""
        shutil.copytree(ROOT / "examples", path / "examples")
        for name in ("benchmarks", "lmms_eval", "tests", "Makefile", "pyproject.toml", "constraints.txt"):
            (path / name).symlink_to(ROOT / name)
        (path / "home").mkdir()
        _environment(path / "venv")
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(path / "home"),
            "BROWSER": "true",
            "VENV": "venv",
            "XDG_STATE_HOME": str(path / "state"),
            "LMMS_EVAL_PACKS": str(path / "packs"),
            "HF_HUB_OFFLINE": "1",
            "NO_COLOR": "1",
            "OMP_NUM_THREADS": "1",
            "OPENAI_API_KEY": "test-key",
        }

    def run(self, language: str, text: str) -> subprocess.CompletedProcess[str]:
        """Run commands or a program to its end."""
        text = self._here(text)
        words = [sys.executable, "-c", text] if language == "python" else ["bash", "-euo", "pipefail", "-c", text]
        return subprocess.run(
            words,
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def stop(self, text: str, commands: str) -> None:
        """Run each command until it has printed the text, and end it by Ctrl-C."""
        for command in commands_of(self._here(commands)):
            code, printed = stopped_after(text, command, self.path, self.environment)
            assert code == 0, f"{command}: exit code {code} after Ctrl-C:\n{printed}"

    def _here(self, text: str) -> str:
        for address, there in self.addresses.items():
            text = text.replace(address, there)
        return text

    def file(self, name: str, text: str) -> Path:
        """Write a block into a file."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file


def _environment(path: Path) -> None:
    """Make this environment stand where ``make`` looks for its own, with nothing left to install."""
    path.mkdir()
    for entry in Path(sys.prefix).iterdir():
        if not entry.name.startswith(".ready"):
            (path / entry.name).symlink_to(entry)
    for extras in ("dev", "metrics,plots"):
        (path / f".ready-{extras}").touch()


def plain(text: str) -> list[str]:
    """Return the lines of an output without what differs between machines and moments: numbers, rules, spaces."""
    lines = (" ".join(re.sub(r"[-─|]+", " ", _NUMBER.sub("0", line)).split()) for line in text.splitlines())
    return [line for line in lines if line.strip(": ")]


def missing_lines(shown: str, printed: str) -> list[str]:
    """Return the lines of a block of output that were not printed, in this order; one may be cut by three dots."""
    lines = iter(plain(printed))
    return [line for line in plain(shown) if line != "..." and not any(_is(line, other) for other in lines)]


def _is(shown: str, printed: str) -> bool:
    return printed.startswith(shown.removesuffix("...")) if shown.endswith("...") else printed == shown


def _task(file: Path) -> None:
    """Read a task or a group as a run would choose it."""
    (own,) = re.findall(r"^(?:task|group): (\w+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    folder = file.parent / f"{file.stem}_folder"
    shutil.copytree(ROOT / "examples" / "task", folder)
    shutil.copyfile(file, folder / "snippet.yaml")
    described = describe(own, Catalogue(include_paths=[folder]))
    assert described.parts, file


READERS: dict[str, Callable[[Path], object]] = {
    "prices": read_prices,
    "policy of the gate": read_policy,
    "configuration": lambda file: load_configs(parse_flags(["--config", str(file)])),
    "field maps": load_field_maps,
    "task": _task,
}
"""Readers of files that no command of the page takes."""


def chosen(found: Sequence[Block]) -> Iterator[Block]:
    """Choose the blocks of a page that its test runs, reads or compares."""
    for block in found:
        word, _ = marked(block)
        if word not in ("", "not run", "run by") or (block.language in LANGUAGES and not word):
            yield block
