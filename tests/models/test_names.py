"""Every model name of the family runs here, or says in one line what it needs."""

from __future__ import annotations

import pytest

from lmms_eval.errors import UnknownNameError
from lmms_eval.models.registry import ModelRegistry, foreign_names
from tests.cases import for_each
from tests.models.names_table import DOCUMENT, NAMES, document, rows


def test_the_document_is_the_table() -> None:
    assert DOCUMENT.read_text("utf-8") == document(), "run: python -m tests.models.names_table"


def test_no_name_both_runs_and_needs_more() -> None:
    registry = ModelRegistry()
    listed = {name for model in registry.list_models() for name in (model.model_id, *model.aliases)}
    assert not listed & set(foreign_names())
    assert set(NAMES) <= listed | set(foreign_names())


@for_each("row", [row for row in rows() if row.group != "needs"], ids=lambda row: row.name)
def test_a_name_that_runs_has_a_class(row: object) -> None:
    registry = ModelRegistry()
    resolved = registry.resolve(row.name)  # type: ignore[attr-defined]
    assert resolved.load() is not None


def test_a_name_that_needs_more_says_so_in_one_line() -> None:
    with pytest.raises(UnknownNameError) as caught:
        ModelRegistry().resolve("longva")
    assert str(caught.value) == (
        "unknown model 'longva': it is the family's and needs the package longva; its class runs as a plugin: "
        "LMMS_EVAL_PLUGINS=PACKAGE, see docs/model_guide.md; docs/models/names.md lists the names that run without one"
    )


def test_a_plugin_may_take_such_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.api.registry import MODEL_REGISTRY
    from lmms_eval.models.baseline import Baseline

    monkeypatch.setitem(MODEL_REGISTRY, "longva", Baseline)
    assert ModelRegistry().resolve("longva").kind == "chat"
