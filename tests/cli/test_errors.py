from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lmms_eval import errors
from lmms_eval.cli.output import report_error
from tests.cases import for_each

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"


def _kinds(kind: type[errors.LmmsEvalError] = errors.LmmsEvalError) -> Iterator[type[errors.LmmsEvalError]]:
    yield kind
    for further in kind.__subclasses__():
        yield from _kinds(further)


def _anchors() -> set[str]:
    heads = re.findall(r"^#{2,3} (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


def test_sections_of_errors_are_on_the_page() -> None:
    named = {kind.section for kind in _kinds()} - {""}
    assert len(named) > 4
    assert named <= _anchors()


@for_each(
    ("error", "line"),
    [
        (errors.RunLockedError("in use"), "error: in use (see docs/troubleshooting.md#runs-in-use)\n"),
        (errors.AbsentDataError("none"), "error: none (see docs/troubleshooting.md#missing-data)\n"),
        (errors.ConfigError("--limit: 0"), "error: --limit: 0\n"),
    ],
)
def test_an_error_ends_with_its_section(error, line, capsys) -> None:
    assert report_error(error, with_traceback=False) == 2
    assert capsys.readouterr().err == line


def test_an_internal_error_has_a_section_too(capsys) -> None:
    assert report_error(ValueError("x"), with_traceback=False) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    section = re.fullmatch(r"error: internal error: ValueError: x \(see docs/troubleshooting\.md#(.+)\)", last)
    assert section is not None
    assert section[1] in _anchors()
