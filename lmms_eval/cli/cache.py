"""``lmms-eval cache``: shows, prunes and checks a response cache."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import emit
from lmms_eval.errors import UsageError

DAMAGED = 1
_DAY_S = 86_400.0


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("cache", "look into, prune or check a response cache (--use_cache)")
    parser.add_argument("action", choices=("stats", "prune", "verify"))
    parser.add_argument("path", metavar="PATH", help="the folder or .db file that --use_cache names")
    parser.add_argument(
        "--older-than", "--older_than", type=float, metavar="DAYS", help="prune: responses that are older"
    )
    parser.add_argument("--model", metavar="NAME", help="prune: responses of this model, named as in stats")
    given = parser.parse_args(list(arguments))
    is_pruning = given.action == "prune"
    if is_pruning != (given.older_than is not None or given.model is not None):
        raise UsageError("cache: prune, and only prune, takes --older-than DAYS or --model NAME, or both")
    from lmms_eval.utils.logging import configure_logging

    configure_logging("ERROR")  # the output reports damage
    try:
        return _ACTIONS[given.action](given.path, given.older_than, given.model)
    except sqlite3.Error as error:
        raise UsageError(f"cache {given.path}: {error}; lmms-eval cache verify repairs what is damaged") from error


def _path(name: str) -> Path:
    from lmms_eval.engine.response_cache import cache_path

    path = cache_path(name)
    if not path.is_file():
        raise UsageError(f"cache: there is no response cache at {path}")
    return path


def _stats(name: str, _days: float | None, _model: str | None) -> int:
    from lmms_eval.engine.response_cache import CacheFile

    file = CacheFile(_path(name), check=False)
    try:
        stats = file.stats()
    finally:
        file.close()
    emit([f"path: {file.path}", f"responses: {stats.responses}", f"size: {stats.bytes / 2**20:.1f} MiB"])
    if stats.oldest is not None and stats.newest is not None:
        emit(f"stored: {_day(stats.oldest)} to {_day(stats.newest)}")
    for model, number in stats.models.items():
        emit(f"  {number:>8}  {model}")
    return 0


def _prune(name: str, days: float | None, model: str | None) -> int:
    from lmms_eval.engine.response_cache import CacheFile

    file = CacheFile(_path(name), check=False)
    try:
        number = file.prune(None if days is None else time.time() - days * _DAY_S, model)
    finally:
        file.close()
    emit(f"deleted: {number}")
    return 0


def _verify(name: str, _days: float | None, _model: str | None) -> int:
    from lmms_eval.engine.response_cache import CacheFile

    file = CacheFile(_path(name))
    try:
        damaged, left = file.verify(), file.stats().responses
    finally:
        file.close()
    if file.set_aside is not None:
        emit(f"the file was damaged: moved to {file.set_aside}, a new one was started")
    emit(f"damaged responses deleted: {damaged}; good ones: {left}")
    return DAMAGED if damaged or file.set_aside is not None else 0


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


_ACTIONS = {"stats": _stats, "prune": _prune, "verify": _verify}
