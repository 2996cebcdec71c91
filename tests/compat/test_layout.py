"""Living code and the names of the family are told apart by the folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.test_layout import imports, modules

THICK = {
    "lmms_eval.loggers.evaluation_tracker": "writes results files, which compat must not know",
    "lmms_eval.loggers.wandb_logger": "as before",
    "lmms_eval.models.registry_v2": "gives the registry its second name",
}
"""Modules at the family's paths that hold code of their own, with the reason."""


def _importing() -> Iterator[str]:
    """Modules outside of the package that import from it."""
    for name, tree in modules().items():
        if not _is_compat(name) and any(map(_is_compat, imports(tree))):
            yield name


def _is_compat(module: str) -> bool:
    return f"{module}.".startswith("lmms_eval.compat.")


def _is_thin(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__" or all(one.asname == one.name for one in statement.names)
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)  # the docstring


def test_only_thin_modules_import_them() -> None:
    importing = set(_importing())
    assert {"lmms_eval.imports", "lmms_eval.llm_judge", "lmms_eval.models.model_utils.gen_metrics"} <= importing
    thick = {name for name in importing if not all(map(_is_thin, modules()[name].body))}
    assert thick == set(THICK)


def test_living_code_does_not_use_the_thin_modules() -> None:
    thin = set(_importing())
    users = {name: thin.intersection(imports(tree)) for name, tree in modules().items() if name not in thin}
    assert {name: used for name, used in users.items() if used} == {}
