"""Small helpers that plugins and task files of the family import: optional packages, batches, texts, file names."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from loguru import logger

from lmms_eval.errors import MissingOptionalDependencyError as MissingOptionalDependencyError
from lmms_eval.errors import UsageError

eval_logger = logger
"""The log of events that tasks and plugins write to."""


def optional_import(module: str, attribute: str | None = None, fallback: Any = None) -> tuple[Any, bool]:
    """Return a module or one of its attributes, and ``True``; ``fallback`` and ``False`` if it is not installed.

    An error that an installed package raises while it is imported is passed on.
    """
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module == missing or module.startswith(f"{missing}."):
            return fallback, False
        raise
    if attribute is None:
        return found, True
    return getattr(found, attribute, fallback), hasattr(found, attribute)


def is_package_available(name: str) -> bool:
    """Return whether a package can be found. Its parents are imported; the package itself is not."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False  # a parent is absent
    except ValueError:
        return True  # the module is imported already and has no specification


def require_package(package: str, extras: str | None = None, feature: str | None = None) -> None:
    """Raise ``MissingOptionalDependencyError`` if a package, the name of a module, is not installed.

    The error is an ``ImportError`` that states how to install the package: by the extra of ``lmms_eval``, if there is
    one. ``feature`` is the feature that needs it, for the message.
    """
    if is_package_available(package):
        return
    purpose = f" for {feature}" if feature else ""
    source = f"lmms_eval[{extras}]" if extras else package
    raise MissingOptionalDependencyError(
        f"{package!r} is required{purpose} but not installed. Install with: pip install {source}"
    )


def make_lazy_getattr(names: Mapping[str, tuple[str, str]]) -> Callable[[str], Any]:
    """Make a ``__getattr__`` that imports names when they are first used, each from its module and attribute."""

    def attribute(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"no attribute {name!r}; there are {', '.join(sorted(names))}")
        module, found = names[name]
        return getattr(importlib.import_module(module), found)

    return attribute


def is_json(string: str) -> bool:
    """Return whether a text is JSON; ``NaN`` counts as JSON. Raises ``TypeError`` if ``string`` is not a text."""
    try:
        json.loads(string)
    except (ValueError, RecursionError):
        return False
    return True


def hash_string(string: str) -> str:
    """Return the SHA-256 hash of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(string.encode("utf-8")).hexdigest()


def handle_non_serializable(value: Any) -> int | str | list[Any]:
    """Convert a value for ``json.dumps(default=…)``: integers of NumPy, sets to lists, any other to its text."""
    if isinstance(value, set):
        return list(value)
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ in ("int32", "int64"):
        return int(value)
    return str(value)


Item = TypeVar("Item")


def create_iterator(
    raw_iterator: Iterable[Item], rank: int, world_size: int, limit: int | None = None, offset: int = 0
) -> Iterator[Item]:
    """Iterate over every ``world_size``-th item from ``offset + rank`` on, up to ``offset + limit``.

    Raises ``ValueError`` if a number is negative or ``world_size`` is below 1.
    """
    end = None if limit is None else offset + limit
    return islice(raw_iterator, offset + rank, end, world_size)


def get_file_datetime(filename: str) -> str:
    """Return the text after the last underscore of a file name, without ``.jsonl``."""
    return filename.rpartition("_")[2].replace(".jsonl", "")


def get_file_task_name(filename: str) -> str:
    """Return the text between the first and the last underscore of a file name.

    Without an underscore the result is the name without its last character, as in the family's own function.
    """
    return filename[filename.find("_") + 1 : filename.rfind("_")]


def get_latest_filename(filenames: Iterable[str]) -> str:
    """Return the file name whose date comes last as a text. Raises ``ValueError`` if there are no names."""
    return max(filenames, key=get_file_datetime)


def get_results_filenames(filenames: Iterable[str]) -> list[str]:
    """Return the names of results files."""
    return [name for name in filenames if "results" in name and ".json" in name]


def get_sample_results_filenames(filenames: Iterable[str]) -> list[str]:
    """Return the paths of samples files."""
    return [name for name in filenames if "/samples_" in name and ".json" in name]


T = TypeVar("T")
Size = Callable[[int, Sequence[Any]], int]


def _frozen(value: Any) -> Hashable:
    """Convert a value of nested mappings and lists to a dictionary key; equal values give equal keys."""
    if isinstance(value, Mapping):
        return frozenset((_frozen(key), _frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(_frozen(item) for item in value)
    return value if isinstance(value, Hashable) else repr(value)


def _restored(results: Iterable[tuple[int, Any]], size: int) -> list[Any]:
    """Return ``size`` places with each result at its number; places without a result are ``None``."""
    restored: list[Any] = [None] * size
    for index, result in results:
        restored[index] = result
    return restored


def chunks(items: Iterable[T], n: int = 0, fn: Size | None = None) -> Iterator[list[T]]:
    """Split into lists of ``n`` items, or of ``fn(index of the first item, all items)``; 0 gives one list of all."""
    everything = list(items)
    start = 0
    while start < len(everything):
        size = fn(start, everything) if fn is not None else n
        end = start + size if size > 0 else len(everything)
        yield everything[start:end]
        start = end


class Collator(Generic[T]):
    """Groups requests by equal generation arguments, sorts each group, yields batches and restores the order.

    ``sort_fn`` and ``group_fn`` take the argument tuple of a request. The value of ``group_fn``, by default the second
    argument, is equal within a batch; it may be a mapping. Without ``grouping``, all requests form one group.
    """

    def __init__(
        self,
        arr: Sequence[T],
        sort_fn: Callable[[T], Any],
        group_fn: Callable[[T], Any] = lambda item: item[1],  # type: ignore[index]
        grouping: bool = False,
    ) -> None:
        self._items, self._sort_fn = list(arr), sort_fn
        groups: dict[Hashable, list[int]] = {}
        for index, item in enumerate(self._items):
            groups.setdefault(_frozen(group_fn(item)) if grouping else None, []).append(index)
        self._groups = [sorted(group, key=lambda index: sort_fn(self._items[index])) for group in groups.values()]
        self._yielded: list[int] = []

    def get_batched(self, n: int = 1, batch_fn: Size | None = None) -> Iterator[list[T]]:
        """Yield batches of up to ``n`` items (or of ``batch_fn(index, items)``) of one group."""
        self._yielded = []
        for group in self._groups:
            sizes = None if batch_fn is None else self._sizes(batch_fn, group)
            for batch in chunks(group, n, sizes):
                self._yielded.extend(batch)
                yield [self._items[index] for index in batch]

    def _sizes(self, batch_fn: Size, group: Sequence[int]) -> Size:
        items = [self._items[index] for index in group]
        return lambda start, _: batch_fn(start, items)

    def get_original(self, newarr: Sequence[Any]) -> list[Any]:
        """Reorder results from the order of the batches to the order of the requests."""
        if len(newarr) != len(self._yielded):
            raise ValueError(f"get_original: {len(newarr)} results for {len(self._yielded)} requests handed out")
        return _restored(zip(self._yielded, newarr, strict=True), len(self._items))

    def __len__(self) -> int:
        return len(self._items)


class Reorderer(Generic[T]):
    """Sorts items by a key and restores the order of their results."""

    def __init__(self, arr: Sequence[T], fn: Callable[[T], Any]) -> None:
        self._items = list(arr)
        self._order = sorted(range(len(self._items)), key=lambda index: fn(self._items[index]))

    def get_reordered(self) -> list[T]:
        return [self._items[index] for index in self._order]

    def get_original(self, newarr: Sequence[Any]) -> list[Any]:
        """Reorder results from the sorted order to the order of the items."""
        return _restored(zip(self._order, newarr, strict=True), len(self._items))


class Grouper(Generic[T]):
    """Groups items by a key and restores the order of their results."""

    def __init__(self, arr: Sequence[T], fn: Callable[[T], Hashable]) -> None:
        self._items = list(arr)
        self._groups: dict[Hashable, list[int]] = {}
        for index, item in enumerate(self._items):
            self._groups.setdefault(fn(item), []).append(index)

    def get_grouped(self) -> dict[Hashable, list[T]]:
        return {key: [self._items[index] for index in group] for key, group in self._groups.items()}

    def get_original(self, grouped: Mapping[Hashable, Sequence[Any]]) -> list[Any]:
        """Reorder results by group, each in the order of its group, to the order of the items."""
        pairs = (zip(self._groups[key], results, strict=True) for key, results in grouped.items())
        return _restored(chain.from_iterable(pairs), len(self._items))


def get_dtype(dtype: Any) -> Any:
    """Return a ``torch.dtype`` by name (``"bfloat16"``, ``"torch.bfloat16"``); ``"auto"`` and dtypes are unchanged.

    Raises ``UsageError`` if torch has no dtype of that name.
    """
    if not isinstance(dtype, str) or dtype == "auto":
        return dtype
    import torch

    found = getattr(torch, dtype.removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise UsageError(f"dtype {dtype!r} is unknown to torch; give float32, float16, bfloat16 or auto")
    return found


class _StopOnText:
    """Marks each sequence of the batch whose new text contains the stop text."""

    def __init__(self, tokenizer: Any, stop: str, prompt_length: int, batch_size: int) -> None:
        self.tokenizer, self.stop, self.prompt_length = tokenizer, stop, prompt_length
        self.done = [False] * batch_size
        # a token is at least one byte in any tokenizer, so the stop text lies within this many last tokens
        self.window = len(stop.encode("utf-8")) + 2

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        import torch

        recent = input_ids[:, self.prompt_length :][:, -self.window :]
        texts = self.tokenizer.batch_decode(recent)
        self.done = [done or self.stop in text for done, text in zip(self.done, texts, strict=True)]
        return torch.tensor(self.done, dtype=torch.bool, device=input_ids.device)


def stop_sequences_criteria(
    tokenizer: Any, stop_sequences: Sequence[str], initial_decoder_input_length: int, batch_size: int
) -> Any:
    """Make a ``transformers.StoppingCriteriaList`` that ends a sequence once its new text contains a stop text.

    The prompt, of ``initial_decoder_input_length`` tokens, is not searched.
    """
    from transformers import StoppingCriteriaList

    return StoppingCriteriaList(
        [_StopOnText(tokenizer, stop, initial_decoder_input_length, batch_size) for stop in stop_sequences if stop]
    )
