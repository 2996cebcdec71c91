"""``lmms-eval cache``: shows, prunes and checks a response cache."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing

from lmms_eval.cli.arguments import command_parser
from lmms_eval.cli.output import emit
from lmms_eval.errors import UsageError

DAMAGED = 1
_DAY_S = 86_400.0


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("cache", "look into, prune or check a response cache (--use_cache)")
    parser.add_argument(
        "action",
        choices=("stats", "prune", "verify"),
        help="count the responses, delete some, or look for damage and repair it",
    )
    parser.add_argument("path", metavar="PATH", help="the folder or .db file that --use_cache names")
    parser.add_argument(
        "--older-than", "--older_than", type=float, metavar="DAYS", help="prune: delete responses older than this"
    )
    parser.add_argument("--model", metavar="NAME", help="prune: delete responses of this model, as stats names it")
    given = parser.read(arguments)
    is_pruning = given.action == "prune"
    if is_pruning != (given.older_than is not None or given.model is not None):
        raise UsageError("cache: prune, and only prune, takes --older-than DAYS or --model NAME, or both")
    from lmms_eval.engine.response_cache import CacheFile, cache_path
    from lmms_eval.utils.logging import configure_logging

    configure_logging("ERROR")  # the output reports damage
    path = cache_path(given.path)
    if not path.is_file():
        raise UsageError(f"cache: there is no response cache at {path}")
    try:
        with closing(CacheFile(path, check=given.action == "verify")) as file:
            if given.action == "stats":
                stats = file.stats()
                emit([f"path: {file.path}", f"responses: {stats.responses}", f"size: {stats.bytes / 2**20:.1f} MiB"])
                if stats.oldest is not None and stats.newest is not None:
                    ends = [time.strftime("%Y-%m-%d %H:%M", time.gmtime(at)) for at in (stats.oldest, stats.newest)]
                    emit(f"stored: {ends[0]} to {ends[1]}")
                for model, number in stats.models.items():
                    emit(f"  {number:>8}  {model}")
            elif is_pruning:
                before = None if given.older_than is None else time.time() - given.older_than * _DAY_S
                emit(f"deleted: {file.prune(before, given.model)}")
            else:
                damaged, left = file.verify(), file.stats().responses
                if file.set_aside is not None:
                    emit(f"the file was damaged: moved to {file.set_aside}, a new one was started")
                emit(f"damaged responses deleted: {damaged}; good ones: {left}")
                return DAMAGED if damaged or file.set_aside is not None else 0
    except sqlite3.Error as error:
        raise UsageError(f"cache {given.path}: {error}; lmms-eval cache verify repairs what is damaged") from error
    return 0
