"""One sample of a run: a line of a samples file, ours or the family's, as typed values."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from lmms_eval.api.outcome import Status
from lmms_eval.results.run_reader.judge_prompts import JudgePrompts
from lmms_eval.results.run_reader.messages import Conversation, conversations_of
from lmms_eval.results.run_reader.repeats import (
    Repeat,
    Tokens,
    repeats_of,
    thoughts_text,
    token_counts_of,
    without_thoughts,
)
from lmms_eval.stats import item_number

Outcome = Literal["scored", "unscored", "failed", "blank", "filtered", "truncated"]

OWN_KEYS = frozenset(
    {
        *("doc_id", "target", "resps", "filtered_resps", "raw_resps", "parts", "token_counts", "doc_hash", "doc"),
        *("input", "input_media", "sent_media", "filter", "status", "reason", "error", "judge", "drew"),
        "answer_reading",
        *("thoughts", "blank", "finish_reason", "elapsed", "attempts", "messages", "repeats", "request_id"),
        *("arguments", "metrics", "prompt_hash", "target_hash"),
    }
)
"""Keys of samples that are no metrics; those in the last line only lm-eval writes."""
_ANSWER_KEYS = frozenset({"resps", "raw_resps", "filtered_resps"})
"""A line of another harness may hold none of them: the answer is then not known."""
_STATUSES: Mapping[str, Status] = {"scored": "scored", "unscored": "unscored", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class SampleKeys:
    """Knowledge of a task by which its samples are read."""

    score_key: str = "score"
    metrics: tuple[str, ...] = ()
    """Names of the task's metrics, the one that stands first in the table first; empty: not known."""
    cluster_key: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A document of a task through one filter pipeline, with the model's answer and its scores."""

    task: str
    record: Mapping[str, Any] = field(repr=False)
    """The line as it stands in the samples file (``docs/results.md``)."""
    keys: SampleKeys = field(default=SampleKeys(), repr=False)
    prompts: JudgePrompts = field(default=JudgePrompts(None), repr=False, compare=False)

    @property
    def doc_id(self) -> str:
        return doc_text(self.record.get("doc_id"))

    @property
    def filter(self) -> str:
        """The filter pipeline; empty where the line names none."""
        return str(self.record.get("filter") or "")

    @property
    def status(self) -> Status:
        return _STATUSES.get(str(self.record.get("status", "scored")), "failed")

    @property
    def outcome(self) -> Outcome:
        """The status; of an answer that is none or cut off its kind, whether it was scored or not."""
        if self.status == "failed":
            return "failed"
        reasons = self.record.get("finish_reason")
        reasons = reasons if isinstance(reasons, list) else [reasons]
        if "content_filter" in reasons:
            return "filtered"
        if self.is_blank and not _ANSWER_KEYS.isdisjoint(self.record):
            return "blank"
        return "truncated" if "length" in reasons else self.status

    @property
    def is_blank(self) -> bool:
        """No answer says anything; thoughts are none."""
        reasons = self.record.get("blank")
        if reasons:
            return all(reasons) if isinstance(reasons, list) else True
        return "parts" not in self.record and not self.raw.strip()

    @property
    def blank(self) -> str:
        """Reason why an answer says nothing, of repeats a comma list; empty where each says something."""
        found = self.record.get("blank")
        return ",".join(str(one or "") for one in found) if isinstance(found, list) else plain_text(found)

    @property
    def metrics(self) -> dict[str, Any]:
        """Values by metric as the task gave them."""
        named = self.keys.metrics
        return {
            key: value
            for key, value in self.record.items()
            if (key in named if named else key not in OWN_KEYS and not isinstance(value, str))
        }

    def number(self, metric: str) -> float | None:
        """Return the number of a metric's value; ``None`` where it has none."""
        return finite(self.record.get(metric), self.keys.score_key) if metric not in OWN_KEYS else None

    @property
    def score(self) -> float | None:
        """Number of the task's first metric that has one."""
        for metric in self.keys.metrics or self.metrics:
            if (number := self.number(metric)) is not None:
                return number
        return None

    @property
    def prediction(self) -> str:
        """The answer after filters and reasoning tags; the raw one where there is no filtered one."""
        return plain_text(self.record.get("filtered_resps", self.record.get("raw_resps")))

    @property
    def raw(self) -> str:
        """The answer as the model gave it."""
        for key in ("resps", "raw_resps", "filtered_resps"):
            if key in self.record:
                return plain_text(self.record[key])
        return ""

    @property
    def thoughts(self) -> str:
        """Thoughts of the model before its answers; empty where nothing is known."""
        return thoughts_text(self.record.get("thoughts"))

    @property
    def answer(self) -> str:
        """The answer as the model gave it, without its thoughts."""
        return without_thoughts(self.raw, self.record.get("thoughts"))

    @property
    def target(self) -> str:
        return plain_text(self.record.get("target"))

    @property
    def prompt(self) -> str:
        """The first text of the request."""
        return plain_text(prompt_of(self.record))

    @property
    def messages(self) -> Conversation:
        """The conversation, of repeats that went otherwise that of the first."""
        return self.conversations[0]

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The conversation, or one for each of the repeats where they differ."""
        return conversations_of(self.record, self.prompt)

    @property
    def reason(self) -> str:
        """Reason for being unscored or failed; empty where it is scored."""
        return plain_text(self.record.get("error", self.record.get("reason")))

    @property
    def finish_reason(self) -> str:
        """End of generation; of repeats a comma list."""
        found = self.record.get("finish_reason")
        return ",".join(str(one) for one in found) if isinstance(found, list) else plain_text(found)

    @property
    def elapsed(self) -> float | None:
        """Seconds, of repeats their sum."""
        found = self.record.get("elapsed")
        numbers = [finite(one) for one in (found if isinstance(found, list) else [found])]
        known = [number for number in numbers if number is not None]
        return math.fsum(known) if known else None

    @property
    def tokens(self) -> Tokens:
        return Tokens.of(token_counts_of(self.record))

    @property
    def repeats(self) -> tuple[Repeat, ...]:
        """The answers, where there are several."""
        return repeats_of(self.record)

    @property
    def doc(self) -> Mapping[str, Any]:
        """The document's text fields."""
        doc = self.record.get("doc")
        return doc if isinstance(doc, Mapping) else {}

    @property
    def fields(self) -> dict[str, Any]:
        """The document's fields, and those of its metrics' values under names that are free."""
        return sample_fields(self.record, self.keys.score_key)

    @property
    def cluster(self) -> str | None:
        """The cluster by the task's ``cluster_key``; ``None`` where the sample names none."""
        key = self.keys.cluster_key
        return None if key is None else cluster_of(key, self.metrics.values(), self.doc)

    @property
    def media(self) -> tuple[str, ...]:
        """Places of the media that went to the model, else of the pictures of the document."""
        sent = [one for one in _listed(self.record.get("sent_media")) if isinstance(one, Mapping)]
        places = [str(one.get("path") or one.get("url") or one.get("name") or one.get("sha256") or "") for one in sent]
        found = places or [str(one) for one in _listed(self.record.get("input_media"))]
        return tuple(place for place in found if place)

    @property
    def judge(self) -> Any:
        """Replies of a judge to each question about it; ``None`` where none was asked."""
        return self.record.get("judge")

    @property
    def whole(self) -> dict[str, Any]:
        """The line, with the prompts of the judge (``asked``), which stand in the run's record alone."""
        return self.prompts.joined(self.record)

    @property
    def drew(self) -> bool:
        """Scoring drew at random."""
        return bool(self.record.get("drew"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def finite(value: Any, score_key: str = "score") -> float | None:
    """Return the number that a value, or its field ``score_key``, stands for; ``None`` if it is none or not finite."""
    try:
        number = item_number(value, score_key)
        return float(number) if number is not None and math.isfinite(number) else None
    except OverflowError:  # an integer beyond all floats
        return None


def label(value: Any) -> str | None:
    """Return the text of a cluster or of a value of metadata; ``None`` where there is none."""
    if value is None or isinstance(value, Mapping | list) or value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def doc_text(value: Any) -> str:
    """Return the text of a document's id: that of a whole number without decimals."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def cluster_of(key: str, values: Collection[Any], doc: Any) -> str | None:
    """Find a document's cluster in the values of its metrics, else in its own fields."""
    for value in (*values, doc):
        if isinstance(value, Mapping) and value.get(key) is not None:
            return label(value[key])
    return None


def sample_fields(sample: Mapping[str, Any], score_key: str) -> dict[str, Any]:
    """Return the fields of a document, and those of its metrics' values under names that are free."""
    doc = sample.get("doc")
    fields = dict(doc) if isinstance(doc, Mapping) else {}
    for metric, value in sample.items():
        if metric not in OWN_KEYS and isinstance(value, Mapping):
            for key, item in value.items():
                if key != score_key:
                    fields.setdefault(key, item)
    return fields


def prompt_of(sample: Mapping[str, Any]) -> Any:
    """Return the prompt: ours and lmms-eval's have ``input``; lm-eval's the arguments of each request, by name or in a
    list."""
    found = sample.get("input", sample.get("arguments"))
    for _ in range(3):
        if isinstance(found, Mapping) and found:
            found = next(iter(found.values()))
        elif isinstance(found, list) and found:
            found = found[0]
    return found


def plain_text(value: Any) -> str:
    """Return a text as it is, one in a list of its own without the list, anything else as JSON."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or isinstance(value, str):
        return value or ""
    return json_cell(value)


def json_cell(value: Any) -> str:
    """Write a value as JSON in one line, whatever it holds."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode("utf-8")
    except (TypeError, ValueError):  # an integer beyond 64 bits, half a character, nested deeply
        try:
            return json.dumps(value, default=str)
        except (RecursionError, ValueError, TypeError):
            return '"(nested too deeply)"'
