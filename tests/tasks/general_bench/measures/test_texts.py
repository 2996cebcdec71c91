from __future__ import annotations

import contextlib
import json
import math
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import ConfigError, DataError
from lmms_eval.tasks.general_bench.facts import find_metric, find_task
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.measures.texts import MEASURES, code_language
from tests.cases import for_each

BY_NAME = {measure.name: measure for measure in MEASURES}
TEXT = [measure for measure in MEASURES if measure.form == "text"]
PLAIN = Context(options={"word_tokenizer": "white-space"})
NEEDS = {"rouge1": "nltk", "rouge_l": "nltk", "codebleu": "codebleu"}
WITH_JAVA = ("bleu4", "cider")
LONG_TEXTS = {
    "words": "ab cd " * 20_000,
    "letters": "a" * 1_000_000,
    "labels": "<p>" * 20_000,
    "digits": "1," * 20_000,
    "dots": ". " * 9_000,
}


def item(reference, prompt="", task="Causal Reasoning", **raw):
    here = Path(__file__).parent
    return Item("q1", find_task(task), "text", prompt, (), reference, here, here, raw)


def state(name, prediction, reference, **raw):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{name} needs {NEEDS[name]}")
    if name in WITH_JAVA and shutil.which("java") is None:
        pytest.skip(f"{name} needs Java")
    return BY_NAME[name].state(prediction, item(reference, **raw), PLAIN)


def value(name, *pairs):
    return BY_NAME[name].value([state(name, prediction, reference) for prediction, reference in pairs])


@for_each(
    ("name", "pairs", "expected"),
    [
        ("accuracy", [(" A ", "A"), ("a", "A"), ("B", ["A", "B"])], 200 / 3),
        ("accuracy/exact", [(" Rain", "rain"), ("rain.", "Rain")], 50),
        ("accuracy/substring", [("A RIVER sound", "River"), ("sea", "river")], 50),
        ("accuracy/contains", [("it is 31", "3"), ("NO", "No"), ("Cat", "cat")], 200 / 3),
        ("accuracy/choice", [("a tabby cat", "cat"), ("caterpillar", "cat"), ("The answer is B", "B")], 200 / 3),
        ("exact_match", [("On the left.", "on the left"), ("It is left", "left")], 50),
        ("f1", [("a b", "b c")], 50),
        ("anls", [("cola", "colt"), ("x", "colt")], 37.5),
        ("rouge1", [("the cats", ["a dog", "the cat"])], 100),
        ("rouge_l", [("a b c", "c b a")], 100 / 3),
        ("bleu1", [("a b", ["c d", "a b c d"])], 100 * math.exp(-1)),
        ("bleu1/corpus", [("The river", "the river"), ("a cat", "a dog")], 75),
        ("bleu4", [("A man rides a horse.", "a man rides a horse")], 100),
        ("cider", [("the red dog runs", "The red dog runs!"), ("two birds fly away", "two birds fly away")], 1000),
        ("micro_f1", [("a<p>b", "A<p>c"), ("x", "x")], 200 / 3),
        ("mae", [(1, 2), ("4.5", 2)], 1.75),
        ("rmse", [(1, 2), ("5", "2")], math.sqrt(5)),
        ("codebleu", [("def f(x):\n    y = x\n    return y\n",) * 2], 100),
    ],
)
def test_values_are_in_the_unit_of_the_table(name, pairs, expected):
    assert value(name, *pairs) == pytest.approx(expected, rel=1e-6)


def test_macro_accuracy_weighs_classes_alike():
    pairs = [("before", "before")] * 3 + [("before", "after"), ("after", "After")]
    assert value("macro_accuracy", *pairs) == pytest.approx(75)


def test_names_are_metrics_of_the_workbook():
    for measure in MEASURES:
        metric = find_metric(measure.name.split("/")[0])
        assert measure.is_mean is False or metric.higher_is_better
        assert measure.checked
    assert len(BY_NAME) == len(MEASURES)


@for_each("measure", TEXT, ids=lambda measure: measure.name)
def test_states_are_small_json(measure):
    found = state(measure.name, "the red dog, 3 cats", ["a red dog", "the dog"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert len(json.dumps(found)) < 300


@for_each("measure", TEXT, ids=lambda measure: measure.name)
@for_each("prediction", [None, True, ["a"], {"text": "a"}, pytest.param("x" * 1_000_001, id="long")])
def test_what_is_no_text_is_unreadable(measure, prediction):
    with pytest.raises(UnreadableAnswer, match="q1"):
        state(measure.name, prediction, "a")


@for_each("measure", TEXT, ids=lambda measure: measure.name)
@for_each("reference", [None, [], [None], {"a": 1}, True])
def test_a_reference_without_a_text_is_damaged(measure, reference):
    with pytest.raises(DataError, match="q1"):
        state(measure.name, "a", reference)


@for_each("name", ["accuracy/contains", "accuracy/substring"])
def test_a_blank_reference_is_damaged_where_all_texts_contain_it(name):
    with pytest.raises(DataError, match="empty"):
        state(name, "a", ["b", " "])


def test_numbers_are_read_as_texts():
    assert state("accuracy", 3, "3") == state("accuracy", "3", 3) == 100


@for_each("prediction", ["five", None, True, [3], "nan", "inf", pytest.param(10**400, id="huge"), 1e300])
def test_what_is_no_number_is_unreadable(prediction):
    with pytest.raises(UnreadableAnswer, match="no number"):
        state("rmse", prediction, 3)


def test_a_reference_that_is_no_number_is_damaged():
    with pytest.raises(DataError, match="no number"):
        state("mae", 3, "n/a")


def test_unanswered_labels_are_missed_and_unanswered_captions_are_empty():
    def unanswered(name, reference):
        made = BY_NAME[name].unanswered
        assert made is not None
        return made(item(reference), PLAIN)

    assert unanswered("micro_f1", "a<p>b") == [0, 0, 2]
    assert unanswered("bleu1/corpus", "a river") == {"reflen": [2], "testlen": 0, "guess": [0], "correct": [0]}
    assert unanswered("macro_accuracy", "after") == ["after", 0.0]
    assert BY_NAME["codebleu"].unanswered is None
    assert BY_NAME["mae"].unanswered is None


@for_each("name", ["bleu1/corpus", "bleu4", "cider", "micro_f1", "macro_accuracy"])
def test_an_unanswered_item_lowers_the_value(name):
    references = ["the red dog runs away", "two birds fly over hills", "a man rides one horse"]
    states = [state(name, text, text) for text in references]
    made = BY_NAME[name].unanswered
    assert made is not None
    worse = [*states[:2], made(item(references[2]), PLAIN)]
    assert 0 < BY_NAME[name].value(worse) < BY_NAME[name].value(states)
    assert BY_NAME[name].value([made(item(text), PLAIN) for text in references]) == 0


@for_each("name", WITH_JAVA)
def test_without_java_captions_are_not_evaluated(name, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for made in (
        lambda: BY_NAME[name].state("a", item("a"), PLAIN),
        lambda: BY_NAME[name].unanswered(item("a"), PLAIN),
    ):
        with pytest.raises(NotEvaluated, match="Java"):
            made()


def test_word_tokenizer_is_chosen_by_option():
    chosen = Context(options={"word_tokenizer": "words"})
    with pytest.raises(ConfigError, match="word_tokenizer"):
        BY_NAME["bleu1"].state("a", item("a"), chosen)


def test_choice_reads_the_options_of_the_item():
    question = item("B", prompt="What is it?\nA. a cat\nB. a dog")
    assert BY_NAME["accuracy/choice"].state("I see a dog", question, PLAIN) == 100
    assert BY_NAME["accuracy/choice"].state("I see a cat", question, PLAIN) == 0


@for_each(
    ("task", "raw", "language"),
    [
        ("Code Generation", {"language": "Java"}, "java"),
        ("Code Generation", {"language": " Python "}, "python"),
        ("Code Generation", {"language": "Haskell"}, "python"),
        ("Code Generation", {}, "python"),
        ("Code Repair", {}, "java"),
        ("Code Repair", {"language": "Python"}, "python"),
    ],
)
def test_programs_are_parsed_as_their_language(task, raw, language):
    assert code_language(item("x", task=task, **raw)) == language


def test_programs_of_two_languages_are_two_corpora():
    pytest.importorskip("tree_sitter_java", reason="needs tree-sitter-java (extra general_bench)")
    python, java = "def f(x):\n    y = x\n    return y\n", "int f(int x) { int y = x; return y; }"
    states = [[python, python, "python"], ["", python, "python"], [java, java, "java"]]
    measure = BY_NAME["codebleu"]
    assert measure.value(states) == pytest.approx((2 * measure.value(states[:2]) + 100) / 3)


@for_each("measure", MEASURES, ids=lambda measure: measure.name)
@for_each("name", LONG_TEXTS)
def test_long_answers_do_not_stall(measure, name):
    state(measure.name, "1", "1")  # imports
    begin = time.process_time()
    with contextlib.suppress(UnreadableAnswer):
        measure.value([state(measure.name, LONG_TEXTS[name], "1")])
    assert time.process_time() - begin < 20


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.text("ab c3<p>.,", max_size=15), st.text("ab c3", max_size=9)), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
@pytest.mark.parametrize(
    "measure", [one for one in TEXT if one.name not in (*NEEDS, *WITH_JAVA)], ids=lambda measure: measure.name
)
def test_bounds_and_order(measure, pairs, draw):
    states = [measure.state(text, item(f"{reference}x"), PLAIN) for text, reference in pairs]
    found = measure.value(states)
    assert 0 <= found <= 100 + 1e-9
    assert measure.value(draw.sample(states, len(states))) == pytest.approx(found, rel=1e-12, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=15).filter(str.strip))
@pytest.mark.parametrize(
    "measure",
    [one for one in TEXT if one.name not in (*NEEDS, *WITH_JAVA, "bleu1/corpus")],
    ids=lambda measure: measure.name,
)
def test_the_reference_itself_is_perfect(measure, text):
    assert measure.value([measure.state(text, item(text), PLAIN)]) == pytest.approx(100)


@for_each("name", ["accuracy/choice", "macro_accuracy"])
@for_each(("prediction", "expected"), [("It is benign.", 100), ("benign malignant", 0)])
def test_an_answer_with_all_classes_of_the_task_is_wrong(name, prediction, expected):
    context = Context(options={"candidates": ["benign", "malignant"]})
    measure = BY_NAME[name]
    assert measure.value([measure.state(prediction, item("benign"), context)]) == expected
