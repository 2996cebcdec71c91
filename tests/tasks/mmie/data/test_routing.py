from lmms_eval.tasks.mmie.data.records import route, tag_of
from lmms_eval.tasks.mmie.facts import CATEGORIES, QUESTIONS
from tests.cases import for_each


@for_each(
    ("sample_id", "expected"),
    [("SA-1", "SA"), ("x_PBL", "PBL"), ("MSR2", "MSR"), ("USA-3", "SA"), ("MSR-PBL", "PBL"), ("sa-1", None), ("", None),
     (7, None), (None, None), (["SA"], None)],
)  # fmt: skip
def test_the_first_tag_decides(sample_id, expected):
    assert route(sample_id).category == expected


def test_a_category_stands_in_for_an_id_without_tag():
    found = route("q-1", "Situational analysis")
    assert found.category == "SA"
    assert "holds no tag" in found.warning


def test_who_wins_where_id_and_category_disagree():
    by_id, by_name = route("USA-3", "Multi-step reasoning"), route("USA-3", "Multi-step reasoning", by_name=True)
    assert (by_id.category, by_name.category) == ("SA", "MSR")
    assert "SA" in by_id.warning
    assert "MSR is taken" in by_name.warning


def test_no_warning_where_both_agree_and_one_for_several_tags():
    assert route("MSR-SA-1", "situational analysis").warning is None
    assert "SA and MSR" in route("MSR-SA-1").warning
    assert route("SA-1").warning is None
    assert route("SA-1", "some other grouping").category == "SA"


@for_each("name", ["SA", "sa", "Situational analysis", "situational-analysis", "Situational Analysis "])
def test_spellings_of_a_category(name):
    assert tag_of(name) == "SA"


def test_names_that_are_no_category():
    assert tag_of(None) is tag_of("") is tag_of("Literature") is None
    assert sum(QUESTIONS.values()) == 20103
    assert list(QUESTIONS) == list(CATEGORIES)
