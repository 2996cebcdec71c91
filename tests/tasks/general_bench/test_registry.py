"""Every row of the workbook has a measure that loads, and every line of the table a row and a measure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import structs

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.forms import FORMS, form_of
from lmms_eval.tasks.general_bench.facts import TaskFacts, find_task, metrics, sheets, tasks
from lmms_eval.tasks.general_bench.items import Form
from lmms_eval.tasks.general_bench.measures import registry
from lmms_eval.tasks.general_bench.measures.contract import Measure
from tests.cases import for_each

OTHER_FORMS = {("clip_score/render", "points"), ("e_accuracy", "notes")}
"""Measure and form of rows that are judged by a measure of another form: what is drawn of points is what is drawn of
meshes; people may judge any music."""
UNLISTED = {"geometry": {("geometry", "map")}}
"""A measure that the README offers beside the row's own."""
OWN_FORMS: tuple[tuple[str, Form], ...] = (
    ("Flood Area Segmentation", "labels"),
    ("Bottle Anomaly Detection", "text"),
    ("Bottle Anomaly Detection", "number"),
    ("Traffic Signs Detection", "instances"),
)
"""Forms that the data of a row may have beside its own (``forms.form_of_reference``)."""


def chosen() -> Iterator[tuple[TaskFacts, Form, Measure]]:
    for facts in tasks():
        form = form_of(facts)
        yield facts, form, registry.measure_for(facts, form)


@for_each("sheet", sheets())
def test_every_row_has_a_measure_of_its_metric_and_form(sheet: str) -> None:
    for facts in sheets()[sheet]:
        form = form_of(facts)
        measure = registry.measure_for(facts, form)
        assert measure.name.partition("/")[0] == facts.metric, facts.id
        assert measure.form == form or (measure.name, form) in OTHER_FORMS, facts.id
        assert measure.form in FORMS
        assert measure.checked, measure.name


def test_every_metric_is_reached() -> None:
    assert {facts.metric for facts, _, _ in chosen()} == set(metrics())
    assert len(metrics()) == 63 and len(tasks()) == 699


def test_every_line_names_a_measure_and_fits_a_row() -> None:
    used = {registry.line_for(facts, form) for facts, form, _ in chosen()}
    used |= {registry.line_for(find_task(name), form) for name, form in OWN_FORMS}
    for line in registry.lines():
        assert line.metric in metrics(), line
        assert line.sheets == "*" or line.sheets in sheets(), line
        assert line.form == "*" or line.form in FORMS, line
        assert line.load().name == line.measure
        assert line in used, f"no row is scored by {line}"


def test_every_measure_is_in_the_table() -> None:
    named = {(line.module, line.measure) for line in registry.lines()}
    for module in {line.module for line in registry.lines()}:
        assert {(module, name) for name in registry.measures_of(module)} - named == UNLISTED.get(module, set())


def test_names_are_told_apart() -> None:
    names = [name for module in {line.module for line in registry.lines()} for name in registry.measures_of(module)]
    assert len(names) == len(set(names))


def test_a_mean_with_zero_for_no_answer_is_of_a_metric_whose_least_is_zero() -> None:
    """Errors have no worst value, and similarities below 0 are worse than no answer."""
    for facts, _, measure in chosen():
        metric = metrics()[facts.metric]
        if measure.is_mean and measure.unanswered is None:
            assert metric.higher_is_better and metric.low in (0, 1), measure.name
            assert not metric.mapping or measure.name == "mos"


@for_each(("task", "form"), OWN_FORMS)
def test_forms_that_data_may_have(task: str, form: Form) -> None:
    facts = find_task(task)
    assert form != form_of(facts)
    registry.measure_for(facts, form)


def test_the_first_line_that_fits_counts() -> None:
    facts = find_task("Environment Sound Recognition")
    assert registry.line_for(facts, "text").measure == "accuracy/substring"
    assert registry.measure_for(find_task("Time Series"), "number").name == "rmse"


def test_no_line_fits() -> None:
    lines = registry.lines()
    assert any(line.metric == "miou" for line in lines)
    facts = find_task("Traffic Signs Detection")
    for line in lines:
        assert not line.fits(facts, "boxes") or line.metric == "detection_ap@50"
    with pytest.raises(DataError, match=r"Shadow Removal.*no measure of metric"):
        registry.line_for(structs.replace(find_task("Image Shadow Removal"), metric="nothing"), "image")
