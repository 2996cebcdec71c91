"""Columns that a task asks of its documents: tried on the first one, so that an absent one costs no question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError, LmmsEvalError
from lmms_eval.tasks.data import Documents
from lmms_eval.tasks.yaml.prompts import Prompts
from lmms_eval.tasks.yaml.render import RenderError


def check_columns(prompts: Prompts, documents: Documents, split: str, from_root: Path | None = None) -> None:
    """Try the keys that read documents on the first one.

    ``from_root``: the ``--data_root`` in which the files lie without a folder of the benchmark's name. Then every key
    must find its columns, since the files may be another benchmark's.

    Raises:
        DataError: there are no documents, or a column that a key or the task's own code reads is absent or of another
            kind; names the column and those that are there.
    """
    where, config = prompts.where, prompts.config
    if not len(documents):
        raise DataError(f"{where}: {split} has no documents ({documents.source.where})")
    doc = documents.text_view(0)
    checks: list[tuple[str, Callable[[Mapping[str, Any]], Any]]] = [
        ("doc_to_text", prompts.text), ("doc_to_choice", prompts.choices),
    ]  # fmt: skip
    if config.process_results is None and not prompts.options.predict_only:
        checks.append(("doc_to_target", prompts.target))
    for key, value_of in checks:
        spec = getattr(config, key)
        if isinstance(spec, str):
            _check_text(key, spec, value_of, doc, documents, where)
        elif callable(spec):
            _check_function(key, value_of, doc, documents, where)
    if from_root is not None:
        _check_fit(prompts, documents, from_root)
    documents.drop(0)  # with what was made of it, until it is asked
    if isinstance(config.doc_to_visual, str) and config.doc_to_visual not in documents.columns:
        raise DataError(_no_column(where, "doc_to_visual", config.doc_to_visual, documents))


def _check_fit(prompts: Prompts, documents: Documents, root: Path) -> None:
    """Try the functions that read whole documents, too, and the reference answer."""
    config, doc = prompts.config, documents[0]
    tried: list[tuple[str, Callable[[Mapping[str, Any]], Any]]] = [("doc_to_messages", prompts.own_turns)]
    if config.doc_to_target is not None:
        tried.append(("doc_to_target", prompts.target))
    for key, value_of in tried:
        spec = getattr(config, key)
        try:
            if isinstance(spec, str) and spec.isidentifier() and spec not in doc:
                raise DataError(_no_column(prompts.where, key, spec, documents))
            _check_function(key if spec is not None else "doc_to_visual", value_of, doc, documents, prompts.where)
        except DataError as error:
            raise DataError(
                f"{error}. --data_root {root} has no folder of this benchmark's name, so the file may be another "
                "one's: put this one's data into a folder of its name there"
            ) from error


def _check_text(
    key: str,
    spec: str,
    value_of: Callable[[Mapping[str, Any]], Any],
    doc: Mapping[str, Any],
    documents: Documents,
    where: str,
) -> None:
    """The name of a column, or a template."""
    if spec in doc:
        if key == "doc_to_text" and isinstance(doc[spec], Mapping | list):
            kind = "mapping" if isinstance(doc[spec], Mapping) else "list"
            raise DataError(
                f"{where}: key {key!r}: column {spec!r} of {documents.source.where} holds a {kind}, not a text; write "
                f"a template that picks what is asked, such as '{{{{{spec}[...]}}}}'"
            )
        return
    if spec.isidentifier():
        raise DataError(_no_column(where, key, spec, documents))
    try:
        value_of(doc)
    except RenderError as error:
        raise DataError(f"{error} ({documents.source.where})") from error


def _check_function(
    key: str, value_of: Callable[[Mapping[str, Any]], Any], doc: Mapping[str, Any], documents: Documents, where: str
) -> None:
    """The task's own code: only a column that it misses is told now, the rest by the documents that it concerns."""
    try:
        value_of(doc)
    except (LmmsEvalError, NotEvaluated) as error:
        absent = error.__cause__
        column = absent.args[0] if isinstance(absent, KeyError) and absent.args else None
        if isinstance(column, str) and column not in documents.columns:
            raise DataError(_no_column(where, key, column, documents)) from error


def _no_column(where: str, key: str, name: str, documents: Documents) -> str:
    columns = ", ".join(documents.columns)
    return (
        f"{where}: key {key!r}: there is no column {name!r} in {documents.source.where}; there is: {columns}; the "
        "task's card (README.md beside this file, where it has one) names the columns that it was written for"
    )
