"""Update ``constraints.txt``: one version of each package for all Pythons and systems, with markers if they differ.

``make constraints`` keeps what the file has and adds what is missing; ``make constraints UPGRADE=1`` takes the newest.
``python -m release.constraints --check`` resolves the package with the file for every Python that it promises, and
installs nothing: each package must be in the file, and have a wheel unless ``SOURCES`` names it.
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
from typing import Any

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
SOURCES = ("docopt", "editdistance", "jieba", "langdetect", "pwinput", "rouge-score", "zhconv", "zss")
"""Packages without a wheel for some Python. All but ``editdistance`` are pure Python, so pip builds them anywhere."""
PLATFORM = "x86_64-unknown-linux-gnu"
"""Platform of the check."""
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
    out = BUILD / "resolved.txt"
    out.write_text(FILE.read_text(encoding="utf-8"), encoding="utf-8")
    how = ["--universal", "--python-version", OLDEST, *(["--upgrade"] if upgrade else [])]
    return _compile(uv, out, [*how, *(f"--extra={name}" for name in extras)], beside)


def _compile(uv: Path, out: Path, how: Sequence[str], beside: Sequence[str]) -> list[str]:
    """Resolve the package and those ``beside`` it into a file. Versions that the file holds already are kept."""
    more = out.with_suffix(".in")
    more.write_text("".join(f"{name}\n" for name in beside), encoding="utf-8")
    words = [uv, "pip", "compile", "-q", "--python", sys.executable, "--no-header", "--no-annotate", *how]
    command = [str(word) for word in (*words, "-o", out, ROOT / "pyproject.toml", more)]
    subprocess.run(command, cwd=ROOT, check=True, env=_environment(os.environ))
    return out.read_text(encoding="utf-8").splitlines()


def promised(project: Mapping[str, Any]) -> list[str]:
    """Return the Pythons that the metadata promise: the lowest one and each of the classifiers."""
    listed = [line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: 3\.\d+$", line)]
    return [OLDEST, *(version for version in listed if not OLDEST.startswith(f"{version}."))]


def pins(python: str, file: Path = FILE) -> dict[str, str]:
    """Read the versions that the file gives for a Python on Linux, by name. Raises ``ValueError`` if it gives two."""
    from packaging.requirements import Requirement  # `make constraints` runs without an environment

    full = python if python.count(".") == 2 else f"{python}.0"
    where = {
        "python_version": full.rpartition(".")[0], "python_full_version": full, "sys_platform": "linux",
        "platform_machine": "x86_64", "platform_python_implementation": "CPython", "implementation_name": "cpython",
        "extra": "",
    }  # fmt: skip
    found: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(where):
            if pin.name in found:
                raise ValueError(f"{file.name} gives two versions of {pin.name} for Python {python}")
            found[pin.name] = str(pin.specifier).removeprefix("==")
    return found


def unpinned(resolved: Iterable[str], pinned: Mapping[str, str]) -> list[str]:
    """Return the resolved packages that are not the pinned ones, without those of a build of torch."""
    found = [name for line in resolved for name in [line.strip()] if name and not _OF_BUILDS.match(name)]
    return [line for line in found if pinned.get(line.partition("==")[0]) != line.partition("==")[2].partition("+")[0]]


def check(uv: Path, python: str, extras: Sequence[str]) -> int:
    """Resolve the package with the file for one Python, and return the number of packages.

    Raises:
        ValueError: a package is not in the file with its version.
        subprocess.CalledProcessError: there is no solution, or a package has no wheel; ``uv`` has printed which.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    out = BUILD / f"python-{python}.txt"
    out.unlink(missing_ok=True)
    pinned = pins(python)
    wheels = [f"--only-binary={name}" for name in pinned if name not in SOURCES]
    how = ["--python-version", python, "--python-platform", PLATFORM, "--constraints", str(FILE), *wheels]
    resolved = _compile(uv, out, [*how, *(f"--extra={name}" for name in extras)], BESIDE)
    if wrong := unpinned(resolved, pinned):
        raise ValueError(f"Python {python}: not in {FILE.name}: {', '.join(wrong)}; run `make constraints`")
    return len(resolved)


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that would add this machine's package sources to the result."""
    return {key: value for key, value in given.items() if key not in ("UV_FIND_LINKS", "PIP_FIND_LINKS")}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="the newest versions, not those of the file")
    parser.add_argument("--check", action="store_true", help="resolve for every promised Python, and write nothing")
    given = parser.parse_args(words)
    python = BUILD / "uv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(BUILD / "uv")], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "uv"], check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    together = [name for name in project["optional-dependencies"] if name not in (*ENGINES, *ALONE)]
    uv = python.with_name("uv")
    if given.check:
        counts = {version: check(uv, version, together) for version in promised(project)}
        print(f"{FILE.name}: {', '.join(f'Python {version}: {count}' for version, count in counts.items())} packages")
        return 0
    listings = [
        resolve(uv, together, BESIDE, given.upgrade), *(resolve(uv, [name], (), given.upgrade) for name in ALONE)
    ]  # fmt: skip
    lines = merged(listings)
    FILE.write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")
    print(f"{FILE.name}: {len(lines)} versions")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
