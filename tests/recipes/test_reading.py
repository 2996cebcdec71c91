"""The reading of answers that a recipe states: metrics next to the task's own, with and without a judge."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from lmms_eval.api.judging import Verdict
from lmms_eval.api.outcome import Estimate, Withheld
from lmms_eval.api.response import Thoughts
from lmms_eval.api.task import Answer, MetricDefinition
from lmms_eval.errors import DataError, UnknownNameError, UsageError
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.metrics.table import AGGREGATIONS
from lmms_eval.recipes.extraction import rule
from lmms_eval.recipes.layouts import Fields
from lmms_eval.recipes.reading import ACCURACY, RecipeReading, name_of
from lmms_eval.recipes.recipe import names, read
from lmms_eval.utils.numbers import SHARES
from tests.cases import for_each
from tests.servers.stub import StubServer

CHOICE, MMMU, KIT = "qwen-evaluation/choice_rule", "qwen-evaluation/mmmu", "vlmevalkit/choice_rule"
JUDGE = "gpt-3.5-turbo-0125"
DOC = {"question": "Where?", "options": ["left", "right"]}
MEAN = MetricDefinition("acc", AGGREGATIONS["mean"].function(), "mean", True, SHARES)


def reading(name: str = CHOICE, removal: str | None = None, judge: str = JUDGE) -> RecipeReading:
    return RecipeReading(
        rule(name), lambda doc: Fields(question=doc["question"], options=tuple(doc["options"])), removal, judge
    )


def values(made: RecipeReading, *texts: str | Answer, truth: Any = "A", **more: Any) -> list[dict[str, Any]]:
    answers = [text if isinstance(text, Answer) else Answer(text) for text in texts]
    doc = more.pop("doc", DOC)
    return made.values(doc, truth, answers, lambda text: {"acc": float(text == "left")}, more.pop("verdicts", ()))


def test_every_recipe_names_rules_that_exist() -> None:
    stated = {one.extract for name in names() for one in read(name).tasks.values() if one.extract}
    assert len(stated) > 10
    for text in stated:
        rule(text)


TRUTHS = {
    "a letter": ("B", "B"),
    "in parentheses": ("(B)", "B"),
    "a number": (1, "B"),
    "a text": ("right", "B"),
    "lower case": ("b", "B"),
}


@for_each("truth, letter", TRUTHS.values(), ids=TRUTHS)
def test_the_reference_is_a_letter(truth: Any, letter: str) -> None:
    assert values(reading(), letter, truth=truth) == [{ACCURACY: {"read": letter, "score": 1.0}}]


def test_a_reference_that_is_no_option_withholds_this_reading_alone() -> None:
    made = reading()
    (found,) = values(made, "A", truth="up")
    fault = "recipe: the reference answer 'up' is no option; there are 2"
    assert found == {ACCURACY: {"read": None, "score": None, "fault": fault}}
    assert made.questions(DOC, "up", [Answer("left or right")]) == []
    (metric,) = made.metrics([MEAN])
    rows = [{"read": "A", "score": 1.0}, found[ACCURACY]]
    assert metric.aggregation(rows) == Withheld(1.0, f"1 of 2 documents cannot be read; the first: {fault}")


OPEN = {
    "the reference": ("Three.", "three", 1.0),
    "anything else is for the judge": ("3", "three", None),
    "no answer": ("", "three", None),
}


@for_each("text, truth, score", OPEN.values(), ids=OPEN)
def test_questions_without_options_under_a_choice_rule(text: str, truth: str, score: float | None) -> None:
    doc = {"question": "How many?", "options": []}
    for name in (CHOICE, KIT):
        assert values(reading(name), text, truth=truth, doc=doc)[0][ACCURACY]["score"] == score


def test_what_only_the_judge_decides_has_no_score() -> None:
    (found,) = values(reading(), "left or right")
    assert found == {ACCURACY: {"read": None, "score": None}}


def test_a_source_without_a_judge_counts_it_as_wrong() -> None:
    assert values(reading(judge="none"), "left or right") == [{ACCURACY: {"read": "Z", "score": 0.0}}]


def test_the_judge_decides() -> None:
    made = reading()
    (asked,) = made.questions(DOC, "A", [Answer("A"), Answer("left or right")])
    assert asked.name == name_of(1)
    (message,) = asked.build_messages().messages
    text = message.content[-1].text
    assert "Where?" in text
    assert "A. left\nB. right" in text
    assert "left or right" in text
    assert [asked.accepts(reply) for reply in ("B", "(A)", "Z", "perhaps", "")] == [True, True, False, False, False]
    told = [Verdict(asked.name, "B", True, "judge")]
    (first, second) = values(made, "A", "left or right", verdicts=told)
    assert first[ACCURACY]["score"] == 1.0
    assert second == {ACCURACY: {"read": "B", "score": 0.0, "by_judge": True}}
    unread = [Verdict(asked.name, "Z", False, "judge")]
    assert values(made, "A", "left or right", verdicts=unread)[1][ACCURACY]["score"] is None


def test_no_question_without_a_judge_in_the_source() -> None:
    assert reading(judge="none").questions(DOC, "A", [Answer("left or right")]) == []
    assert reading(judge="").questions(DOC, "A", [Answer("left or right")]) == []
    assert reading("glm/answer").questions(DOC, "A", [Answer("left or right")]) == []


def test_open_questions_are_choices_for_the_judge_too() -> None:
    doc = {"question": "How many?", "options": []}
    (asked,) = reading(MMMU).questions(doc, "7.5", [Answer("seven and a half")])
    (message,) = asked.build_messages().messages
    assert "A. 7.5\nB. Other Answers" in message.content[-1].text
    told = [Verdict(asked.name, "A", True, "judge")]
    assert values(reading(MMMU), "seven and a half", truth="7.5", doc=doc, verdicts=told)[0][ACCURACY]["score"] == 1.0


def test_values_are_asked_for_and_compared() -> None:
    pytest.importorskip("math_verify")
    made, doc = reading("qwen-evaluation/mathvision"), {"question": "How many?", "options": []}
    (asked,) = made.questions(doc, "3", [Answer("There are 3 of them.")])
    (message,) = asked.build_messages().messages
    assert "final answer" in message.content[-1].text
    assert asked.accepts("3.0")
    told = [Verdict(asked.name, "3.0", True, "judge")]
    assert values(made, "There are 3 of them.", truth="3", doc=doc, verdicts=told)[0][ACCURACY]["score"] == 1.0


TAGGED = Answer("B", thoughts=(Thoughts("A?", "<think>", "</think>"),))
UNFINISHED = Answer("", thoughts=(Thoughts("maybe B", "<think>", "", False),))
SEPARATE = Answer("B", thoughts=(Thoughts("A?"),))
REMOVALS = {
    "not stated: without thoughts": (TAGGED, None, "B"),
    "all is read": (TAGGED, "none", None),
    "after the last mark": (TAGGED, "after_last_mark", "B"),
    "pairs": (TAGGED, "pairs", "B"),
    "unfinished, after the last mark": (UNFINISHED, "after_last_mark", "B"),
    "unfinished, not stated": (UNFINISHED, None, None),
    "apart from the start": (SEPARATE, "none", "B"),
}


@for_each("answer, removal, found", REMOVALS.values(), ids=REMOVALS)
def test_thoughts_are_removed_as_the_source_does(answer: Answer, removal: str | None, found: str | None) -> None:
    assert values(reading(KIT, removal), answer)[0][ACCURACY]["read"] == found


def test_a_rule_that_reads_a_text_leaves_the_score_to_the_task() -> None:
    made = reading("glm/answer")
    (metric,) = made.metrics([MEAN, MetricDefinition("file", print, None, True)])
    assert (metric.name, metric.aggregation_name) == ("recipe_acc", None)
    assert values(made, "<answer>left</answer>", "left?") == [{"recipe_acc": 1.0}, {"recipe_acc": 0.0}]
    found = metric.aggregation([1.0, 0.0])
    assert isinstance(found, Estimate)
    assert (found.value, found.details["readings"]["recipe_acc"]["rule"]) == (0.5, "glm/answer")


def test_an_unread_text_withholds_the_metric() -> None:
    made = reading("vlmevalkit/yes_no_rule", judge="gpt-4o-mini")
    assert values(made, "perhaps") == [{}]
    (metric,) = made.metrics([MEAN])
    found = metric.aggregation([1.0, None, 0.0])
    assert found == Withheld(0.5, "1 of 3 answers need a judge; the source asks gpt-4o-mini")


def test_bounds_of_what_the_judge_would_decide() -> None:
    (metric,) = reading().metrics([MEAN])
    rows = [{"read": "A", "score": 1.0}, {"read": "B", "score": 0.0}, {"read": None, "score": None}]
    found = metric.aggregation(rows)
    assert isinstance(found, Withheld)
    assert found.partial == 0.5
    assert found.reason == (
        f"1 of 3 answers need a judge; the source asks {JUDGE}: between 0.3333 and 0.6667, whatever it says"
    )
    assert metric.aggregation(rows[2:]).partial is None
    assert metric.aggregation(rows[:2]).value == 0.5


def photo(number: int) -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (number % 256, number // 256, 60)).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


def questions(root: Path, count: int) -> Path:
    """Questions whose options an answer may name: "left" is one of them in two of three questions."""
    options = ["A. left\nB. right", "A. right\nB. left", "A. up\nB. down"]
    end = "Please answer directly with only the letter of the correct option."
    rows = [
        {"image": photo(n), "question": f"Where is {n}?\n{options[n % 3]}\n{end}", "answer": "A", "image_path": "x"}
        for n in range(count)
    ]
    text = {"dtype": "string", "_type": "Value"}
    features = {"image": {"_type": "Image"}, "question": text, "answer": text, "image_path": text}
    header = {"huggingface": json.dumps({"info": {"features": features}})}
    (root / "RealWorldQA").mkdir()
    pq.write_table(pa.Table.from_pylist(rows).replace_schema_metadata(header), root / "RealWorldQA" / "test-0.parquet")
    return root


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return questions(tmp_path_factory.mktemp("data"), 12)


@pytest.fixture(scope="module")
def judge() -> Iterator[StubServer]:
    with StubServer(reply="A") as found:
        yield found


RECIPE = "qwen3-vl-instruct@qwen-evaluation"


def run(data: Path, **options: Any) -> dict[str, Any]:
    given = {
        "model": "baseline",
        "model_args": "strategy=constant,text=It goes left",
        "tasks": "realworldqa",
        **options,
    }
    results = simple_evaluate(data_root=str(data), verbosity="ERROR", **given)
    assert results is not None
    return results


def test_both_numbers_are_there(data: Path) -> None:
    with StubServer(reply="A") as judge:
        given = {"judge_model": "m", "judge_base_url": judge.url, "judge_args": "api_key=k"}
        results = run(data, recipe=RECIPE, **given)
        assert judge.stats()["total"] == 4
    found = results["results"]["realworldqa"]
    assert found["exact_match,none"] == 0
    assert found["recipe_accuracy,none"] == pytest.approx(8 / 12)  # 4 of 8 by the rule, 4 by the judge
    facts = results["readings"]["realworldqa"]["recipe_accuracy"]
    assert facts == {"recipe": f"{RECIPE}:script", "rule": CHOICE, "n": 12, "by_judge": 4, "judge": JUDGE}


def test_without_a_judge_the_number_is_withheld_alone(data: Path) -> None:
    results = run(data, recipe=RECIPE)
    assert results["results"]["realworldqa"]["exact_match,none"] == 0
    assert results["results"]["realworldqa"]["recipe_accuracy,none"] is None
    partial = results["outcomes"]["realworldqa"]["partial"]["recipe_accuracy,none"]
    assert "4 of 12 answers need a judge; the source asks gpt-3.5-turbo-0125" in partial["reason"]
    assert results["state"] == "complete"


def test_a_judge_that_finds_no_option_leaves_the_official_number(data: Path) -> None:
    with StubServer(reply="Z") as lost:
        given = {"judge_model": "m", "judge_base_url": lost.url, "judge_args": "api_key=k", "judge_retries": 1}
        results = run(data, recipe=RECIPE, **given)
        assert lost.stats()["total"] == 8  # four questions, asked twice
    assert results["results"]["realworldqa"]["exact_match,none"] == 0
    partial = results["outcomes"]["realworldqa"]["partial"]["recipe_accuracy,none"]
    assert partial["reason"].startswith("4 of 12 answers need a judge")
    assert results["state"] == "complete"
    assert "judge_bias" not in results


def test_the_users_prompts_of_the_judge(data: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.json"
    with StubServer(reply="A") as judge:
        given = {
            "judge_model": "m",
            "judge_base_url": judge.url,
            "judge_args": "api_key=k",
            "judge_prompts": str(texts),
        }
        texts.write_text(json.dumps({"recipe_choice": "{question} {options} {answer}"}))
        with pytest.raises(DataError, match=r"recipe_choice: nothing fills \{answer\}"):
            run(data, recipe=RECIPE, **given)
        assert judge.stats()["total"] == 0
        texts.write_text(json.dumps({"recipe_choice": "MINE {question}/{options}/{prediction}"}))
        run(data, recipe=RECIPE, **given)
        assert all(body["messages"][0]["content"][0]["text"].startswith("MINE Where is") for body in judge.bodies())


def test_the_judge_of_the_source_is_another_one(tmp_path: Path, judge: StubServer) -> None:
    given = {"judge_model": "m", "judge_base_url": judge.url, "judge_args": "api_key=k"}
    whole = questions(tmp_path, 765)
    (first, *_) = run(whole, recipe=RECIPE, published="Qwen2.5-VL-7B-Instruct", **given)["published"]["realworldqa"]
    assert first["metric"] == "recipe_accuracy,none"
    assert first["reason"] == f"m read 255 of 765 answers, and the source's judge is {JUDGE}"


def test_a_recorded_run_is_read_by_a_recipe(data: Path, tmp_path: Path, judge: StubServer) -> None:
    before = run(data, output_path=str(tmp_path))
    assert "readings" not in before
    given = {"recipe": RECIPE, "judge_model": "m", "judge_base_url": judge.url, "judge_args": "api_key=k"}
    report = rescore(tmp_path, {**given, "published": "Qwen3-VL-8B-Instruct"})
    found = report.results["results"]["realworldqa"]
    assert found["recipe_accuracy,none"] == pytest.approx(8 / 12)
    assert "recipe" not in report.results  # the prompts are those of the run
    assert report.results["run_key"] == before["run_key"]
    assert any(
        line.startswith("reading: realworldqa: recipe_accuracy is by the recipe's reading") for line in report.lines
    )
    again = rescore(tmp_path, {})
    assert "recipe_accuracy,none" not in again.results["results"]["realworldqa"]


def test_bad_recipes_of_score(data: Path, tmp_path: Path) -> None:
    run(data, output_path=str(tmp_path), limit=2)
    with pytest.raises(UnknownNameError, match="unknown recipe 'qwen'"):
        rescore(tmp_path, {"recipe": "qwen"})
    with pytest.raises(UsageError, match="it states no reading of the answers for realworldqa; leave it out"):
        rescore(tmp_path, {"recipe": "llama-3.2-vision@meta"})


def test_answers_of_several_repeats(data: Path) -> None:
    results = run(data, recipe=RECIPE, repeats=2, ids="0")
    assert results["results"]["realworldqa"]["recipe_accuracy,none"] == 1
