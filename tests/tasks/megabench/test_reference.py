from lmms_eval.tasks.megabench.reference import check
from tests.cases import for_each
from tests.tasks.megabench.submissions import entry, query, reference

TASKS = {"t": reference("t"), "u": reference("u")}


def problems(*entries):
    found, refused = check(entries, TASKS)
    return [problem.error for problem in found], refused


def test_a_right_submission_has_no_problems():
    assert problems(entry(query(1), query(2)), entry(query(1), name="u")) == ([], set())


@for_each("response", [None, "", "Answer: x"])
def test_a_reply_may_be_missing(response):
    assert problems(entry(query(1, response))) == ([], set())
    without = query(1)
    del without["response"]
    assert problems(entry(without)) == ([], set())


@for_each("number", [1, "1"])
def test_ids_may_be_numbers_or_texts(number):
    assert problems(entry(query(0, global_idx=number))) == ([], set())


def test_a_position_wins_over_the_id():
    assert problems(entry(query(99, query_idx=1), query(98, query_idx="0"))) == ([], set())


@for_each(
    ("bad", "message"),
    [
        (entry(query(1), name="made_up"), "no such task"),
        (entry(query(7)), "global_idx '7'.*not in the data set"),
        (entry(query(1, query_idx=5)), "not in the data set"),
        (entry(query(1), query(1)), "occurs twice"),
        (entry(query(1, 5)), "response must be a text, not int"),
        (entry(query(1, correct_answer="x")), "no correct_answer"),
        ({"task_name": "t"}, "query_response must be a list"),
        (entry(query(1)) | {"query_response": [3]}, "query 0 is no object"),
    ],
)
def test_each_problem_names_its_item_and_the_rest_is_scored(bad, message):
    errors, refused = problems(entry(query(1), name="u"), bad)
    assert refused == {1}
    (error,) = errors
    assert __import__("re").search(message, error)


def test_of_a_repeated_task_the_first_one_counts():
    errors, refused = problems(entry(query(1)), entry(query(1)))
    assert refused == {1}
    assert "entry 1 repeats entry 0" in errors[0]
