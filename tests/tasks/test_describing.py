"""Descriptions of tasks, groups and tags."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lmms_eval.config.rules import CONTROLS
from lmms_eval.errors import UnknownNameError
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.describing import PERMUTED, SearchTerms, _metrics, controls_of_source, describe, search
from lmms_eval.tasks.selection import choose

OWN = """
task: zz_own
tag: zz_tag
dataset_path: someone/somewhere
dataset_name: part
test_split: test
doc_to_text: "{{question}}"
doc_to_target: answer
metric_list:
  - metric: wer
  - metric: of_its_own
    higher_is_better: false
    range: [0, 5]
  - metric: open
    range: [0, null]
process_results: !function nowhere.at_all
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "group.yaml").write_text("group: zz_group\ntask: [zz_own, docvqa_val]\n")
    (tmp_path / "README.md").write_text("# Ours\n\nAbout whistling.\n\n| | |\n")
    return Catalogue([tmp_path])


def test_a_task_without_facts_of_which_no_code_is_imported(catalogue: Catalogue) -> None:
    found = describe("zz_own", catalogue)
    (part,) = found.parts
    assert (found.kind, found.documents, found.title, found.tags) == (
        "task",
        None,
        "Ours. About whistling.",
        ("zz_tag",),
    )
    assert (part.data_set, part.configuration, part.split) == ("someone/somewhere", "part", "test")
    assert [(m.name, m.higher_is_better, m.low, m.high) for m in part.metrics] == [
        ("wer", False, None, None), ("of_its_own", False, 0.0, 5.0), ("open", True, 0.0, None),
    ]  # fmt: skip
    assert "nowhere" not in sys.modules


def test_every_packaged_task_is_described() -> None:
    catalogue = Catalogue()
    for name in ("librispeech", "mmstar", "mlvu_dev"):
        assert describe(name, catalogue).parts
    for source in choose(list(catalogue.tasks), catalogue).sources:
        assert list(_metrics(source.raw)) or source.raw.get("metric_list") == []


def test_a_group_adds_up_where_all_is_stated(catalogue: Catalogue) -> None:
    found = describe("docvqa", catalogue)
    assert (found.kind, found.documents) == ("group", 5349 + 5188)
    assert {part.name: part.needs for part in found.parts} == {"docvqa_val": (), "docvqa_test": ("server",)}
    assert describe("zz_group", catalogue).documents is None
    assert describe("zz_tag", catalogue).kind == "tag"


def test_the_facts_of_a_group_come_before_those_of_its_tasks() -> None:
    found = describe("milebench", Catalogue())
    assert found.download == ("16.96 GB (six archives)",)
    assert len(found.parts) == 29


def test_an_unknown_name(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownNameError, match="did you mean zz_own"):
        describe("zz_owm", catalogue)


@pytest.mark.parametrize(
    ("wanted", "held", "not_held"),
    [
        (SearchTerms("ZZ_TAG"), {"zz_own"}, {"mme"}),
        (SearchTerms("whistling"), {"zz_own"}, {"mme"}),
        (SearchTerms(need="judge"), {"mmie"}, {"mme", "zz_own"}),
        (SearchTerms(modality="audio"), {"general_bench_audio_generation_audioedit"}, {"mme", "zz_own"}),
        (SearchTerms("docvqa", without=""), {"docvqa_val"}, {"docvqa_test", "mme"}),
        (SearchTerms("docvqa", without="judge"), {"docvqa_val", "docvqa_test"}, {"mme"}),
    ],
)  # fmt: skip
def test_search(catalogue: Catalogue, wanted: SearchTerms, held: set[str], not_held: set[str]) -> None:
    found = [entry.name for entry in search(catalogue, wanted)]
    assert held <= set(found)
    assert not not_held & set(found)


def test_names_and_tags_come_before_cards(catalogue: Catalogue) -> None:
    found = [any("video" in text for text in (one.name, *one.tags)) for one in search(catalogue, SearchTerms("video"))]
    assert found == sorted(found, reverse=True) and len(set(found)) == 2


def test_the_card_of_each_benchmark_names_the_controls_of_its_tasks() -> None:
    known = Catalogue()
    wanted: dict[Path, set[str]] = {}
    for name, entry in known.tasks.items():
        card = next(folder / "README.md" for folder in entry.file.parents if (folder / "README.md").is_file())
        (source,) = choose([name], known).sources
        wanted.setdefault(card, set()).update(controls_of_source(source))
    for card, names in wanted.items():
        section = card.read_text().partition("\n## Controls\n")[2].replace("--permute_choices", "permute-choices")
        shown = {control for control in (*CONTROLS, PERMUTED) if control in section}
        assert shown == names, card


def test_tasks_of_which_no_control_says_anything() -> None:
    assert describe("gsm8k", Catalogue()).controls == ()
    assert describe("milebench_textneedleinahaystack", Catalogue()).controls == ()
    assert describe("mmmu_val", Catalogue()).controls == (*CONTROLS, PERMUTED)
    assert describe("megabench_demo", Catalogue()).controls == CONTROLS[:3]
