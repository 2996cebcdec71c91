from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError, LmmsEvalError, UsageError
from lmms_eval.tasks.general_bench.measures.text_math import fallback_tokens
from lmms_eval.tasks.general_bench.nlp.processor import installed_tokenizer, process, process_folder
from lmms_eval.tasks.general_bench.nlp.types import TYPES
from tests.cases import for_each
from tests.tasks.general_bench.nlp.kit import item_of, json_value
from tests.tasks.linguistic_kit import NLTK_DATA, needs_nltk_data

PERFECT = {
    "Code Defect Detection": "1",
    "Proof": "one\ntwo\nConclusion: done",
    "Mathematical Word Problem Solving": " 42 ",
    "Time Series": "3.0",
    "classification": "joy, fear ",
    "multiple choice": "joy, fear",
}


def score(type_name, outputs, answers, tokenize=fallback_tokens):
    data = [{"id": place, "output": output} for place, output in enumerate(outputs)]
    records = [{"id": place, "prediction": answer} for place, answer in enumerate(answers)]
    found = process({"task": "t", "type": type_name, "data": data}, records, tokenize)
    assert found is not None
    return found.score


@pytest.mark.parametrize("type_name", TYPES)
def test_a_perfect_answer_of_each_type(type_name):
    item = item_of(type_name)
    if TYPES[type_name].metric == "CodeBLEU":
        pytest.importorskip("codebleu")
    labels = "fear<p>joy" if TYPES[type_name].reading == "labels" else None
    output = item["output"]
    answer = PERFECT.get(type_name) or labels or (output if isinstance(output, str) else leaf(output))
    found = process({"task": "t", "type": type_name, "data": [item]}, [{"id": 7, "prediction": answer}], str.split)
    assert found is not None
    assert (found.task_name, found.metric, found.task_type) == ("t", TYPES[type_name].metric, "comprehension")
    assert found.score == (0.0 if type_name == "Time Series" else 1.0)


def leaf(output):
    while isinstance(output, dict):
        output = next(iter(output.values()))
    return output


def test_left_out_items_do_not_count_against_the_model():
    data = [{"id": 1, "output": {"answer": "a"}}, {"id": 2, "output": {"answer": "a"}}, {"id": "3", "output": {}}]
    records = [{"id": 1, "prediction": "a"}, {"id": 2}, {"id": "3", "prediction": "a"}]
    found = process({"type": "OpenQA", "data": data}, records, fallback_tokens)
    assert found is not None
    assert (found.score, found.items_scored, found.items_expected, found.task_name) == (1.0, 1, 3, "")


@for_each(
    ("type_name", "output", "value"),
    [
        ("OpenQA", {"answer": "a"}, 0.0),
        ("OpenQA", {"answer": "None of these"}, 0.5),
        ("MultipleChoiceQA", {"answer": "None"}, 1.0),
        ("Code Defect Detection", {"target": 1}, 0.0),
        ("Dialogue", {"reference": "a"}, 0.0),
        ("ner", {"spans": "a"}, 0.0),
    ],
)
def test_a_null_prediction_is_the_text_none_and_no_missing_one(type_name, output, value):
    assert score(type_name, [output], [None]) == value


def test_a_null_final_answer_counts_and_a_null_number_has_no_pair():
    data = [{"id": 1, "output": {"solution": {"final_answer": "4"}}}]
    found = process(
        {"type": "Mathematical Word Problem Solving", "data": data}, [{"id": 1, "prediction_final": None}], str.split
    )
    assert found is not None
    assert (found.score, found.items_scored, found.items_expected) == (0.0, 1, 1)
    assert score("Time Series", [{"target": 1}, {"target": 2}], [None, 4]) == 2.0


def test_a_record_without_a_prediction_does_not_take_one_back():
    item = {"id": 1, "output": {"answer": "a"}}
    found = process({"type": "OpenQA", "data": [item]}, [{"id": 1, "prediction": "a"}, {"id": 1}], str.split)
    assert found is not None
    assert (found.score, found.items_scored) == (1.0, 1)


@pytest.mark.parametrize(
    ("type_name", "output", "answer", "value"),
    [
        ("OpenQA", {"answer": "3"}, 3, 1.0),
        ("OpenQA", {"answer": ["a", 2.5]}, 2.5, 1.0),
        ("MultipleChoiceQA", {"answer": ["A", 3]}, 3.0, 0.0),
        ("MultipleChoiceQA", {"answer": ["A", 3]}, 3, 1.0),
        ("Summarization", {"summary": 1984}, "1984", 1.0),
        ("Translation", {"translation": 12}, 12, 1.0),
        ("Dialogue", {"reference": [7, "x"]}, 7, 1.0),
        ("ner", {"spans": "3, 4"}, 3, 2 / 3),
    ],
)
def test_numbers_are_read_as_their_text(type_name, output, answer, value):
    if TYPES[type_name].metric == "ROUGE-1":
        pytest.importorskip("nltk")
    assert score(type_name, [output], [answer]) == pytest.approx(value)


@for_each(
    ("type_name", "output"),
    [
        ("OpenQA", {"answer": ""}),
        ("OpenQA", {"answer": None}),
        ("OpenQA", None),
        ("Summarization", {"summary": []}),
        ("Summarization", {"summary": "", "highlights": ""}),
        ("Translation", ""),
        ("Translation", {"translation": ""}),
        ("Proof", {}),
        ("Proof", {"proof": {}}),
        ("Proof", {"proof": {"steps": [], "conclusion": ""}}),
        ("Code Generation", {"response": {}}),
        ("Time Series", {"target": None}),
        ("no such type", {}),
        ("no such type", {"x": ""}),
        ("classification", {}),
        ("ner", None),
    ],
)
def test_an_item_without_a_reference_is_left_out(type_name, output):
    answer = {"id": 1, "prediction": "Conclusion:"}
    assert process({"type": type_name, "data": [{"id": 1, "output": output}]}, [answer], str.split) is None


@for_each("type_name", ["classification", "ner"])
def test_an_empty_label_is_a_label_that_an_empty_prediction_hits(type_name):
    assert score(type_name, [{"label": ""}] * 2, ["", "joy"]) == pytest.approx(0.5)


def test_an_empty_list_of_references_scores_0_and_a_missing_target_is_none():
    assert score("Dialogue", [{"reference": []}], ["a"]) == 0.0
    assert score("Code Defect Detection", [{}, {"target": None}], ["None", "0"]) == 0.5


def test_ids_of_another_type_do_not_match():
    data = [{"id": 1, "output": {"answer": "a"}}]
    assert process({"type": "OpenQA", "data": data}, [{"id": "1", "prediction": "a"}], fallback_tokens) is None


def test_prediction_beats_prediction_final():
    data = [{"id": 1, "output": {"solution": {"final_answer": "4"}}}]
    for record, expected in (({"prediction_final": "4"}, 1.0), ({"prediction": "5", "prediction_final": "4"}, 0.0)):
        found = process(
            {"type": "Mathematical Word Problem Solving", "data": data}, [{"id": 1, **record}], fallback_tokens
        )
        assert found is not None
        assert found.score == expected


def test_the_best_reference_counts():
    assert score("OpenQA", [{"answer": ["x y", "a b"]}], ["a b"]) == 1.0
    assert score("Summarization", [{"summary": ["x y", "a b"]}], ["a b"]) == 1.0
    assert score("Dialogue", [{"reference": ["x y", "a b"]}], ["a b"]) == 1.0
    assert score("MultipleChoiceQA", [{"answer": ["A", "B"]}], ["B"]) == 1.0


def test_bleu_counts_the_words_of_the_tokenizer():
    output = {"reference": "a,b c"}
    assert score("Dialogue", [output], ["a b c"]) == pytest.approx(1 / 3)
    assert score("Dialogue", [output], ["a b c"], lambda text: text.replace(",", " ").split()) == 1.0


def test_pairs_that_are_no_numbers_are_passed_over():
    assert score("Time Series", [{"target": 1}, {"target": 2}], ["n/a", "2.5"]) == 0.5
    assert score("Time Series", [{"target": 1}], ["n/a"]) == 0.0


@for_each(
    ("type_name", "output", "answer"),
    [
        ("OpenQA", {"answer": "a"}, ["a"]),
        ("OpenQA", {"answer": ["a", None]}, "a"),
        ("MultipleChoiceQA", {"answer": 3}, "3"),
        ("OpenQA", {"answer": 3}, "3"),
        ("OpenQA", {"answer": 2.5}, 2.5),
        ("OpenQA", {"answer": True}, "True"),
        ("no such type", {"x": 0}, "0"),
        ("classification", {"label": 3}, "3"),
        ("Dialogue", {"reference": {"x": 1}}, "a"),
        ("ner", {"spans": "a"}, ["a"]),
        ("Code Repair", {"repairCode": ["a"]}, "a"),
    ],
)
def test_values_of_another_kind_drop_the_task(type_name, output, answer):
    with pytest.raises(DataError):
        score(type_name, [output], [answer])


def test_sums_beyond_every_number_drop_the_task():
    with pytest.raises(DataError, match="cannot be scored"):
        score("Time Series", [{"target": 0}] * 2, [1.7e308] * 2)


@for_each(
    ("annotation", "predictions"),
    [
        ([], []),
        ({}, []),
        ({"data": {}}, []),
        ({"data": [], "task": 3}, []),
        ({"data": [3]}, []),
        ({"data": [{"output": {}}]}, []),
        ({"data": []}, {"data": []}),
        ({"data": []}, [3]),
        ({"data": []}, [{"prediction": "a"}]),
        ({"data": []}, [{"id": {}, "prediction": "a"}]),
    ],
)
def test_files_of_another_shape_are_refused(annotation, predictions):
    with pytest.raises(DataError):
        process(annotation, predictions, fallback_tokens)


annotations = st.one_of(
    json_value,
    st.fixed_dictionaries(
        {
            "type": st.one_of(st.sampled_from(list(TYPES)), json_value),
            "data": st.lists(st.fixed_dictionaries({"id": st.integers(0, 2), "output": json_value}), max_size=3),
        },
        optional={"task": json_value},
    ),
)
records = st.one_of(
    json_value,
    st.lists(st.fixed_dictionaries({"id": st.integers(0, 2)}, optional={"prediction": json_value}), max_size=3),
)


@given(annotations, records)
def test_nothing_but_our_errors(annotation, predictions):
    try:
        found = process(annotation, predictions, fallback_tokens)
    except (LmmsEvalError, NotEvaluated):
        return
    assert found is None or 0 < found.items_scored <= found.items_expected


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    item = {"id": 1, "output": {"answer": "a"}}
    write(tmp_path / "NLP" / "good", {"task": "g", "type": "OpenQA", "data": [item]}, [{"id": 1, "prediction": "a"}])
    write(tmp_path / "NLP" / "object", {"task": "o", "type": "OpenQA", "data": [item]}, {"data": []})
    write(tmp_path / "NLP" / "empty", {"task": "e", "type": "OpenQA", "data": [item]}, [])
    write(tmp_path / "NLP" / "broken", {"task": "b"}, [])
    (tmp_path / "NLP" / "broken" / "annotation.json").write_text("{", encoding="utf-8")
    (tmp_path / "NLP" / "bare").mkdir()
    (tmp_path / "image").mkdir()
    return tmp_path


def write(folder, annotation, predictions):
    folder.mkdir(parents=True)
    for name, content in (("annotation.json", annotation), ("prediction.json", predictions)):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def test_a_folder_says_why_tasks_are_not_scored(dataset):
    results, problems = process_folder(dataset)
    assert [result.task_name for result in results] == ["g"]
    assert [problem.split(":")[0] for problem in problems] == ["bare", "broken", "empty", "object"]
    assert "annotation.json" in problems[0]
    assert "list of records" in problems[3]


def test_files_of_another_name(dataset):
    (dataset / "NLP" / "good" / "mine.json").write_text('[{"id": 1, "prediction": "b"}]', encoding="utf-8")
    assert [result.score for result in process_folder(dataset, "mine.json")[0]] == [0.0]
    with pytest.raises(UsageError, match="is a path"):
        process_folder(dataset, "good/mine.json")


def test_a_task_that_lacks_a_package_is_a_problem(dataset):
    def tokenize(text):
        raise NotEvaluated("no words here")

    item = {"id": 1, "output": {"reference": "a"}}
    write(dataset / "NLP" / "words", {"type": "Dialogue", "data": [item]}, [{"id": 1, "prediction": "a"}])
    assert "words: not evaluated: no words here" in process_folder(dataset, tokenize=tokenize)[1]


def test_a_missing_folder_is_fatal(tmp_path):
    with pytest.raises(DataError, match="no folder nlp"):
        process_folder(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        process_folder(tmp_path / "absent")


def test_without_data_words_are_split_at_white_space(tmp_path):
    name, tokens = installed_tokenizer(str(tmp_path))
    assert (name, tokens("it's so.")) == ("fallback", ["it's", "so."])


@needs_nltk_data
def test_with_data_words_are_those_of_the_treebank():
    name, tokens = installed_tokenizer(str(NLTK_DATA))
    assert (name, tokens("it's so.")) == (f"treebank (NLTK {metadata.version('nltk')})", ["it", "'s", "so", "."])
