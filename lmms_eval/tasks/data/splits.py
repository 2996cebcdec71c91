"""The splits of a task's data. Each is opened at its first use."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from lmms_eval.errors import DataError, MissingDataError, TaskError
from lmms_eval.tasks.data import hub
from lmms_eval.tasks.data.documents import Documents, RowSource
from lmms_eval.tasks.data.locate import (
    SUFFIXES,
    FilesBySplit,
    beside_folders,
    data_files,
    data_root_folders,
    hub_copy,
    is_remote,
)
from lmms_eval.tasks.data.sources import ParquetSource, TableSource
from lmms_eval.utils.files import StatedPath
from lmms_eval.utils.signatures import keywords_for

if TYPE_CHECKING:
    from lmms_eval.media.policy import MediaPolicy

log = logging.getLogger(__name__)
LOCAL_BUILDERS = ("json", "csv", "tsv", "parquet", "arrow", "text")
_CSV_OPTIONS = ("names", "header", "sep", "delimiter", "quotechar", "quoting", "skiprows")
_HUB_FILE = "hf://datasets/"
_OWN_KEYS = (
    "load_from_disk", "video", "force_download", "force_unzip", "create_link", "local_files_only", "builder_script",
    "From_YouTube", "max_retries", "num_proc", "cache_dir", "streaming",
)  # fmt: skip


class DataRequest(Struct, frozen=True):
    """A task's description of its data."""

    path: Any
    """Builder, folder or hub name, or a function that returns the rows (``of_function``)."""
    name: str | None
    kwargs: Mapping[str, Any]
    where: str
    """The YAML file, for messages."""
    data_root: str | None = None
    trust_remote_code: bool = False
    settings: Any = None
    """``lmms_eval_specific_kwargs`` of the run, for a function that returns the rows."""
    media: MediaPolicy | None = None
    """Files and addresses that documents from the hub may name."""
    task: str = ""
    """The task's name; empty if the request is not from a task."""


class Rows(Struct, frozen=True):
    """Documents of one split, from a function given as ``dataset_path``."""

    rows: Sequence[Mapping[str, Any]]
    """Rows with the same columns. The values of a column have one type, or are ``None``."""
    files: Sequence[Path]
    """The files of the rows. They show whether the data changed."""


class DataSet:
    """Splits by name. ``process_docs`` is applied to the splits in ``processed``, once each."""

    def __init__(
        self, openers: Mapping[str, Callable[[], RowSource]], where: str, media: MediaPolicy | None = None
    ) -> None:
        self._openers, self.where = openers, where
        self.from_root: Path | None = None
        """The ``--data_root`` with the files, if no folder there shows that they are this task's."""
        self.media = media
        """Files and addresses that the documents may name; ``None`` for the user's own data."""
        self._process: Callable[[Any], Any] | None = None
        self._processed: frozenset[str] = frozenset()
        self._documents: dict[str, Documents] = {}

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._openers)

    def process(self, function: Callable[[Any], Any], splits: Sequence[str]) -> None:
        self._process, self._processed = function, frozenset(splits)

    def documents(self, split: str) -> Documents:
        """Return the documents of a split.

        Raises ``DataError`` if the split does not exist, or one of its files cannot be read.
        """
        if split not in self._documents:
            if split not in self._openers:
                raise DataError(
                    f"{self.where}: there is no split {split!r} in the data; there is: {', '.join(self.splits)}"
                )
            documents = Documents(self._openers[split](), self.media)
            self._documents[split] = self._after(documents) if split in self._processed else documents
        return self._documents[split]

    def processed(self, split: str) -> Documents:
        """Return the documents of a split after ``process_docs``, even if the task does not apply it to this split.

        Raises:
            DataError: as ``documents``.
        """
        documents = self.documents(split)
        return documents if split in self._processed else self._after(documents)

    def _after(self, documents: Documents) -> Documents:
        """Apply ``process_docs``, if there is one."""
        if self._process is None:
            return documents
        made = hub.apply_process_docs(self._process, documents.source.dataset(), self.where)
        return Documents(_Processed(made, documents.source), self.media)

    def dataset_dict(self) -> Any:
        """Return all splits as a ``datasets.DatasetDict``; those in ``processed`` after ``process_docs``."""
        import datasets

        return datasets.DatasetDict({split: self.documents(split).source.dataset() for split in self.splits})

    def identity(self, split: str) -> str:
        """Return the hash of the split's files."""
        return hashlib.sha256(f"{split}|{self.documents(split).source.identity()}".encode()).hexdigest()


class _Processed(hub.DatasetSource):
    """Documents that ``process_docs`` made from a source, with the identity of its files."""

    def __init__(self, dataset: Any, origin: RowSource) -> None:
        super().__init__(dataset, origin.where)
        self._origin = origin
        self.files = getattr(origin, "files", ())

    def identity(self) -> str:
        return self._origin.identity()


def open_data(request: DataRequest, split: str) -> DataSet:
    """Find a task's data. Files are opened when a split is requested.

    ``split`` is the evaluated split. Files of ``--data_root`` without a split in their names count as this split.

    Raises:
        DataError: the data is missing. TaskError: the task requests something unsupported.
    """
    if callable(request.path):
        return DataSet({split: lambda: _of_function(request, split)}, request.where)
    path, kwargs = str(request.path), request.kwargs
    if kwargs.get("From_YouTube"):
        log.warning(
            "%s: dataset_kwargs.From_YouTube: videos are not downloaded from YouTube; they must be where the task's "
            "code looks for them", request.where,
        )  # fmt: skip
    if path == "pandas":
        raise TaskError(f"{request.where}: dataset_path 'pandas' reads pickle files, which may run code; use parquet")
    if path in LOCAL_BUILDERS and not is_remote((local := _with_hub_files(request)).get("data_files")):
        return _local_builder(structs.replace(request, kwargs=local), path)
    folder = _local_folder(request)
    if kwargs.get("load_from_disk"):
        return of_datasets(hub.load_from_disk(folder or Path(path).expanduser()), str(folder or path))
    if folder is not None:
        if any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
            return of_datasets(hub.load_from_disk(folder), str(folder))
        return _of_files(in_folder(folder, request), _csv_options(request), str(folder))
    if request.data_root is not None:
        return _in_data_root(request, split)
    if kwargs.get("video"):
        from lmms_eval.tasks.data.snapshot import fetch_videos

        fetch_videos(path, kwargs, request.where)
    found = hub.load_hub(path, request.name, hub_arguments(request))
    return of_datasets(found, f"data set {path}", request.media)


def _of_function(request: DataRequest, split: str) -> RowSource:
    """Return the rows of a function. It gets those arguments that it takes of ``name``, ``split``, ``data_root``,
    ``lmms_eval_specific_kwargs`` and the items of ``dataset_kwargs``."""
    import pyarrow as pa

    offered = {
        **request.kwargs, "name": request.name, "split": split, "data_root": request.data_root,
        "lmms_eval_specific_kwargs": request.settings,
    }  # fmt: skip
    made = request.path(**keywords_for(request.path, offered))
    if not isinstance(made, Rows):
        raise TaskError(f"{request.where}: dataset_path: the function must return Rows, not a {type(made).__name__}")
    try:
        return TableSource(pa.Table.from_pylist([dict(row) for row in made.rows]), made.files)
    except pa.ArrowException as error:
        names = ", ".join(str(file) for file in made.files)
        raise DataError(f"{request.where}: rows of {names}: not one type for each column: {error}") from error


def _local_builder(request: DataRequest, builder: str) -> DataSet:
    stated = request.kwargs.get("data_files") or request.kwargs.get("data_dir")
    roots = [Path(request.data_root).expanduser()] if request.data_root else []
    files = data_files(stated, builder, roots, request.where)
    options = _reader_options(request.kwargs)
    return DataSet(
        {split: _opener(builder, tuple(of_split), options) for split, of_split in files.items()}, request.where
    )


def _reader_options(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for the reader of a file; ``column_names`` of ``datasets`` are the ``names`` of pandas."""
    ignored = ("data_files", "data_dir", "token", "revision", "trust_remote_code", *_OWN_KEYS)
    options = {key: value for key, value in kwargs.items() if key not in ignored}
    names = options.pop("column_names", None)
    return options if names is None else {"names": names, **options}


def _csv_options(request: DataRequest) -> dict[str, Any]:
    """Return the options that say how the CSV files of a repository are read: their columns and separator."""
    return {key: value for key, value in _reader_options(request.kwargs).items() if key in _CSV_OPTIONS}


def _with_hub_files(request: DataRequest) -> dict[str, Any]:
    """Return ``dataset_kwargs`` with each ``hf://datasets/OWNER/NAME/PATH`` of ``data_files`` as a local path.

    The file is looked up in the copy of the repository below ``--data_root``, else in the hub's cache, else fetched.
    """
    stated = request.kwargs.get("data_files")

    def local(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {split: local(item) for split, item in value.items()}
        if isinstance(value, list | tuple):
            return [local(item) for item in value]
        text = str(value)
        if not text.startswith(_HUB_FILE) or any(sign in text for sign in "*?["):
            return value
        owner, name, *parts = text.removeprefix(_HUB_FILE).split("/")
        name, _, revision = name.partition("@")
        if not parts:
            raise TaskError(f"{request.where}: data file {text}: give hf://datasets/OWNER/NAME/PATH")
        repository, path = f"{owner}/{name}", "/".join(parts)
        if request.data_root is None:
            return str(hub.file_of(repository, path, revision or None, request.where))
        root = Path(request.data_root).expanduser()
        found = [folder / path for folder in data_root_folders(root, repository, request.where, request.task)]
        if not found:
            raise MissingDataError(
                f"{request.where}: data file {text}: --data_root {root} has no copy of {repository}: make a folder "
                f"{root / name} with {path} in it"
            )
        return str(found[0])

    return dict(request.kwargs) if stated is None else {**request.kwargs, "data_files": local(stated)}


def _opener(builder: str, files: Sequence[Path], options: Mapping[str, Any]) -> Callable[[], RowSource]:
    if builder == "parquet":
        return lambda: ParquetSource(files)
    from lmms_eval.tasks.data import text_files

    readers = {
        "json": text_files.read_json, "csv": text_files.read_csv, "text": text_files.read_text,
        "arrow": text_files.read_arrow,
    }  # fmt: skip
    if builder == "tsv":
        return lambda: text_files.read_csv(files, {"sep": "\t", **options})
    return lambda: readers[builder](files, options)


def _local_folder(request: DataRequest) -> Path | None:
    """Return the folder that ``dataset_path`` names, relative to the stating file or to the working directory."""
    path = request.path
    beside = path.in_folder if isinstance(path, StatedPath) else Path(path)
    if beside.is_dir():
        return beside
    plain = Path(str(path)).expanduser()
    if plain.is_dir() and (plain.is_absolute() or os.sep in str(path)):
        return plain
    if plain.is_absolute() or str(path).startswith((".", "~")):
        raise MissingDataError(f"{request.where}: dataset_path {str(path)!r}: there is no folder {beside}")
    return None


def in_folder(folder: Path, request: DataRequest) -> FilesBySplit:
    """Find the files of a folder that holds a data set, by split. Raises ``DataError`` if there are no files."""
    stated = request.kwargs.get("data_files")
    if not stated:
        return hub_copy(folder, request.name, request.where)
    by_split = stated if isinstance(stated, Mapping) else {"train": stated}
    inside = {
        split: [str(folder / str(item)) for item in (value if isinstance(value, list) else [value])]
        for split, value in by_split.items()
    }
    return data_files(inside, str(folder), [], request.where)


def _in_data_root(request: DataRequest, split: str) -> DataSet:
    root, path = Path(str(request.data_root)).expanduser(), str(request.path)
    folders = data_root_folders(root, path, request.where, request.task)
    if folders:
        files = in_folder(folders[0], request)
    elif request.kwargs.get("data_files"):
        files = in_folder(root, request)
    else:
        files = beside_folders(root, path, request.name, request.where, request.task)
    if split not in files and list(files) == ["train"]:
        files = {split: files["train"]}
    if not folders:
        _check_one_set(files.get(split, []), root, request)
        log.warning(
            "%s: task %r reads %s; --data_root %s has no folder of that name, so nothing says that this is %s",
            request.where, request.task, ", ".join(str(file) for file in files.get(split, [])), root, path,
        )  # fmt: skip
    where = str(folders[0] if folders else root)
    made = _of_files(files, _csv_options(request), where, request.media)  # what the hub returned, wherever
    made.from_root = None if folders else root
    return made


def _check_one_set(files: Sequence[Path], root: Path, request: DataRequest) -> None:
    """Refuse parquet files that belong to several data sets."""
    if len(files) < 2 or any(file.suffix != ".parquet" for file in files):
        return
    first, *others = (set(ParquetSource([file]).columns) for file in files)
    for columns, file in zip(others, files[1:], strict=True):
        if columns != first:
            raise DataError(
                f"{request.where}: task {request.task!r}: {root} holds several data sets ({files[0].name} and "
                f"{file.name} have different columns: {', '.join(sorted(columns ^ first))}); give each a folder of its "
                f"name, such as {root / str(request.path).rpartition('/')[2]}"
            )


def _of_files(files: FilesBySplit, options: Mapping[str, Any], where: str, media: MediaPolicy | None = None) -> DataSet:
    openers = {}
    for split, of_split in files.items():
        builder = SUFFIXES.get(of_split[0].suffix)
        if builder is None:
            raise DataError(f"{of_split[0]}: files of this type are not read; use one of {', '.join(SUFFIXES)}")
        openers[split] = _opener(builder, tuple(of_split), options)
    return DataSet(openers, where, media)


def of_datasets(splits: Mapping[str, Any], where: str, media: MediaPolicy | None = None) -> DataSet:
    """Make the data of a task from ``datasets.Dataset`` objects by split. Lists of rows and streams are read whole.

    Opening a split of any other kind raises ``DataError``.
    """
    openers = {split: functools.partial(hub.source_of, made, where, split) for split, made in splits.items()}
    return DataSet(openers, where, media)


def is_on_hub(request: DataRequest) -> bool:
    """Return whether the data comes from the hub, not from a function, local files or a copy below ``--data_root``."""
    if callable(request.path) or request.data_root is not None or request.kwargs.get("load_from_disk"):
        return False
    return str(request.path) not in (*LOCAL_BUILDERS, "pandas") and _local_folder(request) is None


def hub_arguments(request: DataRequest) -> dict[str, Any]:
    """Return the arguments of ``datasets.load_dataset`` for a data set of the hub.

    ``token: true`` is dropped. The hub's libraries use a stored token anyway, and as an argument ``true`` makes public
    data sets fail if no token is stored.
    """
    kwargs = {key: value for key, value in request.kwargs.items() if key not in _OWN_KEYS}
    kwargs = {key: str(value) if isinstance(value, StatedPath) else value for key, value in kwargs.items()}
    if not request.trust_remote_code:
        kwargs.pop("trust_remote_code", None)  # only the user can enable code of a repository, not a task
    is_for_videos = request.kwargs.get("video") or request.kwargs.get("From_YouTube")
    if request.kwargs.get("cache_dir") and not is_for_videos:
        kwargs["cache_dir"] = str(request.kwargs["cache_dir"])
    if kwargs.get("token") is True:
        kwargs.pop("token")
    if kwargs.get("features") is not None:
        kwargs["features"] = hub.stated_features(kwargs["features"])
    return kwargs
