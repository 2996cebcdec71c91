from __future__ import annotations

from pathlib import Path

from lmms_eval.api.task import Answer
from lmms_eval.tasks.controls.control import ControlTask
from lmms_eval.tasks.selection import build_from_spec, with_changed_documents
from tests.tasks.kit import loaded

CHOICES = {"choices": {"options": "options", "answer": "label", "form": "number", "question": "question"}}


def test_a_scoring_process_builds_a_control_by_its_name(tmp_path: Path) -> None:
    own = loaded(tmp_path)
    made = build_from_spec(ControlTask(own, "no-media").spec())
    assert (made.name, made.control_of, made.report) == ("probe@no-media", "probe", None)
    made.load()
    made.take_document(0, own.carried_document(0))
    assert made.score(0, [Answer("blue")]).scores[0].metrics == {"exact_match": 1.0}


def test_documents_are_changed_where_they_are_read_and_nowhere_else(tmp_path: Path) -> None:
    own = loaded(tmp_path, CHOICES)
    turned = with_changed_documents(own, "probe@rotation-1", "rotation-1")
    silent = with_changed_documents(own, "probe@choices-only", "no-question")
    for task in (turned, silent):
        task.load()
    assert turned.document(2) == {**own.document(2), "options": ["white", "red", "black"], "label": 0}
    assert silent.document(2) == {**own.document(2), "question": ""}
    assert own.document(2)["options"] == ["black", "white", "red"]
    spec = turned.spec()
    again = build_from_spec(spec)
    again.load()
    assert again.document(2)["options"] == ["white", "red", "black"]  # no document was handed over: the data are opened
    again.take_document(1, turned.carried_document(1))
    assert again.document(1)["options"] == ["blue", "green"]


def test_what_a_control_does_not_say_is_its_tasks(tmp_path: Path) -> None:
    own = loaded(tmp_path, CHOICES)
    control = ControlTask(own, "no-media")
    assert control.target(1) == own.target(1) == "green"
    assert control.options is own.options
    assert (control.name, control.alias) == ("probe@no-media", "no-media")
    assert control.describe()["control"] == {"of": "probe", "name": "no-media"}
    assert control.fingerprint() == {**own.fingerprint(), "control": "no-media"}
