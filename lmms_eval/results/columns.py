"""Samples as rows of a table with typed columns, and metadata columns that divide documents."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lmms_eval.engine.clusters import label
from lmms_eval.results.reading import PREFIX, reading_columns
from lmms_eval.results.sample import OWN_KEYS, Sample, json_cell

if TYPE_CHECKING:
    import pandas
    import pyarrow


MOST_VALUES = 1000
LONGEST_VALUE = 200
"""A column with more values, or with longer ones, does not divide documents."""


class MetadataColumns:
    """Collector of text columns that divide documents: they have a few values, each of several documents."""

    def __init__(self, rows: int = 0) -> None:
        self.rows = rows
        """Number of rows; may grow while rows are added."""
        self._values: dict[str, list[str | None]] = {}
        self._known: dict[str, dict[str, str]] = {}
        self._dropped: set[str] = set()

    def add(self, row: int, name: str, value: Any) -> None:
        if name in self._dropped:
            return
        text = label(value)
        if text is None:
            return
        known = self._known.setdefault(name, {})
        text = known.setdefault(text, text)
        if len(text) > LONGEST_VALUE or len(known) > MOST_VALUES:
            self._dropped.add(name)
            del self._known[name]
            self._values.pop(name, None)
            return
        values = self._values.setdefault(name, [])
        if len(values) <= row:
            values.extend([None] * (row + 1 - len(values)))
        values[row] = text

    def found(self) -> dict[str, Sequence[str | None]]:
        """Return the columns whose values belong to two or more documents on average."""
        kept = {name: values for name, values in self._values.items() if 2 * len(self._known[name]) <= self.rows}
        return {name: [*values, *[None] * (self.rows - len(values))] for name, values in kept.items()}


def metadata_of(rows: int, fields: Iterator[tuple[int, Mapping[str, Any]]]) -> dict[str, Sequence[str | None]]:
    """Collect the metadata columns from each row's fields."""
    columns = MetadataColumns(rows)
    for row, values in fields:
        for name, value in values.items():
            columns.add(row, str(name), value)
    return columns.found()


Kind = Literal["nothing", "boolean", "integer", "number", "text", "texts", "numbers", "json"]
"""Kind of a column; ``texts`` and ``numbers`` are lists, and ``json`` is written as text."""
BATCH = 2_000
"""Rows held in memory at once while a table is written."""
_LARGEST = 2**63

_FIXED: Mapping[str, Callable[[Sample], Any]] = {
    "task": lambda sample: sample.task,
    "doc_id": lambda sample: sample.doc_id,
    "filter": lambda sample: sample.filter or None,
    "status": lambda sample: sample.status,
    "outcome": lambda sample: sample.outcome,
    "score": lambda sample: sample.score,
    "prediction": lambda sample: sample.prediction,
    "target": lambda sample: sample.target,
    "prompt": lambda sample: sample.prompt,
    "raw": lambda sample: sample.raw,
    "thoughts": lambda sample: sample.thoughts or None,
    "blank": lambda sample: sample.blank or None,
    "reason": lambda sample: sample.reason or None,
    "finish_reason": lambda sample: sample.finish_reason or None,
    "elapsed": lambda sample: sample.elapsed,
    "input_tokens": lambda sample: sample.tokens.input,
    "output_tokens": lambda sample: sample.tokens.output,
    "reasoning_tokens": lambda sample: sample.tokens.reasoning,
    "media": lambda sample: list(sample.media) or None,
    "judge": lambda sample: sample.judge,
    "drew": lambda sample: True if sample.drew else None,
}
FIXED = tuple(_FIXED)
"""Columns of every sample. Tables leave out those without any value."""
SAMPLE_ONLY = frozenset(FIXED) - {"task", "doc_id"} | {"tokens"}
"""Columns that a document has only after it is answered."""


def value_of(sample: Sample, name: str) -> Any:
    """Return the value of a column, or ``None`` if the sample has none.

    Names are looked up in this order: ``FIXED``; ``audit.NAME``, how the answer was read (``reading_columns``);
    ``tokens``, the sum of input and output tokens; metrics (their number if they have one); ``METRIC.KEY`` and
    ``doc.KEY``; and the fields of the document and of the metrics' values.
    """
    if name in _FIXED:
        return _FIXED[name](sample)
    if name.startswith(PREFIX) and name not in sample.record:
        return reading_columns(sample).get(name)
    if name == "tokens":
        tokens = sample.tokens
        return None if tokens.input is None and tokens.output is None else (tokens.input or 0) + (tokens.output or 0)
    if name not in OWN_KEYS and name in sample.record:
        value = sample.record[name]
        number = sample.number(name)
        return value if number is None or isinstance(value, bool | int | float) else number
    head, mark, key = name.partition(".")
    if mark:
        inner = sample.doc if head == "doc" else sample.record.get(head)
        if isinstance(inner, Mapping) and key in inner:
            return inner[key]
    return sample.fields.get(name)


def column_names(sample: Sample) -> set[str]:
    """Return the names of all columns of a sample (``value_of``)."""
    names = {*FIXED, "tokens", *sample.metrics, *sample.fields, *reading_columns(sample)}
    names |= {f"doc.{key}" for key in sample.doc}
    for metric, value in sample.metrics.items():
        if isinstance(value, Mapping):
            names |= {f"{metric}.{key}" for key in value}
    return names


def row_of(sample: Sample) -> dict[str, Any]:
    """Return a sample as a flat row: ``FIXED``, then metrics, then ``doc.KEY``."""
    row = {name: read(sample) for name, read in _FIXED.items()}
    for metric, value in sample.metrics.items():
        name = metric if metric not in row else f"metric.{metric}"
        if isinstance(value, Mapping):
            row[name] = sample.number(metric)
            row |= {f"{name}.{key}": item for key, item in value.items() if key != sample.keys.score_key}
        else:
            row[name] = value
    row |= {f"doc.{key}": value for key, value in sample.doc.items()}
    return row


class Columns:
    """Names and kinds of a table's columns, found by reading all of its rows."""

    def __init__(self, kinds: dict[str, Kind] | None = None) -> None:
        self.kinds: dict[str, Kind] = dict.fromkeys(FIXED, "nothing") if kinds is None else kinds

    def see(self, row: Mapping[str, Any]) -> None:
        kinds = self.kinds
        for name, value in row.items():
            known = kinds.get(name, "nothing")
            if value is None:
                kinds[name] = known
            elif not (known == "text" and type(value) is str):
                kinds[name] = _joined(known, _kind(value))

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Columns:
        """Read samples and return their columns, without those that have no value."""
        found = cls()
        for sample in samples:
            found.see(row_of(sample))
        found.kinds = {name: kind for name, kind in found.kinds.items() if kind != "nothing"}
        return found

    def plain(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with a value of the column's kind, or ``None``, for each column."""
        return {name: _as_kind(row.get(name), kind) for name, kind in self.kinds.items()}

    def schema(self) -> pyarrow.Schema:
        """Return the schema of an Arrow table."""
        import pyarrow

        types = {
            "boolean": pyarrow.bool_(),
            "integer": pyarrow.int64(),
            "number": pyarrow.float64(),
            "texts": pyarrow.list_(pyarrow.string()),
            "numbers": pyarrow.list_(pyarrow.float64()),
        }
        return pyarrow.schema([(name, types.get(kind, pyarrow.string())) for name, kind in self.kinds.items()])


def batches(samples: Iterable[Sample], columns: Columns) -> Iterator[pyarrow.RecordBatch]:
    """Yield Arrow batches of samples, ``BATCH`` rows each."""
    import pyarrow

    schema = columns.schema()
    rows = (columns.plain(row_of(sample)) for sample in samples)
    while block := list(itertools.islice(rows, BATCH)):
        yield pyarrow.RecordBatch.from_pylist(block, schema=schema)


def data_frame(samples: Callable[[], Iterable[Sample]]) -> pandas.DataFrame:
    """Return a data frame with a row for each sample. Missing integers, booleans and texts are ``pd.NA``.

    ``samples`` iterates over the samples from the beginning; it is called twice.
    """
    import pandas as pd
    import pyarrow

    columns = Columns.of(samples())
    types = {
        pyarrow.int64(): pd.Int64Dtype(),
        pyarrow.bool_(): pd.BooleanDtype(),
        pyarrow.string(): pd.StringDtype(),
    }
    table = pyarrow.Table.from_batches(batches(samples(), columns), columns.schema())
    frame: pd.DataFrame = table.to_pandas(types_mapper=types.get)
    return frame


def sound_text(text: str) -> str:
    """Return a text that can be encoded as UTF-8, with lone surrogates replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _kind(value: Any) -> Kind:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -_LARGEST <= value < _LARGEST else "text"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            return "texts"
        if all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
            return "numbers"
    return "json"


def _joined(one: Kind, other: Kind) -> Kind:
    """Return the narrowest kind that holds the values of both kinds."""
    if one == other or other == "nothing":
        return one
    if one == "nothing":
        return other
    kinds = {one, other}
    if kinds == {"integer", "number"}:
        return "number"
    return "json" if kinds & {"texts", "numbers", "json"} else "text"


def _as_kind(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "number":
        return float(value)
    if kind == "text":
        return sound_text(value if isinstance(value, str) else str(value))
    if kind == "json":
        return json_cell(value)
    if kind == "texts":
        return [sound_text(item) for item in value]
    return [float(item) for item in value] if kind == "numbers" else value
