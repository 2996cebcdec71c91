"""The page ``/docs``: the endpoints and their fields, from the OpenAPI description, as plain HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any

_HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>lmms-eval server</title>'
    '<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}'
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td{border-top:1px solid #8886;padding:.2rem .6rem .2rem 0;"
    "vertical-align:top;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .3rem}</style>"
    "<h1>lmms-eval server</h1><p>The same as a schema: <a href=openapi.json>openapi.json</a></p>"
)


def reference_page(schema: Mapping[str, Any]) -> str:
    """Make the page of an OpenAPI description."""
    return _HEAD + "".join(_parts(schema))


def _parts(schema: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in schema.get("paths", {}).items():
        for method, told in methods.items():
            yield f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"
            yield f"<p>{html.escape(told.get('description', ''))}</p>"
            rows = [*_parameters(told), *_fields(told, schema)]
            if rows:
                yield f"<table>{''.join(rows)}</table>"


def _parameters(told: Mapping[str, Any]) -> Iterator[str]:
    for one in told.get("parameters", ()):
        yield _row(one["name"], one.get("schema", {}), one.get("description", f"in the {one['in']}"))


def _fields(told: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in body:
        body = schema["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    for name, field in body.get("properties", {}).items():
        yield _row(name, field, field.get("description", ""))


def _row(name: str, field: Mapping[str, Any], text: str) -> str:
    default = field.get("default")
    told = f" (default: {default})" if default is not None else ""
    return f"<tr><td><code>{html.escape(name)}</code><td>{html.escape(_kind(field))}<td>{html.escape(text + told)}"


def _kind(field: Mapping[str, Any]) -> str:
    parts = field.get("anyOf", [field])
    return " or ".join(str(part.get("type", part.get("enum", "any"))) for part in parts if part.get("type") != "null")
