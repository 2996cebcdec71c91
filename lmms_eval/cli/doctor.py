"""``lmms-eval doctor``: reports what a run would find on this machine.

``--fix`` prints the commands that install what is missing, and never runs them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import emit
from lmms_eval.cli.version import git_state
from lmms_eval.errors import UsageError
from lmms_eval.utils.installed import own_requirements, package_version, required_packages

PACKAGE = "lmms_eval"
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
_SHOWN_PACKAGES = ("torch", "transformers", "accelerate", "datasets", "pyarrow", "aiohttp", "openai", "av", "pillow")
KEYS = (
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GOOGLE_API_KEY",
    "DASHSCOPE_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "HF_TOKEN",
)
_GIB = 1024**3


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("doctor")
    parser.add_argument(
        "--fix", action="store_true", help="print (never run) the commands that would install what is missing"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    given = parser.read(arguments)
    if given.fix and given.json:
        raise UsageError("--fix --json: the commands of --fix are a shell script; give one of the two")
    if given.fix:
        emit(remedy_lines(own_requirements(), os.environ))
    elif given.json:
        found = doctor_sections(os.environ).items()
        emit(json.dumps({"sections": {title: [fact.plain() for fact in facts] for title, facts in found}}, indent=2))
    else:
        emit(doctor_lines(os.environ))
    return 0


class Fact(Struct, frozen=True):
    """One line of the report."""

    name: str
    """Empty if the value says it all."""
    value: str
    is_present: bool | None = None
    """Whether the part is there, and can be used; ``None`` if it is neither there nor absent, such as an amount."""
    link: str = ": "
    """The text between name and value in a line."""

    @property
    def line(self) -> str:
        return f"{self.name}{self.link}{self.value}" if self.name else self.value

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "is_present": self.is_present}


def doctor_lines(environ: Mapping[str, str]) -> list[str]:
    """Return the whole report. Keys are reported as present or absent; their values are never part of it."""
    lines: list[str] = []
    for title, facts in doctor_sections(environ).items():
        lines += [title, *(f"  {fact.line}" for fact in facts), ""]
    return lines[:-1]


def _package(name: str, version: str | None) -> Fact:
    return Fact(name, version or "absent", version is not None, " ")


def doctor_sections(environ: Mapping[str, str]) -> dict[str, list[Fact]]:
    """Return the report by section. The values of keys are never part of it."""
    home = Path(environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    own, git = package_version("lmms_eval"), git_state()
    return {
        "Software": [
            Fact("lmms-eval", own or "not installed (run from its source folder)", own is not None, " "),
            Fact("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}", True, " "),
            Fact("Git", git or "not a checkout", link=" "),
            *(_package(name, package_version(name)) for name in _SHOWN_PACKAGES),
        ],
        "Accelerators": _accelerators(),
        "Machine": [
            Fact("CPU cores", str(cores)),
            Fact("memory", f"{memory / _GIB:.1f} GiB, unused {free / _GIB:.1f} GiB"),
            _disk("current folder", Path.cwd()),
            _disk("HF home", home),
            _disk("temporary files", Path(environ.get("TMPDIR") or "/tmp")),
        ],
        "Optional parts": optional_parts(own_requirements()),
        "Scoring data": _scoring_data(environ),
        "Keys": [Fact(name, "present" if environ.get(name) else "absent", bool(environ.get(name))) for name in KEYS],
        "Sandbox": _sandbox(),
    }


def optional_parts(requirements: Sequence[str]) -> list[Fact]:
    """List the extras of the package: present, or missing with the command that installs them."""
    parts = {part: lacking for part, lacking in missing_parts(requirements).items() if part}
    if not parts:
        text = "lmms_eval is not installed as a package; pip install -e . in its source folder"
        return [Fact("unknown", text, False)]
    return [
        Fact(
            part,
            f"missing {', '.join(missing)}: pip install 'lmms_eval[{part}]'" if missing else "present",
            not missing,
        )
        for part, missing in sorted(parts.items())
    ]


def _scoring_data(environ: Mapping[str, str]) -> list[Fact]:
    from lmms_eval.tasks._task_utils.linguistic import PACKAGES, REMEDY, find_package

    stated = environ.get("NLTK_DATA", "")
    found: dict[str, tuple[Path | str | None, str]] = {
        f"NLTK {package.name}": (find_package(package, stated), f"absent, {REMEDY}") for package in PACKAGES
    }
    found["Java, for BLEU-4 and CIDEr of captions"] = shutil.which("java"), "absent, install a Java runtime"
    table, server = environ.get("LMMS_EVAL_GEOCODE_TABLE"), environ.get("LMMS_EVAL_GEOCODER")
    given = ", ".join(source for source in (table, server) if source)
    found["geocoder"] = given, "none, give --geocode_table FILE or --geocoder nominatim"
    return [Fact(name, str(place or remedy), bool(place)) for name, (place, remedy) in found.items()]


def _accelerators() -> list[Fact]:
    if importlib.util.find_spec("torch") is None:
        return [Fact("unknown", "torch is absent (API models need none)", False)]
    try:
        import torch
    except (ImportError, OSError) as error:
        return [Fact("unknown", f"torch cannot be loaded ({error})", False)]
    if not torch.cuda.is_available():
        return [Fact("", f"no CUDA device (torch built for {torch.version.cuda or 'CPU'})", False)]
    facts = [Fact("CUDA", str(torch.version.cuda), True, " ")]
    for index in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(index)
        facts.append(Fact(f"cuda:{index}", f"{device.name}, {device.total_memory / _GIB:.0f} GiB", True, " "))
    return facts


def _sandbox() -> list[Fact]:
    from lmms_eval.sandbox.layers import probe_layers
    from lmms_eval.sandbox.policy import REMEDY, not_confined

    layers = probe_layers()
    facts = [
        Fact(layer.name, f"{'active' if layer.active else 'not active'} ({layer.detail})", layer.active)
        for layer in layers
    ]
    if missing := not_confined(layers):
        text = f"refused: nothing confines their {' and '.join(missing)}; {REMEDY}"
        return [*facts, Fact("programs of models are", text, False, " ")]
    return [*facts, Fact("programs of models are", "run, confined", True, " ")]


def _disk(name: str, folder: Path) -> Fact:
    present = next((path for path in (folder, *folder.parents) if path.exists()), None)
    if present is None:
        return Fact(name, f"{folder}, does not exist", False)
    is_absent = "" if folder.exists() else ", does not exist yet"
    return Fact(name, f"{folder}, {shutil.disk_usage(present).free / _GIB:.1f} GiB free{is_absent}")


def missing_parts(requirements: Sequence[str]) -> dict[str, list[str]]:
    """Return the missing packages of each extra. The key of packages that every run needs is empty."""
    parts: dict[str, list[str]] = {}
    for package, part in required_packages(requirements):
        lacking = parts.setdefault(part, [])
        if package_version(package) is None:
            lacking.append(package)
    return parts


def remedy_lines(requirements: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the lines of a shell script: a comment with what is missing, and the command that installs it."""
    found = [text for remedy in _remedies(requirements, environ) for text in (f"# {remedy[0]}", remedy[1])]
    return found or ["# nothing is missing"]


def _remedies(requirements: Sequence[str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is missing, with the command that installs it."""
    from lmms_eval.sandbox.layers import probe_layers
    from lmms_eval.sandbox.policy import not_confined
    from lmms_eval.tasks._task_utils.linguistic import PACKAGES, find_package

    if not requirements:
        yield "lmms_eval is not installed as a package; in its source folder:", f"{_installer()} -e ."
    for part, packages in sorted(missing_parts(requirements).items()):
        if packages:
            yield f"{part or 'needed by every run'}: {', '.join(packages)}", f"{_installer()} {_source(part)}"
    absent = [package.name for package in PACKAGES if not find_package(package, environ.get("NLTK_DATA", ""))]
    if absent:
        yield f"data of NLTK: {', '.join(absent)}", "lmms-eval fetch nltk"
    if shutil.which("java") is None:
        yield "Java, for BLEU-4 and CIDEr of captions", _of_system(_JAVA)
    if not_confined(probe_layers()) and shutil.which("bwrap") is None:
        yield "a sandbox for programs of models", _of_system(_BUBBLEWRAP)


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


def _of_system(names: Mapping[str, str]) -> str:
    """Return the command of this system's package manager. ``names`` holds the package's name in each manager."""
    for manager, package in names.items():
        if shutil.which(manager):
            as_root = "" if manager == "brew" or os.geteuid() == 0 else "sudo "
            return f"{as_root}{_INSTALL[manager]} {package}"
    return "# no package manager that is known here: install it by hand"
