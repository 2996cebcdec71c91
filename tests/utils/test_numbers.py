from lmms_eval.utils.numbers import two_decimals
from tests.cases import for_each


@for_each(
    ("value", "text"),
    [(0, "0.00"), (12.345, "12.35"), (0.005, "0.01"), (0.00043, "0.0004"), (-0.001, "-0.00"), (100, "100.00")],
)
def test_a_value_above_0_is_never_shown_as_0(value, text):
    assert two_decimals(value) == text
