from __future__ import annotations

import pytest

from lmms_eval.errors import ItemError
from lmms_eval.recipes.layouts import (
    Fields,
    Layout,
    MediaReference,
    answer_start,
    lettered,
    marked,
    mistakes,
    numbered,
    render,
)
from tests.cases import for_each

CHOICE = Fields(question="Which?", options=("one", "two"), images=2)
FIRST, SECOND = MediaReference("image", 0), MediaReference("image", 1)


def layout(*parts: str, **keys: object) -> Layout:
    return Layout(parts=parts, **keys)  # type: ignore[arg-type]


PARTS = {
    "pictures first": (
        layout("Q: {{ question }}\n{{ options | lettered }}"),
        [FIRST, SECOND, "Q: Which?\nA. one\nB. two"],
    ),
    "pictures last": (layout("{{ question }}", pictures="last"), ["Which?", FIRST, SECOND]),
    "pictures where the template puts them": (
        layout("Look: {{ images[1] }}{{ question }}", pictures="placed"),
        ["Look: ", SECOND, "Which?"],
    ),
    "a label of each picture": (
        layout("{{ question }}", picture="{% if count > 1 %}Image-{{ n }}: {% endif %}{{ media }}"),
        ["Image-1: ", FIRST, "Image-2: ", SECOND, "Which?"],
    ),
    "the first picture only": (layout("{{ question }}", most=1), [FIRST, "Which?"]),
    "texts of their own": (layout("{{ question }}", "Yes or no."), [FIRST, SECOND, "Which?", "Yes or no."]),
    "no empty text": (layout("", "{{ hint }}", "{{ question }}"), [FIRST, SECOND, "Which?"]),
    "white space at the end, then a suffix": (
        layout("{{ question }} \n", rstrip=True, suffix=" {{ more }}", texts={"more": "Think."}),
        [FIRST, SECOND, "Which? Think."],
    ),
    "a text with line breaks at both ends": (layout("\n{{ question }}\n"), [FIRST, SECOND, "\nWhich?\n"]),
}


@for_each("shape, wanted", PARTS.values(), ids=PARTS)
def test_parts(shape: Layout, wanted: list[object]) -> None:
    assert render(shape, CHOICE) == wanted


MARKS = {
    "numbered marks are cut out": (
        {"pictures": "marked"}, "Is <image 2> like <image 1>?", ["Is ", SECOND, " like ", FIRST, "?"],
    ),
    "marks in order": ({"pictures": "marked"}, "<image> or <image>", [FIRST, " or ", SECOND]),
    "a picture twice": ({"pictures": "marked"}, "<image 1>, <image 1>", [FIRST, ", ", FIRST]),
    "without a mark the pictures are first": ({"pictures": "marked"}, "Which?", [FIRST, SECOND, "Which?"]),
    "marks stay": ({}, "Is it <image 2>?", [FIRST, SECOND, "Is it <image 2>?"]),
    "a mark of another form stays": ({"pictures": "marked"}, "<image1> x", [FIRST, SECOND, "<image1> x"]),
    "gathered before the texts, which are joined": (
        {"pictures": "marked", "gather": True, "join": "\n"}, "Is <image 2> it?", [SECOND, "Is \n it?"],
    ),
    "each text between pictures": (
        {"pictures": "marked", "text": "{{ text | trim }}!"}, "Is <image 1> it ?", ["Is!", FIRST, "it ?!"],
    ),
    "joined around pictures": (
        {"pictures": "marked", "text": "{{ text | trim }}", "join": "\n"},
        "Is <image 1> it ?",
        ["Is\n", FIRST, "\nit ?"],
    ),
}  # fmt: skip


@for_each("keys, question, wanted", MARKS.values(), ids=MARKS)
def test_marks(keys: dict[str, object], question: str, wanted: list[object]) -> None:
    assert render(layout("{{ question }}", **keys), Fields(question=question, images=2)) == wanted


def test_a_mark_without_a_picture_fails_the_document() -> None:
    marks = layout("{{ question }}", pictures="marked")
    for question in ("<image 3>", "<image><image><image>", "<image 0>"):
        with pytest.raises(ItemError, match="has no picture; the document has 2"):
            render(marks, Fields(question=question, images=2))


def test_a_video_is_sent_whole_or_as_frames() -> None:
    shape = layout("{{ question }}", frame="Frame{{ n }}: {{ media }}")
    assert render(shape, Fields(question="Who?", videos=1)) == [MediaReference("video", 0), "Who?"]
    frames = render(shape, Fields(question="Who?", videos=1, frames=2))
    assert frames == ["Frame1: ", MediaReference("frame", 0), "Frame2: ", MediaReference("frame", 1), "Who?"]


def test_a_document_cannot_write_templates_or_marks() -> None:
    """What a document says is text, whatever it looks like."""
    asked = "{{ 7 * 7 }} {% for x in y %} \x02image:0\x03 <|image|>"
    assert render(layout("{{ question }}"), Fields(question=asked)) == [asked]


def test_the_start_of_the_answer_depends_on_the_document() -> None:
    start = layout("{{ question }}", answer_start="{% if options %}Answer: ({% endif %}")
    assert (answer_start(start, CHOICE), answer_start(start, Fields(question="Why?"))) == ("Answer: (", "")


def test_options_as_the_data_state_them() -> None:
    lines = layout("{{ option_lines | join('/') }}")
    assert render(lines, Fields(options=("a", "b"))) == ["A. a/B. b"]
    assert render(lines, Fields(options=("a", "b"), option_lines=("(A) a", "(B) b"))) == ["(A) a/(B) b"]


def test_filters() -> None:
    assert lettered(["x", "y"], "(X) ", ", ") == "(A) x, (B) y"
    assert lettered(["x", "", "z"]) == "A. x\nC. z"
    assert numbered("<image> and <image 7>", "<Image-N>") == "<Image-1> and <Image-2>"
    assert (marked("<image 3> <image>"), marked("none", 2)) == ([3, 1], [1, 2])
    shape = layout("{% if question is chinese %}请{% else %}Please{% endif %}")
    assert render(shape, Fields(question="图中")) == ["请"] and render(shape, Fields(question="Ü")) == ["Please"]


MISTAKES = {
    "an unknown field": (layout("{{ qestion }}"), "parts[1]", "unknown field 'qestion'; there are"),
    "an unknown filter": (layout("{{ question | letters }}"), "parts[1]", "No filter named 'letters'"),
    "an unknown field of a picture": (layout("x", picture="{{ number }}"), "picture", "unknown field 'number'"),
    "a field of pictures in a text": (layout("{{ media }}"), "parts[1]", "unknown field 'media'"),
    "a template that is not closed": (layout("x", suffix="{{ question"), "suffix", "unexpected end of template"),
    "a method": (layout("{{ question.zfill(999) }}"), "parts[1]", "calls of functions and methods"),
    "a product": (layout("{{ 'a' * 999 }}"), "parts[1]", "products are not part of layouts"),
    "a format": (layout("{{ '%999d' % 1 }}"), "parts[1]", "remainders and the formatting of texts"),
    "a filter that layouts do not have": (
        layout("{{ question | center(999) }}"),
        "parts[1]",
        "No filter named 'center'",
    ),
    "another template": (layout("{% include 'x' %}"), "parts[1]", "other templates are not part of layouts"),
    "a function of Jinja": (
        layout("{{ range(9) }}"),
        "parts[1]",
        "calls of functions and methods are not part of layouts",
    ),
}


@for_each("shape, key, text", MISTAKES.values(), ids=MISTAKES)
def test_mistakes(shape: Layout, key: str, text: str) -> None:
    ((where, mistake),) = mistakes(shape)
    assert where == key and text in mistake and "\n" not in mistake


def test_a_template_reaches_no_attributes_of_python() -> None:
    shape = layout("{{ question.__class__.__mro__ }}")
    with pytest.raises(ItemError, match="unsafe"):
        render(shape, CHOICE)
    with pytest.raises(ItemError, match="layout: template"):
        render(layout("{{ options[9] }}"), CHOICE)
