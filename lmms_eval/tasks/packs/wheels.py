"""Makes a pack from a wheel, which is downloaded but never installed or imported, or from a folder."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from lmms_eval.errors import DataError, MissingOptionalDependencyError, UsageError
from lmms_eval.tasks._task_utils.archives import alone, rename, unpacked
from lmms_eval.tasks.packs.store import DOWNLOADING, Pack, packs_folder

_LICENCES = re.compile(r"(licen[cs]e|copying|notice)", re.IGNORECASE)
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(==[A-Za-z0-9.!+_-]+)?")
_PIP = (
    "download", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--disable-pip-version-check",
    "--no-input", "--retries", "2", "--timeout", "20", "--dest",
)  # fmt: skip
_LEFT_OUT = re.compile(r"^(ERROR|error): |\s*\(from versions: .*")


def made_pack(what: str, name: str = "", tasks_folder: str = "") -> Pack:
    """Make the pack of a package, a wheel or a folder. Its files are in place; the table of packs does not change.

    Args:
        what: ``NAME`` or ``NAME==VERSION`` of the package index, the path of a wheel, or a folder.
        name: name of the pack; empty: that of the package.
        tasks_folder: path of the task files below the package; empty: ``PACKAGE/tasks``.

    Raises:
        UsageError: it is none of these, or a folder without a name. MissingOptionalDependencyError: neither pip nor uv
            is here. DataError: it cannot be downloaded, read or unpacked, or holds no task files.
    """
    path = Path(what).expanduser()
    if path.is_dir():
        return _pack_of_folder(path, name, tasks_folder)
    if what.endswith(".whl"):
        return _pack_of_wheel(path, name, tasks_folder)
    if not _REQUIREMENT.fullmatch(what):
        raise UsageError(f"packs add {what}: give NAME, NAME==VERSION, a wheel (.whl) or a folder that exists")
    root = packs_folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
        place = tempfile.TemporaryDirectory(dir=root, prefix=DOWNLOADING)
    except OSError as error:
        raise DataError(f"packs add: {root} cannot be written: {error.strerror or error}") from error
    with place as folder:
        wheel = _downloaded(what, Path(folder))
        return replace(_pack_of_wheel(wheel, name, tasks_folder), requirement=what.partition("==")[0])


def _downloaded(requirement: str, folder: Path) -> Path:
    """Download a wheel with pip, or with uv if pip is not here.

    The index is the one that pip is configured for. pip compares the file with the hash that the index states.
    """
    done = subprocess.run(
        [*_pip(), *_PIP, str(folder), requirement], capture_output=True, text=True, errors="replace", check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise DataError(f"packs add {requirement}: {_reason(done.stderr)}; a local wheel works too: packs add FILE.whl")
    return wheels[0]


def _pip() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    raise MissingOptionalDependencyError(
        "packs add: neither pip nor uv is here: python -m ensurepip installs pip; or give the path of a wheel"
    )


def _reason(errors: str) -> str:
    """Return what pip says about a failure, without the list of all versions."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        return "the file does not have the hash that the index states, so it was not used; try again later"
    if any("Retrying" in line or "connection" in line.casefold() for line in lines):
        return "the package index cannot be reached"
    said = [line for line in lines if line.casefold().startswith("error: ")]
    return "pip: " + _LEFT_OUT.sub("", (said or lines or ["no wheel was found"])[-1])


def _pack_of_wheel(wheel: Path, name: str, tasks_folder: str) -> Pack:
    """Unpack the task files and the licence of a wheel, unless the folder of the same wheel is there."""
    try:
        package, version, *_ = wheel.name.removesuffix(".whl").split("-")
    except ValueError:
        raise UsageError(f"{wheel}: the name of a wheel is PACKAGE-VERSION-...whl") from None
    try:
        with wheel.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{wheel} cannot be read: {error.strerror or error}") from error
    name = name or distribution_name(package)
    folder = f"{name}/{version}-{sha256[:12]}"
    root = packs_folder()
    made = root / folder
    with alone(root):
        archive = root / f".{sha256[:12]}.zip"  # the unpacker goes by the ending
        archive.unlink(missing_ok=True)
        archive.symlink_to(wheel.resolve())
        try:
            with unpacked(archive, root, "get it again") as content:
                tasks = tasks_folder.strip("/") or _tasks_below(content, wheel.name)
                if not any((content / tasks).rglob("*.yaml")):
                    raise DataError(f"{wheel.name}: {tasks} holds no YAML file; name the folder: --tasks_folder PATH")
                licence = next((str(path.relative_to(content)) for path in _licences(content)), "")
                if not made.is_dir():
                    made.parent.mkdir(parents=True, exist_ok=True)
                    _keep_only(content, (tasks, licence))
                    rename(content, made)
                    content.mkdir()  # the unpacker removes it
        finally:
            archive.unlink(missing_ok=True)
    return Pack(name, version, wheel.name, sha256, folder, tasks, licence, _now())


def _pack_of_folder(folder: Path, name: str, tasks_folder: str) -> Pack:
    """Return the record of a folder or checkout, which is used where it is."""
    own = folder.expanduser().resolve()
    if not name:
        raise UsageError(f"packs add {folder}: name the pack: --name NAME")
    tasks = tasks_folder.strip("/") or _tasks_below(own, str(folder))
    if not any((own / tasks).rglob("*.yaml")):
        raise DataError(f"{own / tasks} holds no YAML file; name the folder: --tasks_folder PATH")
    licence = next((path.name for path in sorted(own.iterdir()) if _LICENCES.match(path.name)), "")
    return Pack(name, "", str(own), "", str(own), tasks, licence, _now())


def _tasks_below(folder: Path, what: str) -> str:
    """Return the path of the folder ``tasks`` of a package, or of the folder itself if it holds the task files."""
    found = [place for place in sorted(folder.glob("*/tasks")) if next(place.rglob("*.yaml"), None) is not None]
    if len(found) == 1:
        return found[0].relative_to(folder).as_posix()
    if not found and folder.name == "tasks" and next(folder.rglob("*.yaml"), None) is not None:
        return "."
    names = ", ".join(place.relative_to(folder).as_posix() for place in found)
    problem = f"has several folders of tasks: {names}" if found else "has no folder PACKAGE/tasks with YAML files"
    raise DataError(f"{what} {problem}; name the one that is meant: --tasks_folder PATH")


def _licences(folder: Path) -> Iterator[Path]:
    for place in sorted(folder.glob("*.dist-info")):
        yield from (path for path in sorted(place.rglob("*")) if path.is_file() and _LICENCES.match(path.name))


def _keep_only(folder: Path, paths: Sequence[str]) -> None:
    """Remove everything below a folder except some paths."""
    kept = [folder / path for path in paths if path]
    for base, folders, files in os.walk(folder, topdown=False):
        here = Path(base)
        if any(here.is_relative_to(path) for path in kept):
            continue
        for name in files:
            if here / name not in kept:
                (here / name).unlink()
        for name in folders:
            with contextlib.suppress(OSError):  # it holds something that is kept
                (here / name).rmdir()


def distribution_name(text: str) -> str:
    """Return the name of a package as indexes write it: lower case, with ``-`` between its parts."""
    return re.sub(r"[-_.]+", "-", text).lower()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
