"""A reply that deserves full marks, from the reference answer: for checks of the scoring, not part of the benchmark."""

from __future__ import annotations

import json
from typing import Any

from lmms_eval.tasks.megabench.conversions.containers import str_to_list
from lmms_eval.tasks.megabench.data import Row
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec


def right_reply(row: Row, spec: TaskSpec) -> str:
    """The answer in the form that the task's parser reads: a JSON object, or a line ``Answer: ...``.

    Of several accepted phrases the first one is given. Free-form fields (``##...``) have no reference answer, so their
    reply is not right.
    """
    values = {field: _value(field, truth, spec) for field, truth in row.answer.items()}
    if spec.parser == "json":
        return json.dumps(values, ensure_ascii=False)
    return f"Answer: {values.get(spec.answer_field or '', '')}"


def _value(field: str, truth: Any, spec: TaskSpec) -> Any:
    metric = spec.metrics.get(field)
    if metric is None or metric.name != "multi_ref_phrase" or not isinstance(truth, str):
        return truth
    references = str_to_list(truth.replace("，", ","))
    return references[0] if references else truth
