import random

from lmms_eval.tasks.mmbench import circular
from tests.cases import for_each


def row(index, answer, prediction, judged=None):
    options = {"A": "red kite", "B": "blue glass lamp", "C": "old map", "D": "tin cup", "E": "nan"}
    beside = {} if judged is None else {"judged": judged}
    kind = {"category": "ocr", "L2-category": "fine"}
    return {"index": index, "answer": answer, "prediction": prediction, **kind, **options, **beside}


def test_an_item_is_right_if_every_row_is():
    right = [row(1, "B", "B"), row(1_000_001, "A", "(A)")]
    wrong = [row(1_000_002, "A", "C"), row(2, "B", "B")]
    made = circular.official([*wrong, *right])
    assert made.value == 50
    assert made.details["mmbench"] == {
        "overall_acc": 0.5,
        "category_acc": {"ocr": 0.5},
        "l2_category_acc": {"fine": 0.5},
    }
    assert made.sub_scores["category"]["ocr"].n == 2


def test_rows_without_a_first_one_are_no_item():
    assert circular.official([row(1_000_001, "A", "A")]).value is None


def test_a_wrong_row_settles_an_item_whatever_the_judge_would_say():
    rows = [row(1, "B", "no idea", circular.NO_JUDGE), row(1_000_001, "A", "C")]
    made = circular.official(rows)
    assert made.value == 0 and made.notes == ()


def test_the_judges_letter_counts():
    assert circular.official([row(1, "B", "no idea", "B"), row(2, "B", "no idea", "E")]).value == 50


def test_items_that_wait_for_a_judge_are_left_out_and_told():
    made = circular.official([row(1, "B", "no idea", circular.NO_JUDGE), row(2, "B", "B")])
    assert made.value == 100
    assert made.notes == ("unscored: 1 of 2 items need a judge (--judge_model) and are left out",)


def test_drawn_letters_follow_the_authors_generator_and_are_told():
    generator = random.Random(2680)
    drawn = ["ABCDE"[generator.randint(0, 4)] for _ in range(20)]
    rows = [row(number, letter, "no idea", circular.NO_LETTER) for number, letter in enumerate(drawn)]
    made = circular.official([*rows, row(20, "B", "C")])
    assert made.value == 100 * 20 / 21
    assert made.notes[0].startswith("drawn_items: 20 of 21 items")
    fixed = circular.fixed([*rows, row(20, "B", "C")])
    assert fixed.value == 0 and fixed.notes[0].startswith("failed: 20 of 21 items")


def test_without_a_judge_letters_are_read_loosely():
    made = circular.static([row(0, "B", "I think so: B"), row(1, "C", ""), row(2, "A", "no idea")])
    assert made.value == 100 / 3


@for_each(("prediction", "letter"), [
    ("B", "B"), ("The answer is B", "B"),  # one letter among the words
    ("Definitely the old map.", "C"),  # the text of one option; by letters alone D
    ("Answer: the blue glass lamp (not Charlie's)", "B"),
    ("A person holds a tin cup", "D"),  # an article among more than three words
    ("I see a red kite and a tin cup: (B", "B"),  # two texts, no word: letters, the loose way
    ("Option:C", "C"), ("B, D", "D"), ("nothing of it", ""),
])  # fmt: skip
def test_without_a_judge_words_and_texts_come_before_loose_letters(prediction, letter):
    for gold in "ABCD":
        assert circular.static([row(0, gold, prediction)]).value == 100 * (gold == letter)
