"""``EvaluationTracker`` of the family: writes the results and samples of ``simple_evaluate`` to files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval.compat.task_files import GeneralConfigTracker as GeneralConfigTracker
from lmms_eval.errors import UsageError
from lmms_eval.results.files import ResultFiles
from lmms_eval.results.samples_file import json_text
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.utils.names import sanitize_long_string, sanitize_task_name
from lmms_eval.utils.redaction import mask_known


@dataclass
class EvaluationTracker:
    """Writes what ``simple_evaluate`` returned to the same files as the command line.

    The arguments are the family's. Those for the hub have no effect; ``push_results_to_hub`` and
    ``push_samples_to_hub`` are refused.

    Raises:
        UsageError: results or samples are to be pushed.
    """

    output_path: str | None = None
    hub_results_org: str = ""
    hub_repo_name: str = ""
    details_repo_name: str = ""
    results_repo_name: str = ""
    push_results_to_hub: bool = False
    push_samples_to_hub: bool = False
    public_repo: bool = False
    token: str = field(default="", repr=False)
    leaderboard_url: str = ""
    point_of_contact: str = ""
    gated: bool = False
    general_config_tracker: GeneralConfigTracker = field(default_factory=GeneralConfigTracker, init=False)
    """Settings of the evaluation, which ``simple_evaluate(evaluation_tracker=...)`` records."""

    def __post_init__(self) -> None:
        if self.push_results_to_hub or self.push_samples_to_hub:
            raise UsageError(
                "EvaluationTracker: runs push to the hub themselves: give hf_hub_log_args to simple_evaluate "
                "(docs/trackers.md)"
            )
        self._stamp = ""

    def save_results_aggregated(
        self,
        results: Mapping[str, Any],
        samples: Mapping[str, Sequence[Mapping[str, Any]]] | None,  # noqa: ARG002 - the family's argument
        datetime_str: str,
    ) -> None:
        """Write ``OUTPUT/MODEL/STAMP_results.json``. Without ``output_path``, nothing is written.

        Args:
            results: the results document.
            samples: rows by task, which ``save_results_samples`` writes.
            datetime_str: the date stamp of this file and of the samples files.

        Raises:
            OSError: the file cannot be written.
        """
        self._stamp = datetime_str.replace(":", "-")
        if self.output_path is None:
            return
        document = {key: value for key, value in results.items() if key != "samples"}
        text = mask_known(json_text(document, indent=2))
        self._write(self._files().results, text)

    def save_results_samples(self, task_name: str, samples: Sequence[Mapping[str, Any]]) -> None:
        """Write ``OUTPUT/MODEL/STAMP_samples_TASK.jsonl``. Without ``output_path``, nothing is written.

        Raises:
            UsageError: ``save_results_aggregated`` was not called before.
            OSError: the file cannot be written.
        """
        if self.output_path is None:
            return
        if not self._stamp:
            raise UsageError(
                "save_results_samples: call save_results_aggregated first, which has the stamp of the files"
            )
        lines = "".join(f"{mask_known(json_text(row))}\n" for row in samples)
        self._write(self._files().samples(sanitize_long_string(sanitize_task_name(task_name))), lines)

    def _files(self) -> ResultFiles:
        model = self.general_config_tracker.model_name_sanitized
        folder = Path(str(self.output_path))
        return ResultFiles(folder / model if model else folder, self._stamp)

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode("utf-8", "replace"))
