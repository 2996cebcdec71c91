from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import TaskError
from lmms_eval.tasks.yaml.config import task_config
from lmms_eval.tasks.yaml.prompts import (
    Prompts,
    RenderError,
    bound_messages,
    bound_text,
    bound_visual,
    check_template,
    choices_value,
    render_template,
)
from tests.cases import for_each
from tests.tasks.kit import BASE

DOC = {
    "question": "why",
    "n": 3,
    "list": ["a", "b"],
    "text_list": "['x', 'y']",
    "map": {"A": "one", "B": "two"},
    "empty": None,
}


def prompts(options: TaskOptions | None = None, **changes: Any) -> Prompts:
    return Prompts(task_config({**BASE, **changes}, "x.yaml"), options or TaskOptions(), "x.yaml")


@for_each(
    ("spec", "wanted"),
    [
        ("question", "why"),
        ("n", 3),
        ("Q: {{question}}", "Q: why"),
        ("plain text\n", "plain text"),
        ("{{question}}\n", "why"),
        ("{{question | regex_replace('w', 'W')}}", "Why"),
        ("{{question | regex_replace('[a-z]', '.', 1)}}", ".hy"),
        (lambda doc: doc["n"] + 1, 4),
        (7, 7),
    ],
)
def test_text_keys(spec: Any, wanted: Any) -> None:
    assert prompts(doc_to_text=spec).text(DOC) == wanted


@for_each(
    ("spec", "choices", "wanted"),
    [
        ("n", None, 3),
        ("{{n}}", None, "3"),
        ("{{n}}", "list", 3),
        ("question", "list", "why"),
        ("{{text_list}}", None, ["x", "y"]),
        ("text_list", None, "['x', 'y']"),
        ("[not a list", None, "[not a list"),
        ("[broken {{n}}]", None, "[broken 3]"),
        (["a", "b"], None, ["a", "b"]),
        (1, "list", 1),
        ("list", None, ["a", "b"]),
    ],
)
def test_target_keys(spec: Any, choices: Any, wanted: Any) -> None:
    assert prompts(doc_to_target=spec, doc_to_choice=choices).target(DOC) == wanted


@for_each(
    ("spec", "wanted"),
    [
        ("list", ["a", "b"]),
        ("text_list", ["x", "y"]),
        ("map", ["one", "two"]),
        (["p", "q"], ["p", "q"]),
        ({"A": "p", "B": "q"}, ["p", "q"]),
        ("{{ [question, 'x'] }}", ["why", "x"]),
        (lambda doc: [doc["n"], 4], ["3", "4"]),
    ],
)
def test_choices(spec: Any, wanted: list[str]) -> None:
    assert choices_value(spec, DOC, "x") == wanted


@for_each("spec", ["question", "n", lambda doc: [], "{{n}}"])
def test_choices_must_be_a_list(spec: Any) -> None:
    with pytest.raises(RenderError, match="choices"):
        choices_value(spec, DOC, "x.yaml: doc_to_choice")


def test_undefined_names_and_broken_templates_are_errors() -> None:
    with pytest.raises(RenderError, match=r"x\.yaml: doc_to_text: .*'qestion' is undefined.*columns question, n"):
        prompts(doc_to_text="{{qestion}}").text(DOC)
    with pytest.raises(RenderError, match="template"):
        render_template("{{ empty + 1 }}", DOC, "x")
    with pytest.raises(TaskError, match=r"x: template '\{\{ a'"):
        check_template("{{ a", "x")


@for_each(
    "template",
    [
        "{{ q.__class__.__base__.__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.system('touch ' ~ q) }}",
        "{{ self.__init__.__globals__ }}",
        "{{ ''.format.__globals__ }}{{ '{0.__class__}'.format(q) }}",
        "{{ xs.append('added') }}",
        "{{ facts.update(answer='B') }}",
    ],
)
def test_a_template_reaches_nothing_but_its_document(template: str, tmp_path: Path) -> None:
    doc = {"q": str(tmp_path / "made"), "xs": ["a"], "facts": {"answer": "A"}}
    with pytest.raises(RenderError, match=r"t\.yaml: template .*(unsafe|undefined|no attribute)"):
        render_template(template, doc, "t.yaml")
    assert doc == {"q": str(tmp_path / "made"), "xs": ["a"], "facts": {"answer": "A"}}
    assert not list(tmp_path.iterdir())


def test_functions_get_settings_by_their_signature() -> None:
    kwargs = {"k": 1}
    assert bound_text(lambda doc: doc, kwargs)(1) == 1
    assert bound_text(lambda doc, settings: settings, kwargs)(1) == kwargs
    assert bound_text(lambda doc, settings=None: settings, None)(1) is None
    assert bound_text(lambda doc, settings=None, round_idx=None: round_idx, kwargs)(1, round_idx=2) == 2
    assert bound_text(lambda doc, *rest: rest, kwargs)(1) == (kwargs,)
    assert bound_visual(lambda doc: doc, kwargs)(1) == 1
    assert bound_visual(lambda doc, settings: settings, kwargs)(1) == kwargs
    assert bound_visual(lambda doc, a=0, b=0: (a, b), kwargs)(1) == (0, 0)
    assert bound_messages(lambda doc, lmms_eval_specific_kwargs=None: lmms_eval_specific_kwargs, kwargs)(1) == kwargs
    assert bound_messages(lambda doc, settings: settings, kwargs)(1) == kwargs
    assert bound_messages(lambda doc: doc, kwargs)(1) == 1
    assert bound_messages(lambda doc, **more: more, kwargs)(1, round_idx=1) == {
        "lmms_eval_specific_kwargs": kwargs, "round_idx": 1,
    }  # fmt: skip
    assert bound_messages(lambda doc, round_idx=0: round_idx, kwargs)(1, round_idx=3) == 3


def test_numbers_of_choices_are_shown_as_text() -> None:
    made = prompts(doc_to_text="{{1}}", doc_to_target=0, doc_to_choice="list")
    assert made.shown_text(DOC) == "b"
    assert made.answer_text(DOC) == "a"
    with pytest.raises(RenderError, match="no choice number 9 among 2"):
        prompts(doc_to_text=9, doc_to_choice="list").shown_text(DOC)


def test_visuals() -> None:
    assert prompts(doc_to_visual="list").visuals(DOC) == ["a", "b"]
    assert prompts(doc_to_visual="question").visuals(DOC) == ["why"]
    assert prompts(doc_to_visual=lambda doc: None).visuals(DOC) == []
    assert prompts().visuals(DOC) == []
    with pytest.raises(RenderError, match="no column 'image'"):
        prompts(doc_to_visual="image").visuals(DOC)


def test_a_description_is_never_a_column() -> None:
    assert prompts(description="question").description(DOC) == "question"
    assert prompts(description="{{question}}!\n").description(DOC) == "why!"


def test_the_data_root_reaches_the_prompt_functions() -> None:
    options = TaskOptions(data_root="/data")
    assert prompts(options, lmms_eval_specific_kwargs={"a": 1}).kwargs == {"a": 1, "data_root": "/data"}
    assert prompts(options, run_options=["media_root"]).kwargs == {"data_root": "/data"}
    assert prompts(options).kwargs is None
    assert prompts(options).kwargs is None
