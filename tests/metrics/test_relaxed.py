from lmms_eval.metrics.text import relaxed_accuracy
from tests.cases import for_each


@for_each(
    ("answer", "reference", "score"),
    [
        ("105", "100", 1.0),
        ("95", "100", 1.0),
        ("106", "100", 0.0),
        ("-100", "100", 0.0),
        ("5%", "0.05", 1.0),
        ("0.05", "5%", 1.0),
        ("Blue", "blue", 1.0),
        ("blue ", "blue", 0.0),
        ("1,000", "1000", 0.0),
        ("1e2", "100", 1.0),
        ("nan", "1", 0.0),
        ("inf", "inf", 0.0),
        ("0", "0.0", 0.0),
        ("", "", 1.0),
        ("%", "%", 1.0),
    ],
)
def test_numbers_are_compared_within_five_percent_and_texts_as_they_are(
    answer: str, reference: str, score: float
) -> None:
    assert relaxed_accuracy(answer, reference) == score


@for_each(("answer", "score"), [("0", 1.0), ("0%", 1.0), ("-0.0", 1.0), ("0.01", 0.0), ("zero", 0.0)])
def test_zero_is_a_number_where_that_is_asked_for(answer: str, score: float) -> None:
    assert relaxed_accuracy(answer, "0.0", is_zero_a_number=True) == score
