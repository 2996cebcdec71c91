"""Living code and the names of the family are kept apart."""

from __future__ import annotations

from lmms_eval.aliases import find_alias
from tests.test_layout import imports, modules

USERS = {
    "lmms_eval.loggers.evaluation_tracker": "writes results files, which compat must not know",
    "lmms_eval.loggers.wandb_logger": "as before",
}
"""Modules outside of ``compat`` that import from it, with the reason."""


def _is_compat(module: str) -> bool:
    return f"{module}.".startswith("lmms_eval.compat.")


def test_only_modules_at_the_familys_paths_import_them() -> None:
    users = {name for name, tree in modules().items() if not _is_compat(name) and any(map(_is_compat, imports(tree)))}
    assert users == set(USERS)


def test_living_code_does_not_use_the_familys_paths() -> None:
    found = {name: [used for used in imports(tree) if find_alias(used)] for name, tree in modules().items()}
    assert {name: used for name, used in found.items() if used} == {}
