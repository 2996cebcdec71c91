from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.model import lmms
from lmms_eval.errors import ConfigError, UnknownNameError
from lmms_eval.evaluator import evaluate, simple_evaluate
from lmms_eval.tasks import TaskManager, get_task_dict
from tests.cases import for_each
from tests.evaluation.kit import DOCUMENTS, NAME, Told, tasks
from tests.faults.bad_input import here
from tests.faults.command import results

CHANGES = ("date", "start_time", "end_time", "total_evaluation_time_seconds", "timing", "throughput")


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def same(document: dict[str, Any]) -> dict[str, Any]:
    """What two runs of one configuration have in common."""
    kept = json.loads(json.dumps({key: value for key, value in document.items() if key not in CHANGES}))
    for name in ("output_path", "log_samples", "verbosity", "model"):
        kept["config"]["resolved_cli_args"].pop(name, None)
    return dict(kept)


def test_names_give_the_results_of_the_command_line(tmp_path: Path) -> None:
    folder, out = tasks(tmp_path), tmp_path / "out"
    made = simple_evaluate(
        "baseline", model_args="strategy=gold", tasks=[NAME], include_path=str(folder), limit=4,
        output_path=str(tmp_path / "api"), log_samples=True, bootstrap_iters=10, verbosity="INFO",
    )  # fmt: skip
    ended = here(
        {
            "--model": "baseline", "--model_args": "strategy=gold", "--tasks": NAME, "--include_path": str(folder),
            "--limit": "4", "--output_path": str(out), "--log_samples": "", "--bootstrap_iters": "10",
        }
    )  # fmt: skip
    assert ended.code == 0, ended.shown
    assert made["results"][NAME]["exact_match,none"] == 1.0
    samples = made.pop("samples")
    assert same(made) == same(results(out))
    rows = [next(path.rglob("*_samples_*.jsonl")).read_text() for path in (out, tmp_path / "api")]
    assert rows[0] == rows[1]
    assert samples == {NAME: [json.loads(line) for line in rows[0].splitlines()]}


def test_a_model_object_serves_twice(tmp_path: Path) -> None:
    folder, model = tasks(tmp_path), Told()
    one, other = (simple_evaluate(model, tasks=NAME, include_path=str(folder)) for _ in range(2))
    assert len(model.asked) == 2 * DOCUMENTS and not model.closed
    assert one["results"][NAME]["exact_match,none"] == 1.0
    assert same(one) == same(other)
    assert one["model_source"] == "told"


def test_a_plugin_object_serves_twice(tmp_path: Path) -> None:
    class Plugin(lmms):
        calls = 0

        def generate_until(self, requests: list[Any]) -> list[Any]:
            self.calls += len(requests)
            return [request.args[0].partition("ANSWER=")[2] for request in requests]

        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            raise NotImplementedError

        def generate_until_multi_round(self, requests: list[Any]) -> list[Any]:
            raise NotImplementedError

    folder, model = tasks(tmp_path), Plugin()
    for number in (1, 2):
        made = simple_evaluate(model, tasks=NAME, include_path=str(folder))
        assert made["results"][NAME]["exact_match,none"] == 1.0
        assert model.calls == number * DOCUMENTS


def test_seeds_by_the_familys_names(tmp_path: Path) -> None:
    folder = tasks(tmp_path)
    made = simple_evaluate("baseline", tasks=NAME, include_path=str(folder), random_seed=5, fewshot_random_seed=6)
    names = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
    assert [made["config"][name] for name in names] == [5, 1234, 1234, 6]
    plain = simple_evaluate("baseline", tasks=NAME, include_path=str(folder))
    assert [plain["config"][name] for name in names] == [0, 1234, 1234, 1234]
    assert made["run_key"] != plain["run_key"]


def test_a_task_manager_says_where_tasks_are(tmp_path: Path) -> None:
    manager = TaskManager(include_path=str(tasks(tmp_path)))
    made = simple_evaluate("baseline", model_args="strategy=gold", tasks=[NAME], task_manager=manager)
    assert made["results"][NAME]["exact_match,none"] == 1.0
    with pytest.raises(UnknownNameError, match=NAME):
        simple_evaluate("baseline", tasks=[NAME], task_manager=TaskManager())
    with pytest.raises(ConfigError, match="TaskManager"):
        simple_evaluate("baseline", tasks=[NAME], task_manager=manager, include_path=str(tmp_path / "tasks"))


def test_arguments_without_meaning_here_are_accepted_and_wrong_ones_are_not(tmp_path: Path) -> None:
    folder = tasks(tmp_path)
    made = simple_evaluate(
        "baseline", tasks=NAME, include_path=str(folder), limit=1, log_samples=True, datetime_str="x",
        task_manager=None, cli_args=object(), distributed_executor_backend="accelerate",
    )  # fmt: skip
    assert made["n-samples"][NAME]["effective"] == 1
    with pytest.raises(ConfigError, match="limt"):  # type checkers see it too (tests/config/test_keywords.py)
        simple_evaluate("baseline", tasks=NAME, include_path=str(folder), limt=1)
    with pytest.raises(UnknownNameError, match="unknown model 'basline'"):
        simple_evaluate("basline", tasks=NAME, include_path=str(folder))


class Class(lmms):
    """A class of the family's interface; answers with its thoughts before."""

    def generate_until(self, requests: list[Any]) -> list[Any]:
        return ["<think>no</think>" + request.args[0].partition("ANSWER=")[2] for request in requests]

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Any]) -> list[Any]:
        raise NotImplementedError


@for_each("kind", ["simple", "chat"])
@for_each("model", [Told, Class])
def test_tasks_that_a_program_has(tmp_path: Path, kind: str, model: Any) -> None:
    manager = TaskManager(include_path=str(tasks(tmp_path)))
    found = get_task_dict([NAME], manager, kind)
    held = model()
    made = evaluate(lm=held, task_dict=found, limit=4, bootstrap_iters=10, cli_args=None, verbosity="INFO")
    assert made["results"][NAME]["exact_match,none"] == 1.0
    assert made["n-samples"][NAME]["effective"] == 4
    named = simple_evaluate(held, tasks=NAME, task_manager=manager, limit=4, bootstrap_iters=10, verbosity="INFO")
    if model is Class:  # an object of any weights: no two runs of it are the same
        assert made.pop("run_key") != named.pop("run_key")
    assert same(made) == same(named)
    assert evaluate(held, {"group": found})["n-samples"][NAME]["effective"] == DOCUMENTS


def test_a_configuration_with_functions_of_a_program(tmp_path: Path) -> None:
    manager = TaskManager(include_path=str(tasks(tmp_path)))
    changed = {"task": NAME, "process_results": lambda _doc, results: {"exact_match": float(results[0] == "never")}}
    made = evaluate(Told(), get_task_dict(changed, manager, "chat"))
    assert made["results"][NAME]["exact_match,none"] == 0.0


@for_each(
    ("task_dict", "arguments", "words"),
    [
        ({}, {}, "holds no task"),
        ({"mme": "mme"}, {}, r"task_dict\['mme'\] is a str"),
        ({}, {"tasks": "mme"}, "leave tasks out"),
        ({}, {"include_path": "."}, "leave include_path out"),
    ],
)
def test_what_evaluate_cannot_take(task_dict: Any, arguments: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        evaluate(Told(), task_dict, **arguments)


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    manager = TaskManager(include_path=str(tasks(tmp_path)))
    one, other = (get_task_dict([NAME], manager) for _ in range(2))
    with pytest.raises(ConfigError, match=f"two tasks of the name '{NAME}'"):
        evaluate(Told(), {"one": one, "other": other})


def test_the_root_of_the_package_offers_both() -> None:
    import lmms_eval

    assert lmms_eval.simple_evaluate is simple_evaluate
