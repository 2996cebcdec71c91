"""Data through the ``datasets`` library: hub repositories, its own folder format, and inputs of ``process_docs``.

The functions import ``datasets`` when they are called.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lmms_eval.errors import DataError, MissingDataError, TaskError
from lmms_eval.tasks.data.documents import is_media
from lmms_eval.tasks.data.sizes import Item, cells, stored_media

if TYPE_CHECKING:
    import pyarrow as pa


class DatasetSource:
    """Rows of a ``datasets.Dataset``, undecoded."""

    def __init__(self, dataset: Any, where: str) -> None:
        self._dataset, self.where = dataset, where
        self.columns = tuple(dataset.column_names)
        self.features: Mapping[str, Any] = dataset.features.to_dict()
        self._arrow = dataset.with_format("arrow")
        self._text = [name for name in self.columns if not is_media(self.features.get(name))]
        self._text_rows = self._arrow.select_columns(self._text) if self._text else self._arrow

    def __len__(self) -> int:
        return len(self._dataset)

    def row(self, index: int, columns: Sequence[str]) -> dict[str, Any]:
        rows = self._text_rows if set(columns) <= set(self._text) else self._arrow
        table = rows[index]
        return {name: table.column(name)[0].as_py() for name in columns}

    def cells(self, name: str, indices: Sequence[int]) -> pa.ChunkedArray:
        # The library copies rows that a selection has reordered; views of its table avoid that.
        chosen = getattr(self._dataset, "_indices", None)
        rows = indices if chosen is None else chosen.column(0).take(list(indices)).to_pylist()
        return cells(self._dataset.data.table.column(name), rows)

    def media(self, name: str, indices: Sequence[int]) -> list[list[Item]]:
        return stored_media(self.cells(name, indices))

    def identity(self) -> str:
        info = {
            "fingerprint": self._dataset._fingerprint,
            "checksums": sorted(str(item) for item in self._dataset.info.download_checksums or ()),
            "rows": len(self._dataset),
        }
        return hashlib.sha256(json.dumps(info, sort_keys=True).encode()).hexdigest()

    def dataset(self) -> Any:
        return self._dataset


def source_of(made: Any, where: str, split: str) -> DatasetSource:
    """Return the rows of a split that task code made: a ``datasets.Dataset``, a list of rows, or a stream.

    Raises ``DataError`` for anything else.
    """
    import datasets

    if isinstance(made, list | datasets.IterableDataset):
        rows = list(made)
        if not all(isinstance(row, Mapping) for row in rows):
            raise DataError(
                f"{where}: split {split!r} must be a datasets.Dataset, not a list of {type(rows[0]).__name__}"
            )
        made = datasets.Dataset.from_list(rows)
    if not isinstance(made, datasets.Dataset):
        raise DataError(f"{where}: split {split!r} must be a datasets.Dataset, not a {type(made).__name__}")
    return DatasetSource(made, where)


def dataset_of_table(table: pa.Table, features: Mapping[str, Any]) -> Any:
    """Make a ``datasets.Dataset`` from an Arrow table, in memory."""
    import datasets

    if features and b"huggingface" not in (table.schema.metadata or {}):
        inferred = datasets.Features.from_arrow_schema(table.schema).to_dict()
        metadata = {"huggingface": json.dumps({"info": {"features": {**inferred, **features}}})}
        table = table.replace_schema_metadata(metadata)
    return datasets.Dataset(table)


def dataset_of_files(builder: str, files: Sequence[Path]) -> Any:
    """Make a ``datasets.Dataset`` from files, memory-mapped from the library's cache."""
    import datasets

    with quiet():
        return datasets.load_dataset(builder, data_files=[str(file) for file in files], split="train")


def load_from_disk(path: Path) -> dict[str, Any]:
    """Load the splits of a folder written by ``save_to_disk``.

    Raises ``DataError`` if the folder is missing or was not written by ``save_to_disk``.
    """
    import datasets

    if not path.is_dir():
        raise MissingDataError(f"{path}: there is no such folder (dataset_path with load_from_disk: true)")
    try:
        found = datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path}: not a folder written by save_to_disk: {error}") from error
    return dict(found) if isinstance(found, datasets.DatasetDict) else {"train": found}


def stated_features(stated: Any) -> Any:
    """Return the types of columns for ``datasets.load_dataset``, from YAML's ``{COLUMN: {dtype: NAME}}``.

    ``sequence: true`` next to ``dtype`` makes a column a list. Values of any other form are returned unchanged.
    """
    import datasets

    if not isinstance(stated, Mapping) or not all(
        isinstance(kind, Mapping) and "dtype" in kind for kind in stated.values()
    ):
        return stated
    kinds = {name: datasets.Value(str(kind["dtype"])) for name, kind in stated.items()}
    lists = {name: datasets.Sequence(kinds[name]) for name, kind in stated.items() if kind.get("sequence")}
    return datasets.Features({**kinds, **lists})


OFFLINE_IS_SET = "HF_HUB_OFFLINE is set"
"""Why the hub is not asked."""
_REACH_S = 5.0
"""Seconds that a connection to the hub may take."""
_KEPT_S = 60.0
"""Seconds after which an unreachable hub is tried again."""
_PROXIES = ("https_proxy", "http_proxy", "all_proxy")
_tried: dict[str, tuple[float, str]] = {}


def unreachable(endpoint: str) -> str:
    """Return why the hub cannot be reached, by one connection without retries; empty if it can, or goes by a proxy."""
    if any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES):
        return ""
    at, reason = _tried.get(endpoint, (-math.inf, ""))
    if time.monotonic() - at < _KEPT_S:
        return reason
    place, reason = urlsplit(endpoint), ""
    try:
        port = place.port or (80 if place.scheme == "http" else 443)
        socket.create_connection((place.hostname or "", port), _REACH_S).close()
    except (OSError, ValueError) as error:
        reason = f"{place.hostname} cannot be reached: {getattr(error, 'strerror', None) or error}"
    _tried[endpoint] = (time.monotonic(), reason)
    return reason


@contextmanager
def hub_access(what: str) -> Iterator[None]:
    """Keep the hub's library from retrying an unreachable hub for half a minute: then only its cache answers.

    Args:
        what: the data, for the message.

    Raises:
        MissingDataError: the data are neither in the cache nor reachable.
        DataError: the hub refuses them, or they cannot be read.
    """
    from huggingface_hub import constants

    loaded = [constants, *([sys.modules["datasets"].config] if "datasets" in sys.modules else [])]
    offline = [one.HF_HUB_OFFLINE for one in loaded]
    reason = OFFLINE_IS_SET if constants.HF_HUB_OFFLINE else unreachable(constants.ENDPOINT)
    for one in loaded if reason else ():
        one.HF_HUB_OFFLINE = True
    try:
        yield
    except Exception as error:  # network, hub, parser and builder errors have no common class
        is_missing = isinstance(error, ConnectionError | FileNotFoundError)
        if reason and is_missing:
            # Of an unreachable hub, the library's own message says the same in more words.
            more = "" if "Offline" in str(error) or "on the Hub" in str(error) else f" ({error})"
            raise MissingDataError(
                f"{what} is not on this machine, and {reason}{more}: with a network, `lmms-eval fetch TASK` downloads "
                "it (then copy HF_HOME), or give a local copy with --data_root DIR"
            ) from error
        raise (MissingDataError if is_missing else DataError)(
            f"{what} cannot be loaded: {type(error).__name__}: {error}; check the name and the network, log in with "
            "HF_TOKEN if it is gated, or give a local copy with --data_root DIR"
        ) from error
    finally:
        for one, value in zip(loaded, offline, strict=True):
            one.HF_HUB_OFFLINE = value


def load_hub(path: str, name: str | None, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Load all splits of a hub repository, through the library's cache.

    Raises ``DataError`` if it cannot be loaded; the message explains how to use a local copy.
    """
    import datasets

    with hub_access(f"data set {path!r}{f' (configuration {name!r})' if name else ''}"):
        found = datasets.load_dataset(path, name, **kwargs)
    if isinstance(found, Mapping):
        return dict(found)
    return {str(getattr(found, "split", None) or "train"): found}


def file_of(repository: str, path: str, revision: str | None, where: str) -> Path:
    """Return the local path of a file of a hub repository, from the hub's cache if it is there.

    Raises ``DataError`` if it cannot be loaded.
    """
    from huggingface_hub import hf_hub_download

    with hub_access(f"{where}: data file {path} of {repository}"):
        return Path(hf_hub_download(repository, path, repo_type="dataset", revision=revision))


def apply_process_docs(function: Any, dataset: Any, where: str) -> Any:
    """Apply the task's ``process_docs`` to a split.

    Raises ``TaskError`` if it did not return a ``datasets.Dataset``.
    """
    import datasets

    from lmms_eval.media.opened import keep_originals

    keep_originals()  # for the pictures that it decodes
    with quiet():
        made = function(dataset)
    if isinstance(made, list):
        made = datasets.Dataset.from_list(made)
    if not isinstance(made, datasets.Dataset):
        raise TaskError(f"{where}: process_docs must return a datasets.Dataset, not a {type(made).__name__}")
    return made


@contextmanager
def quiet() -> Iterator[None]:
    """Switch off the progress bars of ``datasets``."""
    from datasets.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
