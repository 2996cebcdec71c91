"""Calls that a type checker accepts or refuses. mypy reads them (``make lint``): an unused ignore is an error."""

from typing import Unpack

from lmms_eval.config.keywords import EvaluateArguments


def evaluate(**arguments: Unpack[EvaluateArguments]) -> None: ...


evaluate(tasks=["a", "b"], limit=3, model_args={"x": 1}, random_seed=5, log_samples=True, seed=[0, None, 1, 2])
evaluate(limt=3)  # type: ignore[call-arg]
evaluate(limit="three")  # type: ignore[arg-type]
