from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from lmms_eval.config import build_config
from lmms_eval.engine.team import Place
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.run import run
from lmms_eval.results import load
from lmms_eval.storage.lines import unsealed
from tests.cases import for_each
from tests.evaluation.kit import NAME, Told, config, fails_on, inputs_of, run_folders


def planned(tmp_path: Path, **over: object) -> list[int]:
    (plan,) = inputs_of(config(tmp_path, **over), Told()).plans
    return list(plan.doc_ids)


@for_each(
    ("over", "documents"),
    [
        ({"ids": "1,3-4"}, [1, 3, 4]),
        ({"ids": [5, 0]}, [0, 5]),
        ({"ids": f"{NAME}:2"}, [2]),
        ({"where": "question contains '3'"}, [3]),
        ({"where": "doc_id >= 4"}, [4, 5]),
        ({"where": "doc.question contains 'Question' and task == 'bench_text'", "ids": "0-2"}, [0, 1, 2]),
        ({"ids": "1-5", "limit": 2, "offset": 1}, [2, 3]),
        ({"where": "doc_id > 0", "limit": 0.5}, [1, 2, 3]),
    ],
    ids=str,
)
def test_documents_are_chosen_before_anything_is_asked(tmp_path: Path, over: dict, documents: list[int]) -> None:
    assert planned(tmp_path, **over) == documents


@for_each(
    ("over", "said"),
    [
        ({"ids": "6"}, "has no document 6: it has 6"),
        ({"ids": "other:1"}, "--ids: other: not among the tasks"),
        ({"where": "doc_id > 99"}, "choose no document of any task"),
        ({"where": "quesion == 'x'"}, r"character 1 .*no column 'quesion'; nearest: question"),
        ({"where": "doc_id > 1 and score < 1"}, r"character 16 .*'score' is known of answered samples alone"),
        ({"where": "exact_match < 1"}, "'exact_match' is known of answered samples alone"),
        ({"where": "finish_reason == 'length'"}, "known of answered samples alone"),
    ],
    ids=str,
)
def test_what_cannot_be_chosen_is_refused_in_one_line(tmp_path: Path, over: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        planned(tmp_path, **over)
    assert "\n" not in str(caught.value)


@for_each("over", [{"ids": "1,x"}, {"where": "score ="}])
def test_mistakes_are_found_with_the_options(over: dict) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(over))}"):
        build_config({"model": "baseline", "tasks": NAME, **over})


def test_a_file_of_ids_is_recorded_by_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("1\n2\n5\n")
    assert build_config({"model": "m", "tasks": "t", "ids": str(tmp_path / "ids.txt")}).ids == "1-2,5"


def test_other_documents_are_another_run_and_processes_agree(tmp_path: Path) -> None:
    chosen = {"ids": "1-3", "where": "question contains 'Question'"}
    alone, all_of_it = inputs_of(config(tmp_path, **chosen), Told()), inputs_of(config(tmp_path), Told())
    assert alone.key != all_of_it.key
    first, second = (inputs_of(config(tmp_path, **chosen), Told(), Place(rank, 2)) for rank in (0, 1))
    assert [plan.doc_ids for plan in first.plans] == [plan.doc_ids for plan in second.plans]
    assert first.common_key == second.common_key


def test_a_run_of_some_documents_is_continued_and_recorded(tmp_path: Path) -> None:
    options = config(tmp_path, ids="1,4", where="question contains 'Question'", log_samples=True)
    model = Told(fails_on(4))
    assert run(options, model).exit_code == 3
    assert sorted(model.asked) == [1, 4]
    again = Told()
    report = run(options, again)
    assert (report.exit_code, "ids: 1,4, where: question contains" in report.table) == (0, True)
    assert again.asked == [4]
    (folder,) = run_folders(tmp_path / "out")
    state = orjson.loads(unsealed((folder / "run.json").read_bytes()) or b"{}")
    assert (state["arguments"]["ids"], state["arguments"]["where"]) == ("1,4", "question contains 'Question'")
    finished = load(tmp_path / "out")
    assert [one.doc_id for one in finished.samples()] == ["1", "4"]
    assert finished.document["n-samples"][NAME] == {"original": 6, "effective": 2}
    assert (finished.state, "bench_text" in finished.table) == ("complete", True)
