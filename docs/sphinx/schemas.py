"""Write the page of the keys of every file of a run, from its JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.results.schema import TYPES, schema_file

_HEAD = """# Keys of every file

The JSON Schemas of `lmms_eval/schemas` as tables, made from the types in the code. What the files are for, and the keys
in their context: [Results](../docs/results.md), [The journal](../docs/journal.md). A key in *italics* may be absent.
"""
_FILES = {
    "results": "STAMP_results.json",
    "sample": "STAMP_samples_TASK.jsonl, a line",
    "response": "responses-RANK.jsonl, a line",
    "score": "scores-RANK.jsonl, a line",
    "judgement": "judgements-RANK.jsonl, a line",
    "run": "run.json",
}
_BASES = {"judgement": "response", "JudgePart": "JudgeCounts"}
"""Types that are described together with the type that they extend."""


def write(file: Path) -> None:
    """Write the page."""
    lines, told = [_HEAD], dict[str, Any]()
    for name in TYPES:
        schema = json.loads(schema_file(name).read_text(encoding="utf-8"))
        parts = {name: schema, **schema.get("$defs", {})}
        for part, definition in parts.items():
            if told.setdefault(part, definition) != definition:
                raise SystemExit(f"{schema_file(name)}: {part} differs from that of another schema; rename one of them")
            if told[part] is definition and "properties" in definition:
                base = parts.get(_BASES.get(part, "")) or told.get(_BASES.get(part, ""), {})
                title = f"### {part}" if part in schema.get("$defs", {}) else f"## {_FILES[name]}"
                lines += [title, "", *_table(definition, base.get("properties", {}))]
    file.write_text("\n".join(lines), encoding="utf-8")


def _table(schema: Mapping[str, Any], base: Mapping[str, Any]) -> Iterator[str]:
    if "description" in schema:
        yield f"{_plain(schema['description'])}\n"
    yield "| key | type | meaning |"
    yield "|---|---|---|"
    required = set(schema.get("required", ()))
    for key, value in schema["properties"].items():
        name = f"`{key}`" if key in required else f"*`{key}`*"
        meaning = value.get("description") or base.get(key, {}).get("description", "")
        yield f"| {name} | {_type(value)} | {_plain(meaning)} |"
    yield ""


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").replace("|", "\\|").split())


def _type(value: Any) -> str:
    """Describe the type of a value in words."""
    if not isinstance(value, Mapping):
        return "anything"
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        return " or ".join(_type(one) for one in value["anyOf"])
    if "enum" in value or "const" in value:
        return ", ".join(f"`{json.dumps(one)}`" for one in value.get("enum", [value.get("const")]))
    kind = value.get("type", "anything")
    if kind == "array":
        parts = value.get("prefixItems")
        return f"list: {', '.join(_type(one) for one in parts)}" if parts else f"list of {_type(value.get('items'))}"
    if kind == "object":
        inner = value.get("additionalProperties")
        return f"by name: {_type(inner)}" if isinstance(inner, Mapping) else "object"
    return str(kind)
