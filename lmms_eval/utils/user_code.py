"""The frames of an error that are in the user's code: a model, a plugin, a task's functions."""

from __future__ import annotations

import site
import sysconfig
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lmms_eval.errors import LmmsEvalError

MOST_FRAMES = 4
"""Innermost frames that are shown."""
_PACKAGES = (Path(__file__).parents[1], Path(__file__).resolve().parents[1])
_INSTALLED = ("site-packages", "dist-packages")


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, then what caused it, up to the first cause."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of the user's code that this package has called, outermost first; empty if it called none.

    If an error was caused by another one, these are the frames of the first cause. An ``LmmsEvalError`` is an answer of
    its own, also if the user's code raises it, and has none. Installed packages are not the
    user's code, unless one of them is a plugin by its entry point.
    """
    for one in reversed([cause for cause in chain_of(error) if not isinstance(cause, LmmsEvalError)]):
        frames = traceback.extract_tb(one.__traceback__)
        called = next((place for place, frame in enumerate(frames) if _is_own(frame.filename)), len(frames))
        if isinstance(one, SyntaxError) and one.filename and not _is_foreign(one.filename):
            frames.append(traceback.FrameSummary(one.filename, one.lineno, "<module>", line=one.text or ""))
            called = min(called, len(frames) - 1)
        if found := [frame for frame in frames[called:] if not _is_own(frame.filename) and _is_users(frame.filename)]:
            return found
    return []


def frame_lines(frames: list[traceback.FrameSummary]) -> list[str]:
    """Return the innermost frames as text, a line each: file, line, function and code."""
    places = [f"{_shown(frame.filename)}:{frame.lineno}, in {frame.name}:" for frame in frames[-MOST_FRAMES:]]
    width = max(map(len, places), default=0)
    return [
        f"  {place:{width}}  {(frame.line or '').strip()}".rstrip()
        for place, frame in zip(places, frames[-MOST_FRAMES:], strict=True)
    ]


def user_place(error: BaseException) -> str:
    """Return `` (FILE:LINE)`` of the innermost frame of the user's code; empty if there is no such frame."""
    frames = user_frames(error)
    return f" ({_shown(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""


def _is_own(file: str) -> bool:
    return any(map(Path(file).is_relative_to, _PACKAGES))


def _is_foreign(file: str) -> bool:
    """Return whether a file belongs to Python or to an installed package. Compiled modules give relative names."""
    path = Path(file)
    return not path.is_absolute() or bool({*_INSTALLED} & {*path.parts}) or any(map(path.is_relative_to, _libraries()))


def _is_users(file: str) -> bool:
    return not _is_foreign(file) or any(map(Path(file).is_relative_to, _plugins()))


@cache
def _libraries() -> tuple[Path, ...]:
    paths = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    return tuple({*paths, *(path.resolve() for path in paths)})


@cache
def _plugins() -> tuple[Path, ...]:
    """Return the installed packages that are plugins by an entry point."""
    from importlib.metadata import entry_points

    names = {entry.module.partition(".")[0] for entry in entry_points(group="lmms_eval.models")}
    folders = [Path(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())]
    return tuple(path for folder in folders for name in names for path in (folder / name, folder / f"{name}.py"))


def _shown(file: str) -> str:
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
