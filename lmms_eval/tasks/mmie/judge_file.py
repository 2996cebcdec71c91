"""Judging a file of MMIE answers: every reply is journaled before it counts, and is never asked for again.

The journal stands beside the benchmark's own temporary file. A reply is found again by id, judge and rendered prompt
(pictures by content); what the temporary file holds beyond that, of the benchmark's own script, is taken over.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.engine.fingerprints import content_fingerprint
from lmms_eval.errors import DataError, JournalError, MediaError
from lmms_eval.judges import ask
from lmms_eval.judges.providers import Judge
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.storage.journal import JournalWriter, read_journal
from lmms_eval.storage.json_files import read_json
from lmms_eval.storage.latest_file import LatestFile
from lmms_eval.storage.run_folder import RunFolder
from lmms_eval.tasks.mmie.judge_prompts import JudgePrompts
from lmms_eval.tasks.mmie.resume import feedback_from_temporary
from lmms_eval.tasks.mmie.scores_file import write_scores
from lmms_eval.tasks.mmie.standalone import Input, Judgements, OutputText, sample_rows, summary

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Places:
    """The files of one output."""

    output: Path
    temporary: Path
    record: Path
    """Folder of the journal."""
    summary: Path
    scores: Path
    """A row for each sample."""

    @classmethod
    def of(cls, folder: Path, name: str) -> Places:
        output = folder / name
        return cls(
            output,
            folder / "temp" / name,
            folder / "temp" / f"{name}.journal",
            output.with_name(f"{output.stem}.summary.json"),
            output.with_name(f"{output.stem}.scores.csv"),
        )

    @property
    def journal(self) -> Path:
        return self.record / "replies.jsonl"

    def forget(self) -> None:
        """Remove what would be gone on from. Raises ``DataError``."""
        for path in (self.temporary, self.journal):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(f"{path} cannot be removed: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class Finished:
    """What came out."""

    summary: Mapping[str, Any]
    judge: str


class Judging:
    """One file on its way to its scores."""

    def __init__(self, data: Input, prompts: JudgePrompts, places: Places, save_step: int) -> None:
        self._data, self._prompts, self._places = data, prompts, places
        self._save_step = save_step
        self._judgements = Judgements()
        self._records = [sample.processed() for sample in data.samples]
        self._text = OutputText(self._records)
        self._temporary = LatestFile(places.temporary)
        self._since_saved = self._reused = 0

    def finish(self, open_judge: Callable[[], Judge], retries: int = 0, afresh: bool = False) -> Finished:
        """Ask for what is not known (``afresh``: for everything), and write output and summary.

        Raises:
            ModelError: the judge cannot be built.
            RunLockedError: another process judges into the same output.
            JournalError: a reply or a file cannot be written.
        """
        judge = open_judge() if self._data.to_judge else None
        folder = RunFolder(self._places.record)
        try:
            folder.acquire()
            if afresh:
                self._places.forget()
            if judge is not None:
                self._judge(judge, retries)
            return self._write(judge)
        finally:
            folder.release()
            if judge is not None:
                judge.close()

    def _judge(self, judge: Judge, retries: int) -> None:
        identity = _identity(judge)
        questions = {index: self._data.samples[index].question(self._prompts) for index in self._data.to_judge}
        writer = JournalWriter(self._places.journal)
        try:
            self._take_over(questions, identity)
            open_indices = [index for index in questions if index not in self._judgements.feedback]

            def keep(number: int, verdict: Verdict) -> None:
                self._keep(open_indices[number], verdict, identity, writer)

            ask(judge, [questions[index] for index in open_indices], retries, keep)
        finally:
            writer.close()
            self._temporary.close()

    def _take_over(self, questions: Mapping[int, JudgeQuestion], identity: str) -> None:
        """What earlier starts were told. The temporary file counts only for samples that the journal does not know."""
        known = self._journaled()
        self._from_temporary({index for index in questions if self._data.samples[index].key not in known})
        for index, question in questions.items():
            found = known.get(self._data.samples[index].key)
            if found is not None:
                self._reuse(index, question, found, identity)
        self._reused = len(self._judgements.feedback)

    def _journaled(self) -> dict[tuple[str, int], list[Mapping[str, Any]]]:
        known: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
        for entry in read_journal(self._places.journal):
            record = entry.record
            if isinstance(record.get("text"), str) and "id" in record:
                key = json.dumps(record["id"], sort_keys=True), int(record.get("occurrence", 0))
                known.setdefault(key, []).append(record)
        return known

    def _reuse(self, index: int, question: JudgeQuestion, known: list[Mapping[str, Any]], identity: str) -> None:
        """The last reply of this judge to this prompt; the prompt is rendered only if the judge has replied at all."""
        mine = [record for record in known if record.get("judge") == identity]
        if not mine:
            return
        try:
            prompt = content_fingerprint(question.build_messages())
        except (MediaError, OSError):  # asking says what is wrong with the picture
            return
        for record in reversed(mine):
            if record.get("prompt") == prompt:
                self._take(index, record["text"])
                return

    def _from_temporary(self, unknown: Collection[int]) -> None:
        """The benchmark's own script was here: its replies are taken over as they stand."""
        path = self._places.temporary
        try:
            taken = feedback_from_temporary(read_json(path) if path.exists() else [], self._records)
        except DataError as error:
            log.warning("not gone on from: %s", error)
            return
        own = {index: text for index, text in taken.feedback.items() if index in unknown}
        for index, text in own.items():
            self._take(index, text)
        if own:
            log.warning("%d replies are taken from %s, whoever judged", len(own), path)
        if taken.mismatches:
            log.warning("%d entries of %s fit no record at their place and are not used", taken.mismatches, path)

    def _keep(self, index: int, verdict: Verdict, identity: str, writer: JournalWriter) -> None:
        """One verdict: durable first, then counted."""
        if verdict.text is None:
            reason = verdict.error or "no reply"
            (self._judgements.unreadable if reason.startswith("media:") else self._judgements.unanswered)[index] = (
                reason
            )
            return
        sample = self._data.samples[index]
        record: dict[str, Any] = {"id": sample.id, "occurrence": sample.occurrence, "judge": identity}
        record |= {"prompt": verdict.prompt, "text": verdict.text}
        if len(verdict.replies) > 1:
            record["replies"] = list(verdict.replies)
        if verdict.usage is not None:
            record["usage"] = verdict.usage.to_dict()
        writer.append(record)
        self._take(index, verdict.text)
        self._since_saved += 1
        if self._since_saved >= self._save_step:
            self._since_saved = 0
            self._temporary.put(self._text.snapshot())

    def _take(self, index: int, text: str) -> None:
        self._judgements.feedback[index] = text
        self._text.judged(index, text)

    def _write(self, judge: Judge | None) -> Finished:
        write_atomically(self._places.output, self._text.snapshot()())
        rows = sample_rows(self._data, self._judgements)
        found = {
            "metric": self._prompts.metric,
            "judge": None if judge is None else judge.describe(),
            "prompts": {
                "source": self._prompts.source,
                "is_official": self._prompts.is_official,
                "sha256": self._prompts.fingerprints(),
            },
            "reused": self._reused,
            **summary(self._data, rows, self._judgements),
        }
        try:
            write_scores(rows, self._places.scores)
        except OSError as error:
            raise JournalError(f"cannot write {self._places.scores}: {error.strerror or error}") from error
        write_atomically(self._places.summary, json.dumps(found, indent=2).encode("ascii") + b"\n")
        return Finished(found, "none" if judge is None else judge.name)


def _identity(judge: Judge) -> str:
    described = json.dumps(judge.identity(), sort_keys=True, default=str)
    return hashlib.sha256(described.encode("utf-8", "surrogatepass")).hexdigest()[:16]
