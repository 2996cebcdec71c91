import json
from types import SimpleNamespace

import pytest

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.judge_texts import JudgeText, fingerprint, identity, noted, texts_of
from tests.cases import for_each

AUTHORS = "Q: {question} A: {prediction}"
TEXT = JudgeText("my_judge", "Ours. {question}? {prediction}.", fingerprint(AUTHORS)[:16])
RULE = JudgeText("my_rule", "Rate it.", "0" * 16)


@pytest.fixture
def settings(tmp_path):
    def write(**texts):
        path = tmp_path / "texts.json"
        path.write_text(json.dumps(texts))
        return {"judge_prompts": str(path)}

    return write


def told(estimate):
    return estimate.notes, estimate.details["judge_texts"]


def test_our_wording_is_used_and_told_without_a_file():
    task = SimpleNamespace(prompts=SimpleNamespace(kwargs={}))
    notes, details = told(noted(Estimate(50.0), task, TEXT))
    assert notes == (
        f"judge text my_judge ({fingerprint(TEXT.wording)[:16]}) is our own wording, not the authors': "
        "the number is not the one that reports quote (--judge_prompts)",
    )
    assert details["my_judge"] == {
        "source": "built-in", "fingerprint": fingerprint(TEXT.wording)[:16], "authors": False,
    }  # fmt: skip


def test_the_authors_text_is_known_by_its_fingerprint(settings):
    task = SimpleNamespace(prompts=SimpleNamespace(kwargs=settings(my_judge=AUTHORS)))
    notes, details = told(noted(Estimate(50.0), task, TEXT))
    assert notes == (f"judge text my_judge ({TEXT.authors}) is the authors' text",)
    assert details["my_judge"]["authors"] is True


def test_a_users_own_text_is_no_authors_text(settings):
    used = TEXT.used(settings(my_judge="Mine: {prediction}"))
    assert "a text from texts.json, not the authors'" in used.origin
    assert used.filled(question="q", prediction="{question} %s") == "Mine: {question} %s"


def test_a_text_that_the_file_lacks_is_ours(settings):
    given = settings(other="x")
    assert TEXT.used(given).source == "built-in"
    assert TEXT.identity(given) == TEXT.identity(None) != TEXT.identity(settings(my_judge=AUTHORS))


def test_scores_depend_on_every_text():
    assert identity(TEXT, RULE)({}) == f"{TEXT.identity({})} {RULE.identity({})}"


def test_a_text_without_places_is_taken_as_it_is(settings):
    assert RULE.used(settings(my_rule='Reply {"score": 1}.')).text == 'Reply {"score": 1}.'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{question}", "has no place {prediction}"),
        ("{prediction} {reference}", "nothing fills {reference}; there is: prediction, question"),
        ("{prediction} {question.__class__}", "nothing fills {question.__class__}"),
        ("{prediction} {", "double the braces"),
    ],
)
def test_texts_that_cannot_be_filled_are_refused(settings, text, said):
    with pytest.raises(DataError, match=said):
        TEXT.used(settings(my_judge=text))


@for_each(
    ("name", "content", "said"),
    [
        ("t.json", "{", "are no JSON"),
        ("t.json", "[1]", "must be a JSON object of texts"),
        ("t.json", '{"a": 1}', "must be a JSON object of texts"),
        ("t.py", "def f(:", "cannot be parsed as Python"),
        ("none.json", None, "cannot be read"),
    ],
)
def test_files_that_are_refused(tmp_path, name, content, said):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=said):
        texts_of(path)


def test_a_python_file_is_parsed_and_never_run(tmp_path):
    path = tmp_path / "texts.py"
    path.write_text('import os\nos.abort()\nmy_judge = "a" + "b"\nother = 5\n')
    assert dict(texts_of(path)) == {"my_judge": "ab"}
