"""Scores of a job as a client gets them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from lmms_eval.errors import DataError, EvaluationServerError


@dataclass(frozen=True, slots=True)
class Score:
    """One number of a task or group.

    Args:
        model: name of the folder that holds the run.
        filter: the filter pipeline, ``none`` if there is one without a name.
        value: ``None`` if the number is withheld.
        low: lower end of the 95 % interval; ``None`` for none.
        method: of the interval, or why there is none.
        n: documents.
    """

    model: str
    task: str
    metric: str
    filter: str
    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    method: str
    n: int
    higher_is_better: bool


@dataclass(frozen=True, slots=True)
class JobResults:
    """The scores of a job.

    Args:
        status: of the job. One whose scores are withheld is ``failed``, and has results all the same.
        states: by model the state of its run: ``complete``, ``stopped early`` (``--until``), ``withheld``,
            ``interrupted``.
        content: the server's whole answer: by model also ``results``, ``groups``, ``n_samples``, ``outcomes``.
    """

    job_id: str
    status: str
    states: Mapping[str, str]
    scores: tuple[Score, ...]
    content: Mapping[str, Any]

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Read the answer of ``/jobs/{job_id}/results``.

        Raises:
            EvaluationServerError: it has another form.
        """
        try:
            models = content["models"]
            found = [_score(name, row) for name, told in models.items() for row in told["scores"]]
            states = {name: str(told["state"]) for name, told in models.items()}
            return cls(content["job_id"], str(content["status"]), states, tuple(found), content)
        except (KeyError, TypeError, AttributeError) as error:
            raise EvaluationServerError(f"the scores of a job have another form than expected: {error!r}") from error

    def score(self, task: str, metric: str) -> float | None:
        """Return a value by task and metric; ``None`` if it is withheld.

        Args:
            metric: its name, or name and filter with a comma (``exact_match,none``) where a task has several filters.

        Raises:
            DataError: there is no such number, or there are several.
        """
        found = [
            one for one in self.scores if one.task == task and metric in (one.metric, f"{one.metric},{one.filter}")
        ]
        if len(found) != 1:
            known = ", ".join(sorted({f"{one.task}: {one.metric},{one.filter}" for one in self.scores}))
            raise DataError(f"job {self.job_id} has {len(found)} numbers {metric} of {task}; it has {known or 'none'}")
        return found[0].value


def _score(model: str, row: Mapping[str, Any]) -> Score:
    names = ("task", "metric", "filter", "value", "stderr", "low", "high", "method", "n")
    return Score(model, **{name: row[name] for name in names}, higher_is_better=row["higher"])
