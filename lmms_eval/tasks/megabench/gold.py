"""A reply that deserves full marks, from the reference answer: for checks of the scoring, not part of the benchmark."""

from __future__ import annotations

import json

from lmms_eval.tasks.megabench.conversions.containers import str_to_list
from lmms_eval.tasks.megabench.data import Row
from lmms_eval.tasks.megabench.scoring.task_spec import TaskSpec


def right_reply(row: Row, spec: TaskSpec) -> str:
    """The answer in the form that the task's parser reads: a JSON object, or a line ``Answer: ...``.

    Of several accepted phrases the first one is given. Free-form fields (``##...``) have no reference answer, so their
    reply is not right.
    """
    values = dict(row.answer)
    for field, truth in row.answer.items():
        metric = spec.metrics.get(field)
        if metric is not None and metric.name == "multi_ref_phrase" and isinstance(truth, str):
            references = str_to_list(truth.replace("，", ","))
            values[field] = references[0] if references else truth
    if spec.parser == "json":
        return json.dumps(values, ensure_ascii=False)
    return f"Answer: {values.get(spec.answer_field or '', '')}"
