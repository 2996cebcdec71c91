from __future__ import annotations

import copy

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import sheets
from lmms_eval.tasks.general_bench.nlp.types import TYPES
from lmms_eval.tasks.general_bench.prompts.nlp import ABSTENTION, max_new_tokens, nlp_prompt
from tests.cases import for_each
from tests.tasks.general_bench.nlp.kit import item_of

NEEDED = {
    "MultipleChoiceQA": ["input.question", "input.options"],
    "OpenQA": ["input.question"],
    "Summarization": ["document"],
    "Translation": ["in", "out", "input"],
    "Story Generation": ["input.prompt"],
    "Dialogue": ["dialog"],
    "Code Generation": ["language", "goal", "context"],
    "Code Repair": ["input.prompt", "input.sourceCode"],
    "Code Defect Detection": ["func"],
    "Text to SQL": ["input.context", "input.question"],
    "Code Explanation": ["code"],
    "Proof": ["statement"],
    "Mathematical Word Problem Solving": ["problem.text"],
    "Paraphrase Generation": ["input.originalSentence"],
    "Grammar Correction": ["input.Error Type", "input.Ungrammatical Statement"],
    "Text Style Transfer": ["input.text", "input.style"],
    "Table-to-Text Generation": ["input.table"],
    "Time Series": ["input.data"],
    **{name: ["input.prompt", "input.raw_text"] for name, kind in TYPES.items() if kind.metric == "Micro-F1"},
}
CASES = [(type_name, path) for type_name, paths in NEEDED.items() for path in paths]


def without(item, path):
    item = copy.deepcopy(item)
    *above, key = path.split(".")
    inside = item
    for name in above:
        inside = inside[name]
    del inside[key]
    return item


def test_every_type_is_listed():
    assert set(NEEDED) == set(TYPES)


@for_each(("type_name", "path"), CASES)
def test_a_missing_key_is_named(type_name, path):
    with pytest.raises(DataError, match=rf"'some task', item 7: no {path}$"):
        nlp_prompt("some task", type_name, without(item_of(type_name), path))


@for_each(("type_name", "path"), CASES)
def test_a_value_stands_in_the_prompt(type_name, path):
    item = copy.deepcopy(item_of(type_name))
    *above, key = path.split(".")
    inside = item
    for name in above:
        inside = inside[name]
    if isinstance(inside[key], str):
        inside[key] = f"{inside[key]} zqzqz"
        assert "zqzqz" in nlp_prompt("some task", type_name, item)
    else:
        assert isinstance(inside[key], list)


@for_each("type_name", [name for name, kind in TYPES.items() if kind.marker])
def test_marked_answers_are_asked_for_with_their_marker(type_name):
    assert TYPES[type_name].marker in nlp_prompt("some task", type_name, item_of(type_name))


@for_each("task", [task.name for task in sheets()["NLP"]])
def test_names_of_tasks_change_nothing_else(task):
    if task != "Table Question Answering":
        assert "Question: q?" in nlp_prompt(task, "OpenQA", item_of("OpenQA"))
    assert nlp_prompt(task, "ner", item_of("ner")).startswith("Label this: a text\n\n")


def test_options_have_letters_and_the_answer_a_box():
    prompt = nlp_prompt("t", "MultipleChoiceQA", item_of("MultipleChoiceQA"))
    assert "A. x\nB. y\nC. z" in prompt
    assert prompt.endswith("The answer is \\boxed{X}")
    assert len(nlp_prompt("Causal Reasoning", "MultipleChoiceQA", item_of("MultipleChoiceQA"))) > len(prompt)


@for_each("task", ["Temporal Reasoning", "Medical Question Answering", "Multilingual Question Answering"])
def test_some_open_questions_are_asked_differently(task):
    plain = nlp_prompt("TriviaQA", "OpenQA", item_of("OpenQA"))
    assert plain.startswith("Context:\nc\n\nQuestion: q?")
    assert plain == nlp_prompt("TriviaQA", "unheard of", item_of("OpenQA"))
    assert nlp_prompt(task, "OpenQA", item_of("OpenQA")) not in (plain, "")


def test_a_context_is_optional():
    item = item_of("OpenQA", input={"question": "q?"})
    assert nlp_prompt("t", "OpenQA", item).startswith("Question: q?")


def test_only_document_level_questions_may_be_left_open():
    item = item_of("OpenQA")
    assert ABSTENTION in nlp_prompt("Document-Level Causal Reasoning", "OpenQA", item)
    assert ABSTENTION not in nlp_prompt("Causal Reasoning", "OpenQA", item)


def test_questions_on_tables_need_the_table():
    with pytest.raises(DataError, match=r"no input\.table"):
        nlp_prompt("Table Question Answering", "OpenQA", item_of("OpenQA"))
    item = item_of("OpenQA", input={"question": "q?", "table": "a|b"})
    assert "Table:\na|b" in nlp_prompt("Table Question Answering", "OpenQA", item)


def test_several_documents_are_numbered():
    prompt = nlp_prompt("t", "Summarization", {"document_list": ["one", "two"]})
    assert "Document 1:\none" in prompt and "Document 2:\ntwo" in prompt


def test_code_generation_shows_each_part_of_the_context():
    prompt = nlp_prompt("t", "Code Generation", item_of("Code Generation"))
    assert "Description:\ntwo numbers" in prompt
    assert "Input: 1 2\nOutput: 3" in prompt


@for_each("part", ["text", {"type": "x"}, {"type": "example", "content": [{"input": "1"}]}])
def test_damaged_parts_of_a_context_are_refused(part):
    with pytest.raises(DataError, match="context has the"):
        nlp_prompt("t", "Code Generation", item_of("Code Generation", context=[part]))


def test_tables_are_written_row_by_row():
    assert nlp_prompt("t", "Table-to-Text Generation", item_of("Table-to-Text Generation")).startswith("a | b\n1 | 2\n")
    with pytest.raises(DataError, match=r"input\.table has"):
        nlp_prompt("t", "Table-to-Text Generation", {"input": {"table": [{"rows": []}]}})


def test_constraints_of_a_problem_are_optional():
    assert "- whole" in nlp_prompt(
        "t", "Mathematical Word Problem Solving", item_of("Mathematical Word Problem Solving")
    )
    assert "Constraints" not in nlp_prompt("t", "Mathematical Word Problem Solving", {"problem": {"text": "p"}})


@for_each("task", ["stance_detection_x", "Stance Detection", "t"])
def test_placeholders_are_filled_whatever_the_task_is_called(task):
    item = {"input": {"tweets": "tw <<<target>>>", "target": "tg", "prompt": "<<<tweets>>>/<<<target>>>"}}
    assert nlp_prompt(task, "classification", item) == "tw <<<target>>>/tg"


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        ("Stance Detection", "tweets"),
        ("aspect_sentiment_classification_1", "raw_text"),
        ("Target-oriented Opinion Words Extraction", "aspect"),
        ("Humor Detection", "raw_text"),
    ],
)
def test_a_prompt_without_placeholder_still_needs_its_texts(task, missing):
    texts = {"raw_text": "r", "tweets": "w", "target": "t", "aspect": "a", "prompt": "Which label?"}
    assert nlp_prompt(task, "classification", {"input": texts}) == "Which label?"
    with pytest.raises(DataError, match=rf"no input\.{missing}"):
        nlp_prompt(task, "classification", {"input": {key: text for key, text in texts.items() if key != missing}})


@for_each("task", ["stance_detection_2", "Stance Detection", "STANCE-DETECTION", "Zero-shot stance detection"])
def test_a_name_chooses_its_branch_however_it_is_written(task):
    """Not the placeholders: an item of that branch has both of its texts."""
    assert (
        nlp_prompt(task, "classification", {"input": {"tweets": "w", "target": "t", "prompt": "<<<tweets>>>"}}) == "w"
    )
    for texts, missing in (({"raw_text": "r"}, "target"), ({"raw_text": "r", "target": "t"}, "tweets")):
        item = {"input": {**texts, "prompt": "p <<<raw_text>>>"}}
        with pytest.raises(DataError, match=rf"no input\.{missing}"):
            nlp_prompt(task, "classification", item)
        assert nlp_prompt("Humor Detection", "classification", item) == "p r"


def test_labels_are_asked_for_with_a_comma():
    assert "comma and a space" in nlp_prompt("t", "ner", item_of("ner"))
    assert nlp_prompt("t", "multiple choice", item_of("multiple choice")) == "Label this: a text"


def test_a_dialogue_without_a_turn_has_no_prompt():
    with pytest.raises(DataError, match="dialog is empty"):
        nlp_prompt("t", "Dialogue", {"dialog": []})


def test_lengths_of_replies():
    assert (max_new_tokens("Code Defect Detection"), max_new_tokens("unheard of")) == (16, 256)


def test_long_reasoning_is_not_asked_for():
    """It would not fit into the length of the reply, and the answer stands last."""
    assert "few short sentences" in nlp_prompt("t", "MultipleChoiceQA", item_of("MultipleChoiceQA"))
    name = "Mathematical Word Problem Solving"
    assert "few short steps" in nlp_prompt("t", name, item_of(name))
