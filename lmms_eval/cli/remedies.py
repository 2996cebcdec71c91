"""Commands that install what is missing: ``lmms-eval doctor --fix`` prints them and never runs them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from urllib.parse import unquote, urlsplit

from lmms_eval.utils.installed import package_version

PACKAGE = "lmms_eval"
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
_INSTALL = {
    "apt-get": "apt-get install -y", "dnf": "dnf install -y", "zypper": "zypper install -y",
    "pacman": "pacman -S", "brew": "brew install",
}  # fmt: skip
"""Install commands of the systems' package managers."""
_JAVA = {
    "apt-get": "default-jre-headless", "dnf": "java-latest-openjdk-headless", "zypper": "java-21-openjdk-headless",
    "pacman": "jre-openjdk-headless", "brew": "openjdk",
}  # fmt: skip
_BUBBLEWRAP = dict.fromkeys(("apt-get", "dnf", "zypper", "pacman"), "bubblewrap")


def missing_parts(requirements: Sequence[str]) -> dict[str, list[str]]:
    """Return the missing packages of each extra. The key of packages that every run needs is empty."""
    parts: dict[str, list[str]] = {}
    for line in requirements:
        package, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        part = extra[1] if extra else ""
        if package is None or part in ("all", "dev"):
            continue
        lacking = parts.setdefault(part, [])
        if package_version(package[1]) is None:
            lacking.append(package[1])
    return parts


def remedy_lines(requirements: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the lines of a shell script: a comment with what is missing, and the command that installs it."""
    lines: list[str] = []
    for reason, command in (*_of_packages(requirements), *_of_scoring(environ), *_of_sandbox()):
        lines += [f"# {reason}", command]
    return lines or ["# nothing is missing"]


def _of_packages(requirements: Sequence[str]) -> Iterator[tuple[str, str]]:
    if not requirements:
        yield "lmms_eval is not installed as a package; in its source folder:", f"{_installer()} -e ."
    for part, packages in sorted(missing_parts(requirements).items()):
        if packages:
            yield f"{part or 'needed by every run'}: {', '.join(packages)}", f"{_installer()} {_source(part)}"


def _installer() -> str:
    """Return the command that installs into the environment of this process."""
    python = shlex.quote(sys.executable)
    return f"{python} -m pip install" if importlib.util.find_spec("pip") else f"uv pip install --python {python}"


def _source(part: str) -> str:
    """Return the source that this package was installed from, with the extra."""
    extra = f"[{part}]" if part else ""
    try:
        stated = json.loads(metadata.distribution(PACKAGE).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        stated = {}
    address = urlsplit(str(stated.get("url", "")))
    if address.scheme != "file":
        return shlex.quote(f"{PACKAGE}{extra}")
    folder = shlex.quote(f"{unquote(address.path)}{extra}")
    return f"-e {folder}" if stated.get("dir_info", {}).get("editable") else folder


def _of_scoring(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    from lmms_eval.tasks._task_utils.linguistic import PACKAGES, find_package

    absent = [package.name for package in PACKAGES if not find_package(package, environ.get("NLTK_DATA", ""))]
    if absent:
        yield f"data of NLTK: {', '.join(absent)}", "lmms-eval fetch nltk"
    if shutil.which("java") is None:
        yield "Java, for BLEU-4 and CIDEr of captions", _of_system(_JAVA)


def _of_sandbox() -> Iterator[tuple[str, str]]:
    from lmms_eval.sandbox.launcher import not_confined
    from lmms_eval.sandbox.layers import probe_layers

    if not_confined(probe_layers()) and shutil.which("bwrap") is None:
        yield "a sandbox for programs of models", _of_system(_BUBBLEWRAP)


def _of_system(names: Mapping[str, str]) -> str:
    """Return the command of this system's package manager. ``names`` holds the package's name in each manager."""
    for manager, package in names.items():
        if shutil.which(manager):
            as_root = "" if manager == "brew" or os.geteuid() == 0 else "sudo "
            return f"{as_root}{_INSTALL[manager]} {package}"
    return "# no package manager that is known here: install it by hand"
