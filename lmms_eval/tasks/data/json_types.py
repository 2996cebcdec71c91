"""Arrow types that hold for several parts of one file, each of which was read with types of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def merged_schema(first: pa.Schema, second: pa.Schema) -> tuple[pa.Schema, set[str]]:
    """Merges two schemas; columns whose types clash are text in the result, and named beside it."""
    import pyarrow as pa

    fields, clashes = {field.name: field.type for field in first}, set[str]()
    for field in second:
        kind = merged_type(fields[field.name], field.type) if field.name in fields else field.type
        if kind is None:
            clashes.add(field.name)
        fields[field.name] = pa.string() if kind is None else kind
    return pa.schema(list(fields.items())), clashes


def merged_type(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Returns the type that Arrow's JSON reader gives to values of both types; ``None`` where it refuses them."""
    import pyarrow as pa

    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    numbers = (pa.types.is_integer, pa.types.is_floating)
    if all(any(is_kind(kind) for is_kind in numbers) for kind in (first, second)):
        return pa.float64()
    texts = (pa.types.is_string, pa.types.is_timestamp)
    if all(any(is_kind(kind) for is_kind in texts) for kind in (first, second)):
        return pa.string()
    if pa.types.is_list(first) and pa.types.is_list(second):
        item = merged_type(first.value_type, second.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_struct(first) and pa.types.is_struct(second):
        return _merged_struct(first, second)
    return None


def _merged_struct(first: pa.StructType, second: pa.StructType) -> pa.DataType | None:
    import pyarrow as pa

    fields = {field.name: field.type for field in first}
    for field in second:
        kind = merged_type(fields[field.name], field.type) if field.name in fields else field.type
        if kind is None:
            return None
        fields[field.name] = kind
    return pa.struct(list(fields.items()))
