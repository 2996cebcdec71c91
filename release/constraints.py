"""Update ``constraints.txt``: one version of each package for all Pythons and systems, with markers if they differ.

``make constraints`` keeps what the file has and adds what is missing; ``make constraints UPGRADE=1`` takes the newest.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from release.check import TOOLS

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "constraints"
FILE = ROOT / "constraints.txt"
HEAD = """\
# Versions that installs are held to, so that they repeat: `make constraints`. torch has no local part, and no package
# of CUDA is listed: each machine takes its own build."""
OLDEST = "3.11.0"
"""Lowest supported Python, that of ``requires-python``."""
ENGINES = ("sglang", "t2i", "vllm")
"""Extras that bring their own torch, or that ``constraints-engines.txt`` pins."""
ALONE = ("trackio",)
"""Extras that conflict with the newest versions of the others: they are resolved separately."""
BESIDE = ("torchvision", *TOOLS)
"""Packages that ``make`` installs by name."""
_OF_BUILDS = re.compile(r"(nvidia-(?!ml-py)|cuda-|triton\b)")
_LINE = re.compile(r"(?P<name>[a-z0-9][a-z0-9.-]*)==(?P<version>[^+;\s]+)(?:\+[^;\s]+)?(?P<marker> ; .+)?")


def merged(listings: Iterable[Sequence[str]]) -> list[str]:
    """Merge resolved listings: packages of earlier listings win, versions lose their local part.

    Raises:
        ValueError: a line is not a pinned version.
    """
    lines: dict[str, list[str]] = {}
    for listing in listings:
        found: dict[str, list[str]] = {}
        for line in listing:
            read = _LINE.fullmatch(line.strip())
            if read is None:
                raise ValueError(f"{line!r} pins no version")
            if not _OF_BUILDS.match(read["name"]):
                pin = f"{read['name']}=={read['version']}{(read['marker'] or '').replace(' ; ', '; ')}"
                found.setdefault(read["name"], []).append(pin)
        lines = found | lines
    return [line for name in sorted(lines) for line in lines[name]]


def resolve(uv: Path, extras: Sequence[str], beside: Sequence[str], upgrade: bool) -> list[str]:
    """Resolve the package with extras for all systems, keeping the file's versions if possible."""
    BUILD.mkdir(parents=True, exist_ok=True)
    out, more = BUILD / "resolved.txt", BUILD / "beside.in"
    out.write_text(FILE.read_text(encoding="utf-8"), encoding="utf-8")
    more.write_text("".join(f"{name}\n" for name in beside), encoding="utf-8")
    words: list[str | Path] = [
        uv, "pip", "compile", "-q", "--universal", "--python-version", OLDEST, "--python", sys.executable,
        "--no-header", "--no-annotate", *(f"--extra={name}" for name in extras), *(["--upgrade"] if upgrade else []),
        "-o", out, ROOT / "pyproject.toml", more,
    ]  # fmt: skip
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True, env=_environment(os.environ))
    return out.read_text(encoding="utf-8").splitlines()


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that would add this machine's package sources to the result."""
    return {key: value for key, value in given.items() if key not in ("UV_FIND_LINKS", "PIP_FIND_LINKS")}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="the newest versions, not those of the file")
    upgrade = parser.parse_args(words).upgrade
    python = BUILD / "uv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(BUILD / "uv")], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "uv"], check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    together = [name for name in project["optional-dependencies"] if name not in (*ENGINES, *ALONE)]
    uv = python.with_name("uv")
    listings = [resolve(uv, together, BESIDE, upgrade), *(resolve(uv, [name], (), upgrade) for name in ALONE)]
    lines = merged(listings)
    FILE.write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")
    print(f"{FILE.name}: {len(lines)} versions")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
