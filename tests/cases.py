"""Tables of cases as one test: it tries every case, and its failure names each one that failed."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest


def for_each(
    names: str | Sequence[str], values: Iterable[Any], *, ids: Iterable[str] | Callable[[Any], Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for each case, like ``pytest.mark.parametrize``, but as a single test.

    Thousands of tests that take a millisecond each would take several more to be set up and reported. Several tables on
    one function are combined. Each case has its own ``tmp_path``, ``monkeypatch`` and ``capsys``; other fixtures are
    shared by all cases, so that a test that changes them needs ``parametrize``. A case may skip: the test is skipped if
    all of them do, and the summary names the skipped ones if some do.
    """
    columns = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
    is_single = isinstance(names, str) and len(columns) == 1
    rows = [_row(value, is_single) for value in values]
    for row, _ in rows:
        assert len(row) == len(columns), f"a case has {len(row)} values for {columns}: {row!r}"
    assert rows, "no cases"
    if ids is not None and not callable(ids):
        ids = list(ids)
        assert len(ids) == len(rows), f"{len(ids)} ids for {len(rows)} cases"

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function)
        unknown = set(columns) - set(signature.parameters)
        assert not unknown, f"{function.__name__} has no parameters {sorted(unknown)}"

        @functools.wraps(function)
        def run(**fixtures: Any) -> None:
            failures: list[Exception] = []
            failed: list[str] = []
            skipped: dict[str, str] = {}
            for number, (row, name) in enumerate(rows):
                try:
                    with _own(fixtures, number) as own:
                        function(**own, **dict(zip(columns, row, strict=True)))
                except pytest.skip.Exception as error:
                    skipped[name or _label(number, row, ids)] = str(error)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below
                    failed.append(name or _label(number, row, ids))
                    failures.append(error if isinstance(error, Exception) else AssertionError(str(error)))
                    failures[-1].add_note(f"case {failed[-1]}")
            if failures:
                message = f"{len(failures)} of {len(rows)} cases failed: {', '.join(failed)}"
                raise ExceptionGroup(message, failures)
            _report_skipped(function, skipped, len(rows))

        rest = [parameter for name, parameter in signature.parameters.items() if name not in columns]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorate


def _row(value: Any, is_single: bool) -> tuple[tuple[Any, ...], str | None]:
    """The values of a case and its name, if ``pytest.param`` gives one."""
    if hasattr(value, "marks") and hasattr(value, "id"):
        assert not value.marks, "a case has no marks of its own: use parametrize"
        return tuple(value.values), value.id
    return ((value,) if is_single else tuple(value)), None


def _label(number: int, row: tuple[Any, ...], ids: Any) -> str:
    if callable(ids):
        name = "-".join(str(part) for value in row if (part := ids(value)) is not None)
    else:
        name = "" if ids is None else str(ids[number])
    return name or f"{number}: {', '.join(map(_short, row))}"


def _report_skipped(function: Callable[..., None], skipped: dict[str, str], count: int) -> None:
    """Skip the test if all of its cases did; if some did, name them in a warning, whatever the filters of warnings."""
    if len(skipped) == count:
        pytest.skip("; ".join(dict.fromkeys(skipped.values())))
    if skipped:
        reasons: dict[str, list[str]] = {}
        for case, reason in skipped.items():
            reasons.setdefault(reason, []).append(case)
        cases = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
        code = function.__code__
        message = f"{len(skipped)} of {count} cases skipped: {cases}"
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn_explicit(message, UserWarning, code.co_filename, code.co_firstlineno)


def _short(value: Any) -> str:
    text = repr(value[:1000] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextmanager
def _own(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The fixtures of a case: those that a test may change begin anew."""
    own = dict(fixtures)
    if "tmp_path" in own:
        own["tmp_path"] /= str(number)
        own["tmp_path"].mkdir()
    if "capsys" in own:
        own["capsys"].readouterr()
    if "monkeypatch" not in own:
        yield own
        return
    with pytest.MonkeyPatch.context() as patch:
        own["monkeypatch"] = patch
        yield own
