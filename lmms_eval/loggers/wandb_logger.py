"""``WandbLogger`` of the family: sends the results of ``simple_evaluate`` to Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.compat.helpers import require_package
from lmms_eval.results.samples_file import json_text
from lmms_eval.utils.redaction import mask_known

MAX_TEXT = 32_768
"""Most characters of a cell in a table of samples."""


class WandbLogger:
    """Sends results and samples as tables and artifacts.

    With ``wandb_args``, a run sends them itself. This class is for programs that have a results document already.

    Args:
        kwargs: arguments of ``wandb.init``, and ``step``, the step of the numbers.

    Raises:
        MissingOptionalDependencyError: wandb is not installed.
    """

    def __init__(self, **kwargs: Any) -> None:
        require_package("wandb", "wandb", "WandbLogger")
        import wandb

        self.wandb_args = dict(kwargs)
        self.step = self.wandb_args.pop("step", None)
        self.run = wandb.run if wandb.run is not None else wandb.init(**self.wandb_args)
        self.results: Mapping[str, Any] = {}
        self.task_names: list[str] = []
        self.task_configs: Mapping[str, Any] = {}

    def post_init(self, results: Mapping[str, Any]) -> None:
        """Set the results document that the other methods send."""
        self.results = {key: value for key, value in results.items() if key != "samples"}
        self.task_names, self.task_configs = list(results.get("results", {})), results.get("configs", {})

    def log_eval_result(self) -> None:
        """Send the numbers by ``TASK/METRIC`` and as a table, the settings, and the whole document as an artifact."""
        import wandb

        self.run.config.update(
            {"task_configs": _plain(self.task_configs), "cli_configs": _plain(self.results.get("config", {}))}
        )
        rows = [
            (task, name, value)
            for task, metrics in self.results.get("results", {}).items()
            for name, value in metrics.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        self.run.log({f"{task}/{name.replace(',none', '')}": value for task, name, value in rows}, step=self.step)
        texts = {
            f"{task}/{name}": value
            for task, metrics in self.results.get("results", {}).items()
            for name, value in metrics.items()
            if isinstance(value, str)
        }
        self.run.summary.update(texts)
        columns = ["task", "version", "n-shot", "metric", "value"]
        facts = [self.results.get("versions", {}), self.results.get("n-shot", {})]
        table = [
            [task, str(facts[0].get(task, "")), str(facts[1].get(task, "")), name, value] for task, name, value in rows
        ]
        self.run.log({"evaluation/eval_results": wandb.Table(columns=columns, data=table)}, step=self.step)
        self._log_artifact("results", "eval_results", "results.json", mask_known(json_text(self.results, indent=2)))

    def log_eval_samples(self, samples: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Send the samples of each task, as ``simple_evaluate`` returns them, as a table and an artifact."""
        import wandb

        for task, rows in samples.items():
            columns = sorted({key for row in rows for key in row}, key=lambda key: (key != "doc_id", key))
            data = [[_cell(row.get(column)) for column in columns] for row in rows]
            self.run.log({f"{task}_eval_results": wandb.Table(columns=columns, data=data)}, step=self.step)
            lines = "".join(f"{mask_known(json_text(row))}\n" for row in rows)
            self._log_artifact(f"samples_by_task_{task}", "samples_by_task", f"{task}_eval_samples.jsonl", lines)

    def _log_artifact(self, name: str, kind: str, file_name: str, text: str) -> None:
        import wandb

        artifact = wandb.Artifact(name, type=kind)
        with artifact.new_file(file_name, mode="w", encoding="utf-8") as file:
            file.write(text)
        self.run.log_artifact(artifact)


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    return mask_known(value if isinstance(value, str) else json_text(value))[:MAX_TEXT]


def _plain(value: Any) -> Any:
    import json

    return json.loads(mask_known(json_text(value)))
