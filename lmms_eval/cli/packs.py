"""``lmms-eval packs``: adds, lists, describes, updates and removes the task folders of other packages."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lmms_eval.cli.arguments import command_parser, run_action
from lmms_eval.cli.commands import Action
from lmms_eval.cli.output import complain, emit
from lmms_eval.errors import DataError, UsageError

if TYPE_CHECKING:
    from lmms_eval.tasks.packs.index import PackIndex
    from lmms_eval.tasks.packs.store import Pack


_MODELS = "install the package in an environment and give it as --plugins (docs/model_guide.md)"


def run(arguments: Sequence[str]) -> int:
    return run_action("packs", ACTIONS, arguments, logless=("list", "trust", "remove"))


def _add(arguments: Sequence[str]) -> int:
    parser = command_parser("packs add", "get the tasks of other packages: download their wheels, install nothing")
    parser.add_argument("what", nargs="+", metavar="NAME[==VERSION]|WHEEL|FOLDER",
        help="package of the index, wheel, or folder of tasks to add")  # fmt: skip
    parser.add_argument("--name", default="", help="name for the pack; default: that of the package")
    parser.add_argument(
        "--tasks_folder", "--tasks-folder", default="", metavar="PATH",
        help="folder of its task files inside the package; default: PACKAGE/tasks",
    )  # fmt: skip
    parser.add_argument("--trust", action="store_true", help="allow the Python code of its tasks to run")
    parser.add_argument(
        "--with_packages", "--with-packages", action="store_true",
        help="print the command that installs the packages that its tasks import",
    )  # fmt: skip
    given = parser.read(arguments)
    if given.name and len(given.what) > 1:
        raise UsageError("packs add: --name names one pack; add the others by another command")
    for what in given.what:
        _add_one(what, given)
    return 0


def _add_one(what: str, given: Namespace) -> None:
    from lmms_eval.tasks.packs.store import packs
    from lmms_eval.tasks.packs.wheels import made_pack

    with made_pack(what, given.name, given.tasks_folder) as pack:
        earlier = next((known for known in packs() if known.name == pack.name), None)
        if earlier is not None and (earlier.folder, earlier.tasks) != (pack.folder, pack.tasks):
            here = f"{earlier.version} ".lstrip() + f"from {earlier.source}"
            raise UsageError(
                f"packs add {what}: pack {pack.name} is here already, {here}: lmms-eval packs remove {pack.name} "
                f"removes it; --name OTHER_NAME keeps both"
            )
        is_trusted = given.trust or (earlier is not None and earlier.is_trusted)
        _register(replace(pack, is_trusted=is_trusted), earlier)
    if given.with_packages:
        emit(f"packages that its tasks import and that are not here: {_packages(pack)}")


def _packages(pack: Pack) -> str:
    """Return the command that installs the packages that the code of a pack imports and this machine lacks."""
    from lmms_eval.checks.findings import install_line
    from lmms_eval.tasks.packs.index import imported_modules

    return install_line(imported_modules(pack)) or "none"


def _register(pack: Pack, earlier: Pack | None) -> None:
    """Add a pack to the table and print what it holds. Code of its tasks runs only after consent.

    Raises ``DataError`` if it holds no task, or another command has changed ``earlier``, the pack of this name.
    """
    from lmms_eval.tasks.catalogue import Catalogue
    from lmms_eval.tasks.packs.index import index_of
    from lmms_eval.tasks.packs.store import changing, replaced
    from lmms_eval.utils.names import some_of

    index = index_of(pack)
    if not index.entries:
        first = next(iter(index.broken.values()), "no YAML file has the key task or group")
        raise DataError(f"{pack.source}: {pack.tasks} holds no task: {first}; name the folder: --tasks_folder PATH")
    coded = sum(entry.has_code for entry in index.entries if entry.kind == "task")
    emit(f"{_shown(pack)}: {_counts(index)}, licence: {pack.licence or 'none found'}")
    if coded and not pack.is_trusted:
        emit(f"{coded:,} of its tasks bring Python code, which would run as you, in {pack.path}")
        pack = replace(pack, is_trusted=_agrees())
        if not pack.is_trusted:
            emit(f"only the others are offered until you allow it: lmms-eval packs trust {pack.name}")
    names = {entry.name for entry in index.entries}
    shared = sorted(names.intersection(Catalogue(pack_first=False).own_names()))
    if shared:
        emit(f"{len(shared)} of its names are this package's own, so write {pack.name}:NAME: {some_of(shared, 5)}")
    with changing() as table:
        now = next((known for known in table if known.name == pack.name), None)
        if now not in (None, earlier) and now.folder != pack.folder:
            raise DataError(f"pack {pack.name}: another command added {_shown(now)} meanwhile; nothing was changed")
        replaced(table, pack)


def _shown(pack: Pack) -> str:
    return f"{pack.name} {pack.version}" if pack.version else pack.name


def _agrees() -> bool:
    """Ask whether code may run; no, if nobody can answer."""
    if not sys.stdin.isatty():
        return False
    complain("Let it run? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _counts(index: PackIndex) -> str:
    kinds = [entry.kind for entry in index.entries]
    tags = {tag for entry in index.entries for tag in entry.tags}
    text = f"{kinds.count('task'):,} tasks, {kinds.count('group'):,} groups, {len(tags):,} tags"
    return text + (f"; {len(index.broken)} files cannot be read" if index.broken else "")


def _list(arguments: Sequence[str]) -> int:
    parser = command_parser("packs list", "the packs of this machine")
    parser.add_argument("--json", action="store_true", help="print them as JSON")
    given = parser.read(arguments)
    import msgspec

    from lmms_eval.tasks.packs.index import index_of
    from lmms_eval.tasks.packs.store import packs, packs_folder
    from lmms_eval.utils.terminal import named_table

    known = packs()
    if given.json:
        emit(msgspec.json.format(msgspec.json.encode(known)).decode())
    elif not known:
        emit(f"no packs in {packs_folder()}; lmms-eval packs add lm-eval lmms-eval gets those of both families")
    else:
        columns = {
            "pack": [pack.name for pack in known],
            "version": [pack.version for pack in known],
            "holds": [_counts(index_of(pack)) if pack.path.is_dir() else "its files are gone" for pack in known],
            "its code": ["may run" if pack.is_trusted else "may not run" for pack in known],
            "added": [pack.added for pack in known],
            "files": [str(pack.path) for pack in known],
        }
        emit(named_table(columns).rstrip("\n"))
    return 0


def _trust(arguments: Sequence[str]) -> int:
    parser = command_parser("packs trust", "let the tasks of a pack run the Python code that they bring")
    parser.add_argument("names", nargs="+", metavar="NAME", help="name of a pack, as packs list shows it")
    parser.add_argument("--revoke", action="store_true", help="withdraw the permission")
    given = parser.read(arguments)
    from lmms_eval.tasks.packs.store import changing, pack_named, replaced

    for pack in [pack_named(name) for name in dict.fromkeys(given.names)]:
        with changing() as table:
            replaced(table, replace(pack, is_trusted=not given.revoke))
        emit(f"{pack.name}: its code {'may not run any more' if given.revoke else 'may run'}")
    return 0


def _update(arguments: Sequence[str]) -> int:
    parser = command_parser("packs update", "get the newest versions of packs, or the version that is named")
    parser.add_argument(
        "what", nargs="*", metavar="NAME[==VERSION]", help="pack to update; default: all that came from a package index"
    )
    parser.add_argument("--trust", action="store_true", help="allow the code of the new versions to run")
    given = parser.read(arguments)
    from lmms_eval.tasks.packs.store import pack_named, packs
    from lmms_eval.tasks.packs.wheels import made_pack

    for what in given.what or [pack.name for pack in packs() if pack.requirement]:
        name, _, version = what.partition("==")
        pack = pack_named(name)
        if not pack.requirement:
            raise UsageError(
                f"packs update {name}: it was added from {pack.source}, not from a package index: lmms-eval packs "
                f"remove {name}, then add the new one: packs add PATH"
            )
        wanted = f"{pack.requirement}=={version}" if version else pack.requirement
        with made_pack(wanted, name, pack.tasks) as newer:
            if newer.sha256 == pack.sha256:
                emit(f"{name} {pack.version} is {'here' if version else 'the newest'}")
            else:  # new code needs new consent
                _register(replace(newer, is_trusted=given.trust), pack)
    return 0


def _remove(arguments: Sequence[str]) -> int:
    parser = command_parser("packs remove", "remove packs and their files")
    parser.add_argument("names", nargs="+", metavar="NAME", help="name of a pack, as packs list shows it")
    given = parser.read(arguments)
    from lmms_eval.tasks.packs.store import changing, is_in_use, pack_named

    for pack in [pack_named(name) for name in dict.fromkeys(given.names)]:
        with changing() as table:
            table[:] = [known for known in table if known.name != pack.name]
        later = "; a run uses its files, which the next change of packs removes" if is_in_use(pack) else ""
        emit(f"{_shown(pack)} is removed{later}")
    return 0


def _describe(arguments: Sequence[str]) -> int:
    parser = command_parser("packs describe", "what a pack holds, and how many of its tasks can be built here")
    parser.add_argument("name", metavar="NAME", help="name of a pack, as packs list shows it")
    parser.add_argument("--no-check", "--no_check", action="store_true", help="skip the check of its tasks")
    given = parser.read(arguments)
    from lmms_eval.tasks.packs.index import index_of
    from lmms_eval.tasks.packs.store import pack_named

    pack = pack_named(given.name)
    index = index_of(pack)
    coded = sum(entry.has_code for entry in index.entries if entry.kind == "task")
    rows = {
        "pack": _shown(pack),
        "source": f"{pack.source}{f' (sha256 {pack.sha256})' if pack.sha256 else ''}",
        "files": str(pack.path),
        "licence": pack.licence or "none found",
        "holds": _counts(index),
        "code": f"{coded:,} tasks bring Python code, which {'may' if pack.is_trusted else 'may not'} run",
        "packages": _packages(pack),
        "models": f"{', '.join(pack.models)}; not part of the pack: {_MODELS}" if pack.models else "none",
    }
    width = max(map(len, rows))
    emit([f"{key:<{width}}  {text}" for key, text in rows.items()])
    if not given.no_check:
        from lmms_eval.checks.findings import check_lines
        from lmms_eval.checks.workers import CheckOptions, check_tasks
        from lmms_eval.tasks.catalogue import Catalogue

        options = CheckOptions(processes=len(os.sched_getaffinity(0)), documents=1)
        emit(["", *check_lines(check_tasks(Catalogue(), [f"{pack.name}:*"], options))])
    return 0


ACTIONS: Mapping[str, Action] = {
    "add": _add, "list": _list, "describe": _describe, "trust": _trust, "update": _update, "remove": _remove,
}  # fmt: skip
