from lmms_eval.tasks.pope.utils import aggregate_f1_score, aggregate_precision, aggregate_recall, yes_or_no
from tests.cases import for_each


@for_each(
    ("answer", "wanted"),
    [
        ("yes", "yes"),
        ("No.", "no"),
        ("Yes, not much else", "no"),
        ("yes. no more", "yes"),
        ("**No**", "no"),
        ("nothing", "yes"),
        ("", "yes"),
    ],
)
def test_the_benchmark_reads_the_first_sentence(answer: str, wanted: str) -> None:
    assert yes_or_no(answer) == wanted


def rows(*pairs: str) -> list[dict[str, object]]:
    made = []
    for pair in pairs:
        prediction, truth = pair.split("/")
        made.append({"prediction": prediction, "ground_truth": truth, "score": float(prediction == truth)})
    return made


def test_answers_that_are_neither_leave_recall() -> None:
    found = rows("yes/yes", "no/yes", "perhaps/yes", "yes/no", "no/no")
    assert aggregate_precision(found).value == 0.5
    assert aggregate_recall(found).value == 0.5
    assert aggregate_f1_score(found).value == 0.5


def test_without_a_yes_all_are_zero() -> None:
    found = rows("no/no", "perhaps/yes")
    aggregations = (aggregate_precision, aggregate_recall, aggregate_f1_score)
    assert [aggregate(found).value for aggregate in aggregations] == [0, 0, 0]
