"""The table of facts and the registry belong together."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks import facts
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.facts import all_facts, facts_of
from tests.cases import for_each

CATALOGUE = Catalogue()


def test_every_task_has_facts() -> None:
    assert [name for name in CATALOGUE.tasks if facts_of(name) is None] == []


def test_rows_are_sorted_and_each_name_stands_once() -> None:
    names = [row.name for row in all_facts()]
    assert names == sorted(set(names))


def test_every_row_whose_task_is_in_the_registry_counts_for_one() -> None:
    for row in all_facts():
        known = [name for name in (*CATALOGUE.tasks, *CATALOGUE.groups) if fnmatchcase(name, row.name)]
        assert any(facts_of(name, name in CATALOGUE.groups) is row for name in known), row.name


def test_the_most_particular_row_counts() -> None:
    found = {name: facts_of(name) for name in ("milebench_docvqa", "milebench_gpr1200", "milebench_demo_docvqa")}
    assert {name: row and row.documents for name, row in found.items()} == {
        "milebench_docvqa": 200, "milebench_gpr1200": 600, "milebench_demo_docvqa": None,
    }  # fmt: skip
    assert facts_of("nothing") is None


def test_a_group_has_a_row_of_its_own_or_none() -> None:
    assert facts_of("milebench_t1") is not None
    assert facts_of("milebench_t1", is_group=True) is None
    group = facts_of("milebench", is_group=True)
    assert group is not None and group.documents == 26 * 200 + 2 * 320 + 600


@for_each(("column", "cell"), [(1, "many"), (2, "smell"), (3, "luck"), (4, "luck"), (9, "no-luck")])
def test_a_wrong_cell_is_told(column: int, cell: str, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    head = "name\tdocuments\tmodalities\tneeds\tuses\tchance\tdownload\tlicence\tpublished\tcontrols"
    cells = ["t", "3", "text", "", "", "", "", "", "", ""]
    cells[column] = cell
    (tmp_path / "facts.tsv").write_text(f"{head}\n" + "\t".join(cells) + "\n")
    monkeypatch.setattr(facts, "FACTS", tmp_path / "facts.tsv")
    with pytest.raises(TaskError, match=f"row 't': {cell}"):
        all_facts.__wrapped__()


@for_each(
    ("tag", "modality"),
    [("vqa", "image"), ("ocr", "image"), ("hallucination", "image"), ("video", "video"), ("audio", "audio")],
)
def test_tasks_of_a_skill_have_its_modality_and_reference_answers(tag: str, modality: str) -> None:
    for name in CATALOGUE.members(tag):
        facts = facts_of(name)
        assert facts is not None and modality in facts.modalities and "server" not in facts.needs, name


def test_the_tag_of_mathematics() -> None:
    assert {"gsm8k", "mathvista_testmini_format"} <= set(CATALOGUE.members("math"))
