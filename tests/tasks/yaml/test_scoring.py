from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.outcome import Unscored
from lmms_eval.api.registry import AGGREGATIONS, FILTERS, METRICS, RegisteredMetric
from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.errors import FunctionError, TaskError, UnknownNameError, UsageError
from lmms_eval.tasks.yaml.scoring import mean_metrics
from tests.cases import for_each
from tests.tasks.kit import Function, loaded, make_task

TAGS = (("<think>", "</think>"),)
CODE = """
import random
from lmms_eval.api.outcome import NotEvaluated, Unscored, note_absence

def spy(doc, results):
    return {"results": list(results), "keys": sorted(doc)}

def absent(doc, results):
    raise NotEvaluated("install the judge")

def overlooked(doc, results):
    note_absence("the judge failed")
    return {"acc": 0.0}

def partly(doc, results):
    return {"acc": 1.0, "judge": Unscored("no key")}

def wholly(doc, results):
    return {"judge": Unscored("no key")}

def boom(doc, results):
    raise ValueError("boom")

def number(doc, results):
    return 1.0

def chance(doc, results):
    return {"value": random.random()}

def count(doc, results, full_docs):
    return {"n": len(full_docs)}


def told(doc, results, lmms_eval_specific_kwargs):
    return {"n": lmms_eval_specific_kwargs["size"]}

def total(items):
    return sum(items)

class Keyed:
    def __init__(self):
        self.key = KEY


class Shout:
    def __init__(self, mark):
        self.mark = mark
    def apply(self, resps, docs):
        return map(lambda answers: [answer + self.mark for answer in answers], resps)
"""
CUSTOM = [{"metric": "m", "aggregation": "mean", "higher_is_better": True}]


def one(task: Any, *values: Any, doc_id: int = 0) -> Any:
    return task.score(doc_id, [Answer(value) for value in values]).scores


def spying(tmp_path: Path, options: TaskOptions | None = None, **changes: Any) -> Any:
    return loaded(tmp_path, {"process_results": Function("utils.spy"), "metric_list": CUSTOM, **changes}, CODE, options)


def test_process_results_gets_trimmed_texts(tmp_path: Path) -> None:
    task = spying(tmp_path)
    assert one(task, "  blue\n")[0].metrics == {"results": ["blue"], "keys": ["answer", "label", "options", "question"]}
    assert one(task, None)[0].metrics["results"] == [""]
    assert one(task, "  blue\n")[0].filtered == ["  blue\n"]


def test_lists_left_by_filters_and_rounds(tmp_path: Path) -> None:
    first_two = [{"name": "two", "filter": [{"function": "take_first_k", "k": 2}]}]
    task = spying(tmp_path / "a", filter_list=first_two, repeats=3)
    score = one(task, " a ", "b", "c")[0]
    assert (score.filter, score.filtered, score.metrics["results"]) == ("two", [[" a ", "b"]], ["a", "b"])
    assert score.per_answer == ()  # one answer alone cannot pass this pipeline
    code = {"output_type": "generate_until_multi_round", "doc_to_text": Function("utils.spy")}
    assert one(spying(tmp_path / "b", **code), ["a", "b"])[0].metrics["results"] == [["a", "b"]]


def test_reasoning_is_stripped_after_the_filters(tmp_path: Path) -> None:
    numbers = [{"name": "n", "filter": [{"function": "regex", "regex_pattern": "\\d+"}, {"function": "take_first"}]}]
    answer = "<think>1</think> 2"
    options = TaskOptions(reasoning_tags=TAGS)
    assert one(spying(tmp_path / "a", options), answer)[0].filtered == ["2"]
    assert one(spying(tmp_path / "b", options, filter_list=numbers), answer)[0].filtered == ["1"]
    stripped_first = spying(tmp_path / "c", options, filter_list=numbers, auto_strip_thinking=True)
    assert one(stripped_first, answer)[0].filtered == ["2"]
    assert one(spying(tmp_path / "d", filter_list=numbers, auto_strip_thinking=True), answer)[0].filtered == ["2"]


@for_each(
    ("own", "wanted"),
    [
        (None, "x"),
        ("none", "<think>a</think>x"),
        (False, "<think>a</think>x"),
        ([["<a>", "</a>"]], "<think>a</think>x"),
        ('[["<think>", "</think>"]]', "x"),
    ],
)
def test_reasoning_tags_of_the_task_beat_the_command_line(tmp_path: Path, own: Any, wanted: str) -> None:
    task = spying(tmp_path, TaskOptions(reasoning_tags=TAGS), reasoning_tags=own)
    assert one(task, "<think>a</think>x")[0].filtered == [wanted]


def test_repeats_of_the_default_pipeline_are_averaged(tmp_path: Path) -> None:
    score = one(loaded(tmp_path), "blue", "red", "blue", "red", doc_id=0)[0]
    assert score.metrics == {"exact_match": 0.5}
    assert score.filtered == [["blue", "red", "blue", "red"]]
    assert [alone["exact_match"] for alone in score.per_answer] == [1.0, 0.0, 1.0, 0.0]


def test_an_explicit_pipeline_keeps_its_meaning(tmp_path: Path) -> None:
    vote = {"name": "vote", "filter": [{"function": "majority_vote"}, {"function": "take_first"}]}
    first = {"name": "first", "filter": [{"function": "take_first"}]}
    task = loaded(tmp_path, {"filter_list": [first, vote], "repeats": 3})
    by_first, by_vote = one(task, "red", "blue", "blue")
    assert (by_first.filtered, by_first.metrics) == (["red"], {"exact_match": 0.0})
    assert (by_vote.filtered, by_vote.metrics) == (["blue"], {"exact_match": 1.0})
    assert [alone["exact_match"] for alone in by_vote.per_answer] == [0.0, 1.0, 1.0]
    assert one(task, "red")[0].per_answer == ()


def test_means_of_several_answers() -> None:
    each = [
        {"a": 1, "d": {"score": 1.0, "id": "x"}, "t": "one", "same": 2},
        {"a": 2, "d": {"score": 0.0, "id": "x"}, "t": "two", "same": 2},
    ]
    assert mean_metrics(each) == {"a": 1.5, "d": {"score": 0.5, "id": "x"}, "t": "one", "same": 2}
    assert mean_metrics([{"a": 1.0}, {"a": Unscored("no")}]) == {"a": Unscored("no")}


@for_each(
    ("function", "status", "metrics", "reason"),
    [
        ("absent", "unscored", {}, "install the judge"),
        ("overlooked", "unscored", {}, "the judge failed"),
        ("partly", "unscored", {"acc": 1.0}, "no key"),
        ("wholly", "unscored", {}, "no key"),
    ],
)
def test_what_is_not_there_is_unscored(tmp_path: Path, function: str, status: str, metrics: Any, reason: str) -> None:
    score = one(spying(tmp_path, process_results=Function(f"utils.{function}")), "x")[0]
    assert (score.status, score.metrics, score.reason) == (status, metrics, reason)


def test_what_scoring_raises_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(FunctionError, match=r"^process_results raised ValueError: boom \(.*utils.py:22\)$"):
        one(spying(tmp_path / "a", process_results=Function("utils.boom")), "x")
    with pytest.raises(Exception, match="process_results must return a mapping of metrics, not a float"):
        one(spying(tmp_path / "b", process_results=Function("utils.number")), "x")


def test_random_is_seeded_by_document(tmp_path: Path) -> None:
    task = spying(tmp_path, process_results=Function("utils.chance"))
    values = [one(task, "x", doc_id=number)[0].metrics["value"] for number in (0, 1, 0)]
    assert values[0] == values[2] != values[1]


def test_the_whole_split_for_those_who_want_it(tmp_path: Path) -> None:
    assert one(spying(tmp_path, process_results=Function("utils.count"), full_docs=True), "x")[0].metrics == {"n": 3}


def test_settings_for_those_who_want_them(tmp_path: Path) -> None:
    task = spying(tmp_path, process_results=Function("utils.told"), lmms_eval_specific_kwargs={"size": 7})
    assert one(task, "x")[0].metrics == {"n": 7}


def test_predict_only_scores_nothing(tmp_path: Path) -> None:
    task = loaded(
        tmp_path, {"process_results": Function("utils.boom")}, CODE, TaskOptions(predict_only=True, repeats=2)
    )
    score = one(task, "a", "b")[0]
    assert (score.metrics, score.per_answer) == ({"bypass": [["blue"], ["a"]]}, ())
    assert [(metric.name, metric.aggregation([1]), metric.higher_is_better) for metric in task.metrics] == [
        ("bypass", 999, True)
    ]
    assert task.describe()["metric_list"] == [{"metric": "bypass"}]


@for_each(
    ("target", "metric", "answer", "wanted"),
    [
        ("{{['blue', 'azure']}}", {"metric": "exact_match"}, "azure", 1.0),
        ("{{['blue', 'azure']}}", {"metric": "exact_match"}, "red", 0.0),
        ("answer", {"metric": "exact_match", "ignore_case": True}, "BLUE", 1.0),
        ("{{['blue', 'azure']}}", {"metric": "anls"}, "azurE", 1.0),
        ("label", {"metric": "anls"}, "1", 1.0),
        ("answer", {"metric": "bleu"}, "blue", ("blue", "blue")),
    ],
)
def test_default_text_metrics(tmp_path: Path, target: str, metric: Any, answer: str, wanted: Any) -> None:
    task = loaded(tmp_path, {"doc_to_target": target, "metric_list": [metric]})
    assert one(task, answer)[0].metrics == {metric["metric"]: wanted}


def test_targets_that_name_choices(tmp_path: Path) -> None:
    task = loaded(tmp_path, {"doc_to_target": "label", "doc_to_choice": "options"})
    assert one(task, "blue")[0].metrics == {"exact_match": 1.0}


@pytest.mark.parametrize(
    ("target", "pairs", "wanted"),
    [
        ("label", [(2.0, True), (1.0, False)], {"acc": 1.0, "acc_norm": 1.0, "exact_match": 0.0}),
        ("answer", [(1.0, False), (2.0, True)], {"acc": 0.0, "acc_norm": 0.0, "exact_match": 1.0}),
        ("{{[0, 1]}}", [(1.0, False), (2.0, True)], {"acc": 1.0, "acc_norm": 1.0, "exact_match": 1.0}),
        (7, [(1.0, True), (2.0, True)], {"acc": 0.0, "acc_norm": 0.0, "exact_match": 0.0}),
    ],
)
def test_choice_metrics(tmp_path: Path, target: Any, pairs: Any, wanted: Any, caplog: pytest.LogCaptureFixture) -> None:
    metrics = [{"metric": name} for name in ("acc", "acc_norm", "exact_match")]
    changes = {
        "output_type": "multiple_choice",
        "doc_to_choice": "options",
        "doc_to_target": target,
        "metric_list": metrics,
    }
    score = one(loaded(tmp_path, changes), pairs)[0]
    assert (score.metrics, score.filtered) == (wanted, pairs)
    assert ("not one of the 2 choices" in caplog.text) is (target == 7)


def test_registered_names_of_other_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        METRICS, "_values", {"mine": RegisteredMetric(lambda references, predictions: 0.25, False, "most")}
    )
    monkeypatch.setattr(AGGREGATIONS, "_values", {"most": max})
    monkeypatch.setattr(
        FILTERS, "_values", {"star": type("Star", (), {"apply": lambda self, resps, docs: ["*"] * len(resps)})}
    )
    task = loaded(
        tmp_path,
        {"metric_list": [{"metric": "mine"}], "filter_list": [{"name": "s", "filter": [{"function": "star"}]}]},
    )
    score = one(task, "x")[0]
    assert (score.metrics, score.filtered) == ({"mine": 0.25}, ["*"])
    metric = task.metrics[0]
    assert (metric.aggregation, metric.aggregation_name, metric.higher_is_better) == (max, "most", False)


def test_functions_of_the_task_as_aggregation_and_filter(tmp_path: Path) -> None:
    metrics = [{"metric": "exact_match", "aggregation": Function("utils.total"), "higher_is_better": False}]
    filters = [
        {"name": "loud", "filter": [{"function": Function("utils.Shout"), "mark": "!"}, {"function": "take_first"}]}
    ]
    task = loaded(tmp_path, {"metric_list": metrics, "filter_list": filters}, CODE)
    assert one(task, "blue")[0].filtered == ["blue!"]
    assert (task.metrics[0].aggregation_name, task.metrics[0].aggregation([1, 2])) == (None, 3)
    assert task.describe()["metric_list"][0]["aggregation"] == "<function utils.total>"


def filters(*steps: Any) -> dict[str, Any]:
    return {"filter_list": [{"name": "x", "filter": list(steps)}]}


def metric(**entry: Any) -> dict[str, Any]:
    return {"metric_list": [entry]}


HERE = r"probe\.yaml"


@for_each(
    ("changes", "error", "message"),
    [
        (
            metric(metric="exact_mach"),
            UnknownNameError,
            rf"'exact_mach'; did you mean exact_match, mcq_match\?.*{HERE}",
        ),
        (metric(metric="acc"), UnknownNameError, r"unknown metric 'acc'.*for output_type generate_until"),
        (metric(aggregation="mean"), TaskError, rf"{HERE}: key 'metric_list': an entry without 'metric'"),
        (metric(metric="exact_match", aggregation="meen"), UnknownNameError, rf"'meen'; did you mean mean.*{HERE}"),
        (filters({"function": "regexp"}), UnknownNameError, rf"filter 'regexp'; did you mean regex.*{HERE}"),
        ({"filter_list": [{"name": "x"}]}, TaskError, r"key 'filter_list': an entry needs name and filter"),
        (filters("regex"), TaskError, r"a filter needs 'function'"),
        (filters({"function": "take_first_k", "k": 0}), TaskError, rf"{HERE}.*take_first_k"),
        (filters({"function": Function("utils.total")}), TaskError, rf"{HERE}: key 'filter_list'"),
        (filters({"function": Function("utils.Keyed")}), TaskError, rf"{HERE}: key 'filter_list'.*Error: name 'KEY'"),
        ({"reasoning_tags": [["<a>"]]}, TaskError, rf"{HERE}: key 'reasoning_tags'"),
        ({"doc_to_target": None}, TaskError, rf"{HERE}: give doc_to_target \(or process_results\)"),
    ],
)
def test_wrong_scoring_keys_are_named(tmp_path: Path, changes: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make_task(tmp_path, changes, CODE)


REDUCED = TaskOptions(repeats=4, reduce=("pass@2", "pass^2", "maj@3", "mean@4"))


def test_reducers_make_further_metrics_of_the_default_pipeline(tmp_path: Path) -> None:
    task = loaded(tmp_path, options=REDUCED)
    assert [metric.name for metric in task.metrics][1:] == [f"exact_match_{name}" for name in REDUCED.reduce]
    score = one(task, "blue", " Blue", "red", "blue")[0]
    assert [alone["exact_match"] for alone in score.per_answer] == [1.0, 0.0, 0.0, 1.0]
    found = dict(score.metrics)
    assert found.pop("exact_match") == 0.5
    # the vote does not see the capital: blue has three votes of four, with the mean score of its answers
    assert found == pytest.approx(
        {
            "exact_match_pass@2": 5 / 6,
            "exact_match_pass^2": 1 / 6,
            "exact_match_maj@3": 2 / 3,
            "exact_match_mean@4": 0.5,
        }
    )


def test_answers_that_a_filter_extracts_vote(tmp_path: Path) -> None:
    digits = [{"name": "n", "filter": [{"function": "regex", "regex_pattern": "[a-z]+"}, {"function": "take_first"}]}]
    score = one(loaded(tmp_path, {"filter_list": digits}, options=REDUCED), "1 blue", "2 blue", "3 red", "blue 4")[0]
    assert score.metrics["exact_match_maj@3"] == 1.0


NOTED = """
from lmms_eval.utils.answer_reading import NOTHING, note_letter, note_reading

def graded(doc, results):
    if "?" in results[0]:
        note_reading(NOTHING)
        return {"m": {"score": 0.0, "page": "p"}}
    note_letter("first", results[0], results[0][0])
    return {"m": {"score": 0.5 if results[0][0] == "A" else 0.0, "page": "p"}}
"""


def test_readings_vote_and_clusters_stay(tmp_path: Path) -> None:
    keys = {"process_results": Function("utils.graded"), "metric_list": CUSTOM, "cluster_key": "page"}
    task = loaded(tmp_path, keys, NOTED, REDUCED)
    score = one(task, "A.", "A it is", "B", "?")[0]
    assert score.metrics["m_maj@3"] == {"score": pytest.approx((0.5 + 0.5 + 2 * 0.5 / 3) / 4), "page": "p"}
    assert score.reading.found == ("A",)
    value = task.metrics[-1].aggregation([{"score": 1.0, "page": "p"}, {"score": 0.0, "page": "q"}])
    assert value == 0.5


def test_values_without_a_number_are_not_reduced(tmp_path: Path) -> None:
    options = TaskOptions(repeats=2, reduce=("pass@2",))
    score = one(spying(tmp_path / "a", options), "x", "y")[0]
    assert set(score.metrics) == {"results", "keys"}
    absent = {"process_results": Function("utils.partly"), "metric_list": [{**CUSTOM[0], "metric": "judge"}]}
    assert "judge_pass@2" not in one(loaded(tmp_path / "b", absent, CODE, options), "x", "y")[0].metrics


@for_each(
    ("options", "keys", "message"),
    [
        (TaskOptions(repeats=2, reduce=("pass@3",)), {}, "has 2 answers; give --repeats 3 or more"),
        (TaskOptions(reduce=("mean@1",)), {}, "has 1 answer; give --repeats 2 or more"),
        (TaskOptions(repeats=2, reduce=("best@2",)), {}, "'best@2' is not known"),
        (REDUCED, {"process_results": Function("utils.number"), "metric_list": CUSTOM}, "maj@3: .* does not extract"),
        (REDUCED, {"output_type": "loglikelihood", "metric_list": [{"metric": "acc"}]}, "maj@3: .* does not extract"),
    ],
)
def test_reducers_that_a_task_cannot_have_are_refused(
    tmp_path: Path, options: TaskOptions, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make_task(tmp_path, keys, CODE, options)


def test_reducers_change_the_scores_alone(tmp_path: Path) -> None:
    plain, reduced = (make_task(tmp_path, options=TaskOptions(repeats=4, reduce=one)) for one in ((), ("pass@2",)))
    differing = {part for part, value in plain.fingerprint().items() if reduced.fingerprint()[part] != value}
    assert differing == {"scoring"}


def test_a_box_around_the_answer_is_not_part_of_it(tmp_path: Path) -> None:
    (score,) = one(spying(tmp_path, TaskOptions()), "It is <|begin_of_box|>B<|end_of_box|>")
    assert score.filtered == ["It is B"]
