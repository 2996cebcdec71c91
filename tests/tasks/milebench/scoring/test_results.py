from __future__ import annotations

from lmms_eval.tasks.milebench.scoring.model import DatasetFacts, SampleScore, aggregate, pool


def scored(level: str, score: float, fixed: float, **more: object) -> SampleScore:
    return SampleScore("1", "Accuracy", level, 2, score=score, fixed=fixed, **more)  # type: ignore[arg-type]


def test_the_content_of_eval_json() -> None:
    samples = [scored("Few", 1, 0), scored("Few", 0, 0), scored("Many", 1, 1)]
    found = aggregate(DatasetFacts("TQA", "multi-choice"), samples).as_eval()
    assert found == {
        "Accuracy": 2 / 3,
        "image_quantity_level-Accuracy": {"Few": 0.5, "Medium": 0, "Many": 1.0},
        "image_quantity_level-Result": {"Few": [1, 2], "Medium": [0, 0], "Many": [1, 1]},
    }
    assert [type(number) for number in found["image_quantity_level-Result"]["Few"]] == [int, int]
    assert list(found["image_quantity_level-Accuracy"]) == ["Few", "Medium", "Many"]


def test_failed_samples_are_counted_and_left_out() -> None:
    samples = [scored("Few", 1, 1), SampleScore("2", "Accuracy", "Few", 2, error="no")]
    found = aggregate(DatasetFacts("TQA", "multi-choice"), samples)
    assert (found.n_scored, found.n_failed, found.as_eval()["Accuracy"]) == (1, 1, 1)


def test_the_content_of_eval_fixed_json() -> None:
    samples = [
        scored("Few", 0.25, 0.5, sequence=0.5, step="rouge-l", fixed_step="rouge-l"),
        scored("Medium", 0.75, 1.0, sequence=1.0, step="empty", fixed_step="rouge-l", is_empty=True),
    ]
    found = aggregate(DatasetFacts("IEdit", "open-ended"), samples).as_fixed()
    assert found["Rouge-L f"] == 0.75
    assert found["Rouge-L sequence f"] == 0.75
    assert (found["official"], found["no_answer"], found["scored"]) == (0.5, 1, 2)
    assert found["matching_steps"] == {"empty": 1, "rouge-l": 1}
    assert found["fixed_matching_steps"] == {"rouge-l": 2}


def test_nothing_scored_is_0_over_0() -> None:
    found = aggregate(DatasetFacts("TQA", "multi-choice"), [])
    assert (found.n_scored, found.as_eval()["image_quantity_level-Result"]["Many"]) == (0, [0, 0])


def test_sums_do_not_depend_on_order() -> None:
    scores = [0.1] * 10 + [1e16, -1e16]
    assert pool(scores)[0] == pool(scores[::-1])[0] == 1.0
