"""Judging of a file of MMIE answers. Every reply is journaled before it counts, and is never requested again.

The journal (``engine/judgements.py``) is next to the benchmark's own temporary file. A reply is found by id, judge and
rendered prompt (pictures by content). Further replies in the temporary file, written by the benchmark's own script, are
reused.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmms_eval.api.judging import Verdict
from lmms_eval.engine.judging import JudgementStore, request_id
from lmms_eval.engine.response_cache import CacheKeys
from lmms_eval.errors import DataError
from lmms_eval.judges import ask
from lmms_eval.judges.providers import Judge
from lmms_eval.storage.atomic import LatestFile, read_json, write_atomically
from lmms_eval.storage.run_folder import RunFolder
from lmms_eval.tasks.mmie.judge_prompts import JudgeTexts
from lmms_eval.tasks.mmie.scores_file import scores_csv
from lmms_eval.tasks.mmie.scoring import QUESTION
from lmms_eval.tasks.mmie.standalone import Input, ViewedRecord, sample_rows, summary
from lmms_eval.tasks.mmie.submission import OutputText, feedback_from_temporary

log = logging.getLogger(__name__)


class FileJudging:
    """The judging of one file, whose output is ``output``.

    ``summary`` is a file of its own, and ``scores`` one with a row for each sample.
    """

    def __init__(self, data: Input, prompts: JudgeTexts, output: Path, save_step: int) -> None:
        self._data, self._prompts, self.output, self._save_step = data, prompts, output, save_step
        self.summary = output.with_name(f"{output.stem}.summary.json")
        self.scores = output.with_name(f"{output.stem}.scores.csv")
        self.temporary = output.parent / "temp" / output.name
        self._record = self.temporary.with_name(f"{output.name}.journal")
        self.journal = self._record / "judgements-0.jsonl"
        self._feedback: dict[int, str] = {}
        self._failures: dict[int, str] = {}
        self._records = [sample.processed() for sample in data.samples]
        self._text = OutputText(self._records)
        self._temporary = LatestFile(self.temporary)
        self._since_saved = self._reused = 0

    def finish(
        self, open_judge: Callable[[], Judge], retries: int = 0, afresh: bool = False
    ) -> tuple[dict[str, Any], str]:
        """Ask for missing replies (with ``afresh`` for all), and write output and summary.

        Returns the summary and the judge's name.

        Raises:
            ModelError: the judge cannot be built.
            RunLockedError: another process judges into the same output.
            JournalError: a reply or a file cannot be written.
        """
        judge = open_judge() if self._data.to_judge else None
        folder = RunFolder(self._record)
        try:
            folder.acquire()
            if afresh:
                self._forget()
            if judge is not None:
                self._judge(judge, retries)
            return self._write(judge)
        finally:
            folder.release()
            if judge is not None:
                judge.close()

    def _forget(self) -> None:
        """Remove the files that judging would resume from. Raises ``DataError``."""
        for path in (self.temporary, self.journal):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(f"{path} cannot be removed: {error.strerror or error}") from error

    def _judge(self, judge: Judge, retries: int) -> None:
        journal = JudgementStore(self._record, CacheKeys(judge.identity(), reads_documents=False))
        try:
            self._take_over(journal.ids)
            indices = [index for index in self._data.to_judge if index not in self._feedback]
            places = [_place(self._data.samples[index]) for index in indices]

            def keep(number: int, verdict: Verdict) -> None:
                """Count a verdict. Its replies are already on disk."""
                if verdict.text is None:
                    self._failures[indices[number]] = verdict.error or "no reply"
                    return
                self._take(indices[number], verdict.text)
                is_known = request_id(places[number], QUESTION, len(verdict.replies) - 1) in journal.recalled
                self._reused += is_known
                self._since_saved += not is_known
                if self._since_saved >= self._save_step:
                    self._since_saved = 0
                    self._temporary.put(self._text.snapshot())

            ask(judge, [self._data.samples[index].question(self._prompts) for index in indices],
                retries, keep, journal, places)  # fmt: skip
        finally:
            journal.close()
            self._temporary.close()

    def _take_over(self, known: set[str]) -> None:
        """Reuse the replies of the benchmark's own script for samples that the journal lacks."""
        path = self.temporary
        try:
            feedback, mismatches = feedback_from_temporary(read_json(path) if path.exists() else [], self._records)
        except DataError as error:
            log.warning("not resumed from: %s", error)
            return
        unknown = [i for i in self._data.to_judge if request_id(_place(self._data.samples[i]), QUESTION) not in known]
        own = {index: feedback[index] for index in unknown if index in feedback}
        for index, text in own.items():
            self._take(index, text)
        self._reused = len(own)
        if own:
            log.warning("%d replies are taken from %s, whichever judge gave them", len(own), path)
        if mismatches:
            log.warning("%d entries of %s fit no record at their place and are not used", mismatches, path)

    def _take(self, index: int, text: str) -> None:
        self._feedback[index] = text
        self._text.judged(index, text)

    def _write(self, judge: Judge | None) -> tuple[dict[str, Any], str]:
        write_atomically(self.output, self._text.snapshot()())
        rows = sample_rows(self._data, self._feedback, self._failures)
        found = {
            "metric": self._prompts.metric,
            "judge": None if judge is None else judge.describe(),
            "prompts": {
                "source": self._prompts.source,
                "is_official": self._prompts.is_official,
                "sha256": self._prompts.fingerprints(),
            },
            "reused": self._reused,
            **summary(self._data, rows, self._failures),
        }
        write_atomically(self.scores, scores_csv(rows))
        write_atomically(self.summary, json.dumps(found, indent=2).encode("ascii") + b"\n")
        return found, "none" if judge is None else judge.name


def _place(sample: ViewedRecord) -> str:
    """Name a sample, also if several have its id."""
    name, occurrence = sample.key
    return f"{name}/{occurrence}"
