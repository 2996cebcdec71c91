from __future__ import annotations

from lmms_eval.tasks.general_bench.facts import find_metric
from lmms_eval.tasks.general_bench.nlp.types import OPEN_QA, TYPES, UNKNOWN, type_of
from tests.cases import for_each
from tests.tasks.general_bench.nlp.kit import ITEMS


def test_the_types_of_the_specification():
    assert set(TYPES) == set(ITEMS)
    assert len(TYPES) == 26
    assert {name for name, kind in TYPES.items() if kind.is_number} == {"Time Series"}


@for_each("name", ["unheard of", "", None, 3, ["OpenQA"], "ner ", "NER"])
def test_any_other_type_is_asked_as_open_question(name):
    assert type_of(name) is UNKNOWN
    assert (UNKNOWN.metric, UNKNOWN.max_new_tokens) == (OPEN_QA.metric, OPEN_QA.max_new_tokens)


def test_metrics_are_spelt_as_in_the_workbook():
    assert {find_metric(kind.metric).key for kind in TYPES.values()} == {
        "accuracy", "f1", "rouge1", "bleu1", "codebleu", "micro_f1", "mae",
    }  # fmt: skip


@for_each(
    ("limit", "names"),
    [
        (16, {"Code Defect Detection"}),
        (
            64,
            {"Time Series", "classification", "multiple choice", "multi label classification", "extraction"}
            | {"relation extraction", "event detection", "parsing"},
        ),
        (128, {"Dialogue", "Paraphrase Generation", "Grammar Correction", "ner"}),
        (
            512,
            {"Story Generation", "Mathematical Word Problem Solving", "Proof", "Table-to-Text Generation"},
        ),
    ],
)
def test_lengths_of_replies(limit, names):
    assert {name for name, kind in TYPES.items() if kind.max_new_tokens == limit} == names


def test_all_other_replies_have_256_tokens():
    assert {kind.max_new_tokens for kind in TYPES.values()} == {16, 64, 128, 256, 512}
    assert sum(kind.max_new_tokens == 256 for kind in TYPES.values()) == 9
