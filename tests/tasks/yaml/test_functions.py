"""What a task's function raises is told by the key under which it stands."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import FunctionError, MediaError
from lmms_eval.tasks.yaml.functions import named
from tests.cases import for_each
from tests.tasks.kit import Function, make_task


def broken(doc: Any, settings: Any = None) -> Any:
    if settings is not None:
        raise settings
    return doc["image"]


LINE = inspect.getsourcelines(broken)[1] + 3


def test_the_key_the_error_and_the_place_are_told() -> None:
    with pytest.raises(FunctionError) as caught:
        named(broken, "doc_to_visual")({})
    assert str(caught.value) == f"doc_to_visual raised KeyError: 'image' ({__file__}:{LINE})"
    assert isinstance(caught.value.__cause__, KeyError)


def test_exit_ends_the_sample_alone() -> None:
    with pytest.raises(FunctionError, match=r"^doc_to_text raised SystemExit: 0"):
        named(broken, "doc_to_text")({}, SystemExit(0))


@for_each("error", [NotEvaluated("no judge"), MediaError("no such file"), KeyboardInterrupt()])
def test_what_has_a_meaning_of_its_own_passes_through(error: BaseException) -> None:
    with pytest.raises(type(error)):
        named(broken, "process_results")({}, error)


def test_signature_and_attributes_stay() -> None:
    partial = functools.partial(broken, settings=None)
    assert inspect.signature(named(broken, "doc_to_text")) == inspect.signature(broken)
    assert named(partial, "doc_to_text")({"image": 1}) == 1
    assert named("{{question}}", "doc_to_text") == "{{question}}"
    assert named(MediaError, "dataset_path") is MediaError


def imports_absent(doc: Any) -> Any:
    from lmms_eval import no_such

    return no_such


def test_a_name_that_this_version_lacks_is_told() -> None:
    with pytest.raises(
        FunctionError, match=r"^process_results raised ImportError: lmms_eval\.no_such is not part of this"
    ):
        named(imports_absent, "process_results")({})


CODE = """
def process_results(doc, results):
    return {"exact_match": 1.0}

def choices(doc):
    return doc["options"]
"""


@for_each(
    ("changes", "is_ours"),
    [
        ({}, True),
        ({"doc_to_text": Function("utils.choices")}, True),
        ({"process_results": Function("lmms_eval.tasks.docvqa.utils.docvqa_answer_to_submit")}, True),
        ({"process_results": Function("utils.process_results")}, False),
        ({"output_type": "multiple_choice", "doc_to_choice": Function("utils.choices")}, False),
        ({"doc_to_target": Function("utils.choices")}, False),
    ],
)
def test_a_task_is_scored_by_the_package_if_no_code_of_others_scores(
    tmp_path: Path, changes: dict[str, Any], is_ours: bool
) -> None:
    assert make_task(tmp_path, changes, CODE).is_scored_by_package is is_ours
