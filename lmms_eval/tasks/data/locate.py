"""Finds the files of each split: ``data_files``, folders in the layout of the hub, ``--data_root``."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lmms_eval.errors import DataError, MissingDataError
from lmms_eval.utils.files import StatedPath
from lmms_eval.utils.yaml_bounds import load_bounded

SUFFIXES = {
    ".parquet": "parquet",
    ".jsonl": "json",
    ".json": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
}
"""File types that are read directly, with their builders."""
_SYNONYMS = {
    "train": "train", "training": "train",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
    "test": "test", "testing": "test", "eval": "test", "evaluation": "test",
}  # fmt: skip
log = logging.getLogger(__name__)
_SHARD = re.compile(r"^(?P<split>\w+(?:\.\w+)*)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?$")
_WORD = re.compile(r"[A-Za-z]+")
_IGNORED = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "manifest.json"}

FilesBySplit = dict[str, list[Path]]


def data_files(value: Any, builder: str, roots: Sequence[Path], where: str) -> FilesBySplit:
    """Find the files of a local builder's ``data_files``: a path, a list of paths, or a mapping of splits to either.

    Relative paths are tried in the folder of the stating file, then in ``roots``, then in the working directory. A
    warning names the other folders that hold such a file. Raises ``DataError`` if no files are given, or one is
    missing.
    """
    if not value:
        raise DataError(f"{where}: dataset_path {builder!r} needs dataset_kwargs.data_files")
    by_split = value if isinstance(value, Mapping) else {"train": value}
    return {
        str(split): [file for item in _listed(stated) for file in _files(item, str(split), roots, where)]
        for split, stated in by_split.items()
    }


def is_remote(value: Any) -> bool:
    """Return whether any path of ``data_files`` is a URL."""
    if isinstance(value, Mapping):
        return any(is_remote(item) for item in value.values())
    return any("://" in str(item) for item in _listed(value))


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _files(stated: Any, split: str, roots: Sequence[Path], where: str) -> list[Path]:
    text = str(stated)
    home = stated.folder if isinstance(stated, StatedPath) else Path()
    folders = list(dict.fromkeys(folder.absolute() for folder in (home, *roots, Path())))
    for number, folder in enumerate(folders):
        if files := _named(folder, text):
            # patterns and folders are not searched again
            places = (folder / text for folder in folders[number + 1 :])
            other = " and ".join(str(place) for place in places if place.is_file() and not place.samefile(files[0]))
            if other:
                what = f"{where}: data file {text} (split {split!r})"
                log.warning("%s is taken from %s; there is also %s", what, files[0], other)
            return files
    first, *others = dict.fromkeys(folder / Path(text).expanduser() for folder in folders)
    nor = "".join(f", nor {place}" for place in others)
    near = f"there is no folder {first.parent}"
    if first.parent.is_dir():
        names = sorted(item.name for item in first.parent.iterdir())
        close = difflib.get_close_matches(first.name, names, n=3) or names[:5]
        near = f"{first.parent} holds: {', '.join(close) or 'nothing'}"
    raise MissingDataError(f"{where}: data file {first} (split {split!r}) does not exist{nor}; {near}")


def _named(folder: Path, text: str) -> list[Path]:
    """List the files that a path or pattern names, relative to a folder. A folder gives all data files below it."""
    path = Path(text).expanduser()
    if any(sign in text for sign in "*?["):
        anchor = Path(path.anchor) if path.is_absolute() else folder
        return sorted(anchor.glob(str(path.relative_to(path.anchor))))
    place = folder / path
    if place.is_file():
        return [place]
    return _below(place, recursive=True) if place.is_dir() else []


def hub_copy(folder: Path, name: str | None, where: str) -> FilesBySplit:
    """Find the files of a local folder in the layout of a hub repository, by split.

    A README that maps configurations to files is followed. Otherwise the files of ``folder/<name>`` (or of ``folder``)
    are sorted into splits by name, as ``test-00000-of-00001.parquet`` or ``test/0000.parquet``. Raises ``DataError`` if
    the folder has no data files.
    """
    from_card = _card_files(folder, name)
    if from_card:
        return from_card
    named = [folder / name, folder / "data" / name] if name else []
    places = [place for place in (*named, folder, folder / "data") if place.is_dir()]
    # Numbered files of a split take precedence: the folder may hold others, such as a leaderboard's.
    for place in places:
        if shards := _shards(_below(place, recursive=place in named)):
            return _by_split(shards, place)
    if not name:  # the only configuration has its own folder
        found = [(shards, place) for place in folder.glob("*/") if (shards := _shards(_below(place, recursive=False)))]
        if len(found) == 1:
            return _by_split(*found[0])
    for place in places:
        files = _below(place, recursive=place in named)
        files = files or (_below(place, recursive=True) if place == folder and not name else [])
        if files:
            return _by_split(files, place)
    wanted = f"{folder}/{name}/*.parquet or {folder}/*.parquet" if name else f"{folder}/*.parquet"
    found_there = f"there is no folder {folder}"
    if folder.is_dir():
        names = sorted(item.name + ("/" if item.is_dir() else "") for item in folder.iterdir())
        found_there = f"{folder} holds: {', '.join(names[:10]) or 'nothing'}"
    kinds = ", ".join(SUFFIXES)
    raise MissingDataError(f"{where}: no data files found: looked for {wanted} (and {kinds} files); {found_there}")


def _shards(files: Sequence[Path]) -> list[Path]:
    """Return the files that are numbered parts of a split."""
    return [file for file in files if _SHARD.match(file.stem)]


def _by_split(files: Sequence[Path], place: Path) -> FilesBySplit:
    found: FilesBySplit = {}
    for file in files:
        found.setdefault(_split_of(file, place), []).append(file)
    return found


def data_root_folders(root: Path, path: str, where: str, task: str = "") -> list[Path]:
    """List the folders of ``--data_root`` that hold a copy of a hub repository, the most specific first.

    A copy is below ``--data_root`` under the repository's name, or ``--data_root`` is the copy itself, or a snapshot in
    the hub's cache. The list is empty without a copy.

    Args:
        root: the folder given.
        path: name of the repository.
        where: the file that names it, for the error.
        task: name of the task, for folders with the data of one task each.

    Raises:
        DataError: the folder does not exist.
    """
    if not root.is_dir():
        raise DataError(f"{where}: --data_root {root}: there is no such folder")
    below = [folder for folder in _own_folders(root, path, task) if folder.is_dir()]
    names = {path.split("/")[-1], path.replace("/", "__"), task} - {""}
    is_own = root.absolute().name in names or f"datasets--{path.replace('/', '--')}" in root.absolute().parts
    return below or ([root] if is_own else [])


def _own_folders(root: Path, path: str, task: str) -> list[Path]:
    owner_and_name = path.split("/")
    own = [root.joinpath(*owner_and_name), root / "__".join(owner_and_name), root / owner_and_name[-1]]
    return list(dict.fromkeys([*own, *([root / task] if task else [])]))


def beside_folders(root: Path, path: str, name: str | None, where: str, task: str = "") -> FilesBySplit:
    """Find the data files in ``--data_root`` itself, by split, for a task without a folder of its own.

    Subfolders are not searched, since they hold the data of other benchmarks; the folder of the configuration
    (``name``) is the exception. Raises ``MissingDataError`` if no data files were found.
    """
    for place in (root / name, root) if name else (root,):
        files = _below(place, recursive=place != root) if place.is_dir() else []
        if files:
            return _by_split(files, place)
    names = sorted(item.name + ("/" if item.is_dir() else "") for item in root.iterdir())
    tried = ", ".join(str(folder) for folder in _own_folders(root, path, task))
    raise MissingDataError(
        f"{where}: {f'task {task!r}: ' if task else ''}no data files found: --data_root {root} has no copy of {path}: "
        f"the folders {tried} do not exist, and no data file ({', '.join(SUFFIXES)}) lies in {root} itself, which "
        f"holds: {', '.join(names[:10]) or 'nothing'}"
    )


def _below(folder: Path, recursive: bool) -> list[Path]:
    """Return the data files of one type (the first of ``SUFFIXES`` that occurs), sorted by path."""
    found = folder.rglob("*") if recursive else folder.glob("*")
    files = [
        file
        for file in sorted(found)
        if file.suffix in SUFFIXES
        and file.is_file()
        and file.name not in _IGNORED
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]
    for builder in dict.fromkeys(SUFFIXES.values()):
        same = [file for file in files if SUFFIXES[file.suffix] == builder]
        if same:
            return same
    return []


def _split_of(file: Path, folder: Path) -> str:
    shard = _SHARD.match(file.stem)
    if shard:
        return shard.group("split")
    for part in (file.stem, *reversed(file.relative_to(folder).parts[:-1])):
        if part.lower() in _SYNONYMS:
            return _SYNONYMS[part.lower()]
    for word in _WORD.findall(file.stem):
        if word.lower() in _SYNONYMS:
            return _SYNONYMS[word.lower()]
    return "train"


def _card_files(folder: Path, name: str | None) -> FilesBySplit:
    """Return the files that the YAML head of ``README.md`` gives for a configuration; empty if it gives none."""
    card = folder / "README.md"
    if not card.is_file():
        return {}
    parts = card.read_text(encoding="utf-8", errors="replace").split("---", 2)
    if len(parts) < 3 or parts[0].strip():
        return {}
    try:
        head = load_bounded(parts[1])
    except yaml.YAMLError:
        return {}
    configs = head.get("configs") if isinstance(head, Mapping) else None
    for config in configs if isinstance(configs, list) else []:
        if isinstance(config, Mapping) and config.get("config_name") == (name or "default"):
            stated = config.get("data_files")
            entries = stated if isinstance(stated, list) else [{"split": "train", "path": stated}] if stated else []
            found: FilesBySplit = {}
            for entry in entries:
                if isinstance(entry, Mapping) and entry.get("path"):
                    files = [file for path in _listed(entry["path"]) for file in sorted(folder.glob(str(path)))]
                    if files:
                        found.setdefault(str(entry.get("split", "train")), []).extend(files)
            return found
    return {}
