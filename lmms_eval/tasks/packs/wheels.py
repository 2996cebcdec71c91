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
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from lmms_eval.errors import DataError, MissingOptionalDependencyError, UsageError
from lmms_eval.tasks._task_utils.archives import ArchiveBounds, alone, rename, unpacked
from lmms_eval.tasks.packs.store import DOWNLOADING, USE, Pack, held, packs_folder, sweep

BOUNDS = ArchiveBounds(entries=200_000, ratio=100, free_bytes=512 * 2**20)
"""Limits of a wheel: that of lm-eval 0.4.13 has 15,586 files of 14 MB."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LICENCES = re.compile(r"(licen[cs]e|copying|notice)", re.IGNORECASE)
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(==[A-Za-z0-9.!+_-]+)?")
_PIP = (
    "download", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--disable-pip-version-check",
    "--no-input", "--retries", "2", "--timeout", "20", "--dest",
)  # fmt: skip
_LEFT_OUT = re.compile(r"^(ERROR|error): | \(from versions: .*")


@contextlib.contextmanager
def made_pack(what: str, name: str = "", tasks_folder: str = "") -> Iterator[Pack]:
    """Make the pack of a package, a wheel or a folder. Its files are in place; the table of packs does not change.

    Files of a pack that the block does not put into the table are removed when it ends.

    Args:
        what: ``NAME`` or ``NAME==VERSION`` of the package index, the path of a wheel, or a folder.
        name: name of the pack; empty: that of the package.
        tasks_folder: path of the task files below the package; empty: ``PACKAGE/tasks``.

    Raises:
        UsageError: it is something else, or a folder without a name. MissingOptionalDependencyError: neither pip nor uv
            is here. DataError: it cannot be downloaded, read or unpacked, or holds no task files.
    """
    _check_place(name, tasks_folder)
    path = Path(what).expanduser()
    if path.is_dir():
        yield _pack_of_folder(path, name, tasks_folder)
        return
    root = packs_folder()
    with alone(root):
        sweep()
    try:
        with contextlib.ExitStack() as opened:
            if what.endswith(".whl"):
                pack = _pack_of_wheel(path, name, tasks_folder, opened)
            elif _REQUIREMENT.fullmatch(what):
                wheel = _downloaded(what, opened.enter_context(_downloading(root)))
                pack = replace(_pack_of_wheel(wheel, name, tasks_folder, opened), requirement=what.partition("==")[0])
            else:
                raise UsageError(f"packs add {what}: give NAME, NAME==VERSION, a wheel (.whl) or a folder that exists")
            yield pack
    finally:
        with alone(root):
            sweep()


def _check_place(name: str, tasks_folder: str) -> None:
    if name and not _NAME.fullmatch(name):
        raise UsageError(f"--name {name!r}: a pack's name has up to 64 letters, digits and . _ -")
    place = PurePosixPath(tasks_folder)
    if place.is_absolute() or ".." in place.parts:
        raise UsageError(f"--tasks_folder {tasks_folder}: give a path below the package, such as PACKAGE/tasks")


@contextlib.contextmanager
def _downloading(root: Path) -> Iterator[Path]:
    """Make a folder for a download. If this process is killed, the next change of the packs removes it."""
    with contextlib.ExitStack() as opened:
        with alone(root):
            try:
                folder = opened.enter_context(tempfile.TemporaryDirectory(dir=root, prefix=DOWNLOADING))
            except OSError as error:
                raise DataError(f"packs add: {root} cannot be written: {error.strerror or error}") from error
            opened.enter_context(held(Path(folder)))
        yield Path(folder)


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
        reason = f"pip was ended by signal {-done.returncode}" if done.returncode < 0 else _reason(done.stderr)
        raise DataError(f"packs add {requirement}: {reason}; a local wheel works too: packs add FILE.whl")
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


def _pack_of_wheel(wheel: Path, name: str, tasks_folder: str, opened: contextlib.ExitStack) -> Pack:
    """Unpack the task files and the licence of a wheel, unless the folder of the same wheel is there.

    The folder stays until ``opened`` is closed, even if another process changes the packs.
    """
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
    _check_place(name, "")
    folder = f"{name}/{version}-{sha256[:12]}"
    root = packs_folder()
    made = root / folder
    with alone(root), unpacked(wheel, root, "get it again", BOUNDS) as content:
        tasks = _given(tasks_folder) or _tasks_below(content, wheel.name)
        _check_tasks(content / tasks, f"{wheel.name}: {tasks}")
        licence = next((str(path.relative_to(content)) for path in _licences(content)), "")
        models = sorted({path.stem for path in content.glob("*/models/**/*.py") if not path.stem.startswith("_")})
        if not made.is_dir():
            made.parent.mkdir(parents=True, exist_ok=True)
            _keep_only(content, (tasks, licence))
            (content / USE).touch()
            content.chmod(0o755)  # temporary folders are closed to others
            rename(content, made)
            content.mkdir()  # the unpacker removes it
        opened.enter_context(held(made))
    return Pack(name, version, wheel.name, sha256, folder, tasks, licence, _now(), models=tuple(models))


def _pack_of_folder(folder: Path, name: str, tasks_folder: str) -> Pack:
    """Return the record of a folder or checkout, which stays in its place."""
    own = folder.expanduser().resolve()
    if not name:
        raise UsageError(f"packs add {folder}: name the pack: --name NAME")
    tasks = _given(tasks_folder) or _tasks_below(own, str(folder))
    _check_tasks(own / tasks, str(own / tasks))
    licence = next((path.name for path in sorted(own.iterdir()) if _LICENCES.match(path.name)), "")
    return Pack(name, "", str(own), "", str(own), tasks, licence, _now())


def _given(tasks_folder: str) -> str:
    """Return the path that ``--tasks_folder`` gives in its shortest form; empty if it is not given."""
    return PurePosixPath(tasks_folder).as_posix() if tasks_folder else ""


def _check_tasks(folder: Path, place: str) -> None:
    if next(folder.rglob("*.yaml"), None) is None:
        raise DataError(f"{place} holds no YAML file; name the folder: --tasks_folder PATH")


def _tasks_below(folder: Path, what: str) -> str:
    """Return the path of the folder ``tasks`` of a package, or of the folder itself if it holds the task files."""
    places = [place for pattern in ("tasks", "*/tasks", "src/*/tasks") for place in sorted(folder.glob(pattern))]
    found = [place for place in places if next(place.rglob("*.yaml"), None) is not None]
    if len(found) == 1:
        return found[0].relative_to(folder).as_posix()
    if (
        not found
        and next(folder.rglob("*.yaml") if folder.name == "tasks" else folder.glob("*.yaml"), None) is not None
    ):
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
