"""One sample of a run: typed access to a line of a samples file, written by this project or the lmms-eval family."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
import orjson
from msgspec import Struct

from lmms_eval.api.outcome import Status
from lmms_eval.api.records import Message
from lmms_eval.engine.clusters import ClusterFinder, cluster_of, first_medium, own_cluster
from lmms_eval.errors import DataError
from lmms_eval.filters.reasoning import THOUGHT_TAGS
from lmms_eval.stats import item_number
from lmms_eval.storage.codec import is_record
from lmms_eval.storage.lines import JournalTails, RecordPlace


class Tokens(Struct, frozen=True):
    """Token counts of all requests of a sample, or of one of its answers; ``None`` if the back end reports none."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None

    @classmethod
    def of(cls, counts: Any) -> Tokens:
        """Add up ``token_counts``, ignoring values that are not counts."""
        known = [one for one in counts if isinstance(one, Mapping)] if isinstance(counts, list) else []

        def total(name: str) -> int | None:
            numbers = [one[name] for one in known if isinstance(one.get(name), int)]
            return sum(numbers) if numbers else None

        return cls(total("input_tokens"), total("output_tokens"), total("reasoning_tokens"))


class SampleRepeat(Struct, frozen=True):
    """One of several answers to a document."""

    answer: Any
    metrics: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Values of this answer alone; empty if the task scores all answers together."""
    tokens: Tokens = Tokens()
    elapsed: float | None = None
    """Seconds."""
    finish_reason: str = ""
    thoughts: Any = None
    """The model's thoughts before the answer: a text, or one for each round."""


def thoughts_text(value: Any) -> str:
    """Join a sample's thoughts, which are a text, or one text for each round or repeat."""
    if isinstance(value, list):
        return "\n\n".join(text for one in value if (text := thoughts_text(one)))
    return value if isinstance(value, str) else ""


def without_thoughts(answer: str, thoughts: Any) -> str:
    """Remove the thoughts and their closing tag from an answer, if it contains them."""
    place = answer.find(thoughts) if isinstance(thoughts, str) and thoughts.strip() else -1
    if place < 0:
        return answer
    rest = answer[place + len(thoughts) :]
    closing = next((tag for _, tag in THOUGHT_TAGS if rest.startswith(tag)), "")
    return rest.removeprefix(closing).lstrip()


def token_counts_of(record: Mapping[str, Any]) -> list[Any]:
    """List the token counts of all requests of a sample, over all repeats."""
    repeats = record.get("repeats")
    owners = [one for one in repeats if isinstance(one, Mapping)] if isinstance(repeats, list) else [record]
    counts = [owner.get("token_counts") for owner in owners]
    return [one for some in counts if isinstance(some, list) for one in some]


def repeats_of(record: Mapping[str, Any]) -> tuple[SampleRepeat, ...]:
    """Read the answers of a sample; empty if it has only one."""
    answers = record.get("raw_resps")
    if not isinstance(answers, list) or len(answers) < 2:
        return ()
    found = []
    for number, answer in enumerate(answers):
        own = _at(record.get("repeats"), number)
        own = own if isinstance(own, Mapping) else {}
        metrics, elapsed = own.get("metrics"), _at(record.get("elapsed"), number)
        found.append(
            SampleRepeat(
                answer=answer,
                metrics=metrics if isinstance(metrics, Mapping) else {},
                tokens=Tokens.of(own.get("token_counts")),
                elapsed=float(elapsed) if isinstance(elapsed, int | float) else None,
                finish_reason=str(_at(record.get("finish_reason"), number) or ""),
                thoughts=_at(record.get("thoughts"), number),
            )
        )
    return tuple(found)


def _at(values: Any, number: int) -> Any:
    """Return the entry of a list; ``None`` for anything else, which belongs to no particular answer."""
    return values[number] if isinstance(values, list) and number < len(values) else None


class JudgePrompts:
    """The judge's prompts in a run's record, by fingerprint. They are read when the first one is needed.

    A run without a record (``folder``) has no prompts.
    """

    def __init__(self, folder: Path | None) -> None:
        from lmms_eval.engine.judging import PATTERN

        self.folder = folder
        self._tails = None if folder is None else JournalTails(folder, PATTERN)
        self._places: dict[str, RecordPlace] = {}
        self._is_read = self._tails is None

    def renew(self) -> None:
        """Let the next verdict read the prompts that were added since the last one."""
        self._is_read = self._tails is None

    def joined(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a sample's line with ``asked``, and ``sent_media`` if the judge saw media, added to each verdict."""
        verdicts = record.get("judge")
        if not isinstance(verdicts, list):
            return dict(record)
        if self._tails is not None and not self._is_read:
            self._is_read = True
            with suppress(DataError):  # unreadable: its verdicts are shown without prompts
                for place, found in self._tails.news():
                    messages = found.get("messages")
                    if messages and isinstance(messages, list) and all(is_record(one, Message) for one in messages):
                        self._places.setdefault(str(found.get("prompt")), place)
        return {**record, "judge": [self._verdict(one) if isinstance(one, Mapping) else one for one in verdicts]}

    def _verdict(self, verdict: Mapping[str, Any]) -> dict[str, Any]:
        place = self._places.get(str(verdict.get("prompt")))
        if place is None or self._tails is None:
            return dict(verdict)
        try:
            found = self._tails.at(place)
        except DataError:  # the journal has changed since
            return dict(verdict)
        added = {"asked": found["messages"]}
        if "media" in found:  # messages refer to different media by number
            media = found["media"] if isinstance(found["media"], list) else []
            added["sent_media"] = [medium for number, medium in enumerate(media) if medium not in media[:number]]
        return {**verdict, **added}


class Piece(Struct, frozen=True):
    """A piece of a message: a text, a medium, or a tool call."""

    text: str = ""
    kind: str = "text"
    """``text``, ``image``, ``video``, ``audio``, or ``call``: a tool call whose text is its name and arguments."""
    medium: Mapping[str, Any] | None = None
    """The entry of ``sent_media``, or the picture that the model made; ``None`` if it is not recorded."""
    frame: int | None = None
    """Index of the video frame, if the piece is a single frame."""
    call: str = ""
    """For a tool call: its id."""


class SampleMessage(Struct, frozen=True):
    """A message of a conversation."""

    role: str
    content: tuple[Piece, ...]
    round: int = 0
    after: int | None = None
    """For a round's first message: the model received it after only this many of the conversation's first messages."""
    continues: bool = False
    """For a round's first message: the model received it after all messages of the previous round and its answer."""
    call: str = ""
    """For a tool's result: the id of the call."""

    @property
    def text(self) -> str:
        """The joined text pieces."""
        return "".join(piece.text for piece in self.content if piece.kind == "text")


Conversation = tuple[SampleMessage, ...]


def conversations_of(record: Mapping[str, Any], prompt: str) -> tuple[Conversation, ...]:
    """Read the conversations of a sample: one for all answers, or one for each answer if they differ.

    If a line has no valid ``messages``, the conversation is ``prompt`` as a message of the user.
    """
    found = record.get("messages")
    sent = record.get("sent_media")
    media = sent if isinstance(sent, list) else []
    several = found if isinstance(found, list) and found and isinstance(found[0], list) else [found]
    return tuple(read_messages(one, media, prompt) or _only(media, prompt) for one in several)


def read_messages(found: Any, media: Sequence[Any], prompt: str = "") -> Conversation:
    """Read a list of messages; empty if it is not one."""
    if not isinstance(found, list):
        return ()
    try:
        return tuple(
            SampleMessage(
                role=str(one["role"]),
                content=tuple(_piece(part, media, prompt) for part in one["content"]),
                round=int(one.get("round", 0)),
                after=None if one.get("after") is None else int(one["after"]),
                continues=bool(one.get("continues")),
                call=str(one.get("call", "")),
            )
            for one in found
        )
    except (TypeError, KeyError, ValueError, AttributeError):
        return ()


def _only(media: Sequence[Any], prompt: str) -> Conversation:
    shown = tuple(_medium(one) for one in media if isinstance(one, Mapping))
    return (SampleMessage("user", (*shown, Piece(prompt)) if prompt else shown),) if shown or prompt else ()


def _piece(part: Mapping[str, Any], media: Sequence[Any], prompt: str) -> Piece:
    if "input" in part:
        begin, end = part["input"]
        return Piece(prompt[begin:end])
    if "media" in part:
        number = part["media"]
        medium = media[number] if isinstance(number, int) and 0 <= number < len(media) else None
        return _medium(medium if isinstance(medium, Mapping) else {}, part.get("frame"))
    if "call" in part:
        call = part["call"]
        return Piece(f"{call['name']} {call['arguments']}", "call", call=str(call.get("id") or ""))
    return Piece(str(part["text"])) if "text" in part else _medium(part)


def _medium(medium: Mapping[str, Any], frame: int | None = None) -> Piece:
    is_recorded = len(medium) > 1 or "path" in medium
    return Piece(kind=str(medium.get("type", "image")), medium=medium if is_recorded else None, frame=frame)


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
"""Keys of samples that are not metrics. Only lm-eval writes those in the last line."""
_ANSWER_KEYS = frozenset({"resps", "raw_resps", "filtered_resps"})
"""A line of another harness may lack all of them; its answer is then unknown."""
_STATUSES: Mapping[str, Status] = {"scored": "scored", "unscored": "unscored", "failed": "failed"}


class SampleKeys(Struct, frozen=True):
    """Keys needed to read the samples of a task."""

    score_key: str = "score"
    metrics: tuple[str, ...] = ()
    """Names of the task's metrics, in the order of the table; empty if they are not known."""
    cluster_key: str | None = None
    """The column or field that the task names for clusters."""
    clusters: Literal["column", "sent_media", "input_media", "none"] | None = None
    """What the results state as the cluster: that column, or the first of these media; ``None`` if they do not."""
    own_media: bool | None = None
    """Of a run without results, whether clusters are by the documents' own media, since examples precede the questions
    or a control changed them; ``None`` if that is not known."""

    @property
    def finds_clusters(self) -> bool:
        """Whether clusters are to be found in the samples, since no results state them yet (``SampleClusters``)."""
        return self.clusters is None and self.own_media is not None

    @property
    def has_clusters(self) -> bool:
        """Whether documents share clusters, as far as it is known."""
        return self.cluster_key is not None if self.clusters is None else self.clusters != "none"


@dataclass(frozen=True, slots=True)
class Sample:
    """A document of a task through one filter pipeline, with the model's answer and its scores."""

    task: str
    record: Mapping[str, Any] = field(repr=False)
    """The line of the samples file (``docs/results.md``)."""
    keys: SampleKeys = field(default=SampleKeys(), repr=False)
    prompts: JudgePrompts = field(default=JudgePrompts(None), repr=False, compare=False)

    @property
    def doc_id(self) -> str:
        return doc_text(self.record.get("doc_id"))

    @property
    def filter(self) -> str:
        """The filter pipeline; empty if the line names no pipeline."""
        return str(self.record.get("filter") or "")

    @property
    def status(self) -> Status:
        return _STATUSES.get(str(self.record.get("status", "scored")), "failed")

    @property
    def outcome(self) -> Outcome:
        """The status, or ``filtered``, ``blank`` or ``truncated`` for such an answer, whether it was scored or not."""
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
        """Whether all answers are empty. Thoughts are not part of an answer."""
        reasons = self.record.get("blank")
        if reasons:
            return all(reasons) if isinstance(reasons, list) else True
        return "parts" not in self.record and not self.raw.strip()

    @property
    def blank(self) -> str:
        """The reason for an empty answer, as a comma-separated list for repeats; empty if no answer is."""
        found = self.record.get("blank")
        return ",".join(str(one or "") for one in found) if isinstance(found, list) else plain_text(found)

    @property
    def metrics(self) -> dict[str, Any]:
        """The values by metric, as the task returned them."""
        named = self.keys.metrics
        return {
            key: value
            for key, value in self.record.items()
            if (key in named if named else key not in OWN_KEYS and not isinstance(value, str))
        }

    def number(self, metric: str) -> float | None:
        """Return the number of a metric's value, or ``None`` if it has none."""
        return finite(self.record.get(metric), self.keys.score_key) if metric not in OWN_KEYS else None

    @property
    def score(self) -> float | None:
        """The first number among the task's metrics."""
        for metric in self.keys.metrics or self.metrics:
            if (number := self.number(metric)) is not None:
                return number
        return None

    @property
    def prediction(self) -> str:
        """The filtered answer, without reasoning tags; the raw answer if the line has no filtered one."""
        return plain_text(self.record.get("filtered_resps", self.record.get("raw_resps")))

    @property
    def raw(self) -> str:
        """The raw answer of the model."""
        for key in ("resps", "raw_resps", "filtered_resps"):
            if key in self.record:
                return plain_text(self.record[key])
        return ""

    @property
    def thoughts(self) -> str:
        """The model's thoughts before its answers; empty if they are not known."""
        return thoughts_text(self.record.get("thoughts"))

    @property
    def answer(self) -> str:
        """The raw answer without the model's thoughts."""
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
        """The conversation of the first answer."""
        return self.conversations[0]

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The conversation, or one for each repeat if they differ."""
        return conversations_of(self.record, self.prompt)

    @property
    def reason(self) -> str:
        """The reason for an unscored or failed sample; empty if it is scored."""
        return plain_text(self.record.get("error", self.record.get("reason")))

    @property
    def finish_reason(self) -> str:
        """The reason why generation ended, as a comma-separated list for repeats."""
        found = self.record.get("finish_reason")
        return ",".join(str(one) for one in found) if isinstance(found, list) else plain_text(found)

    @property
    def elapsed(self) -> float | None:
        """Seconds, summed over repeats."""
        found = self.record.get("elapsed")
        numbers = [finite(one) for one in (found if isinstance(found, list) else [found])]
        known = [number for number in numbers if number is not None]
        return math.fsum(known) if known else None

    @property
    def tokens(self) -> Tokens:
        return Tokens.of(token_counts_of(self.record))

    @property
    def repeats(self) -> tuple[SampleRepeat, ...]:
        """The answers, if the sample has several."""
        return repeats_of(self.record)

    @property
    def doc(self) -> Mapping[str, Any]:
        """The document's text fields."""
        doc = self.record.get("doc")
        return doc if isinstance(doc, Mapping) else {}

    @property
    def fields(self) -> dict[str, Any]:
        """The document's fields, and the fields of its metrics' values if their names are free."""
        return sample_fields(self.record, self.keys.score_key)

    @property
    def cluster(self) -> str | None:
        """The cluster by the task's ``cluster_key`` or first medium; ``None`` if the sample has no cluster."""
        return cluster_in(self.record, self.keys)

    @property
    def media(self) -> tuple[str, ...]:
        """Paths or addresses of the media sent to the model, else of the document's pictures.

        Paths of files that the run keeps (``media/...``) are relative to the samples file.
        """
        sent = [one for one in _listed(self.record.get("sent_media")) if isinstance(one, Mapping)]
        places = [str(place) for one in sent for place in places_of(one)]
        found = places or [str(one) for one in _listed(self.record.get("input_media"))]
        return tuple(place for place in found if place)

    @property
    def judge(self) -> Any:
        """The judge's replies to each question about the sample; ``None`` if no judge was asked."""
        return self.record.get("judge")

    @property
    def whole(self) -> dict[str, Any]:
        """The line with the judge's prompts (``asked``), which only the run's record has."""
        return self.prompts.joined(self.record)

    @property
    def drew(self) -> bool:
        """Whether scoring drew a choice at random."""
        return bool(self.record.get("drew"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def finite(value: Any, score_key: str = "score") -> float | None:
    """Return the number of a value or of its field ``score_key``; ``None`` if it is not a finite number."""
    try:
        number = item_number(value, score_key)
        return float(number) if number is not None and math.isfinite(number) else None
    except OverflowError:  # an integer beyond all floats
        return None


def places_of(medium: Mapping[str, Any]) -> list[Any]:
    """Return the files that a run keeps of a medium, else its path, address, name or digest; empty without any."""
    if isinstance(stored := medium.get("stored"), list) and stored:
        return stored
    found = medium.get("path") or medium.get("url") or medium.get("name") or medium.get("sha256")
    return [found] if found else []


def doc_text(value: Any) -> str:
    """Return the text of a document's id; whole numbers have no decimals."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def cluster_in(record: Mapping[str, Any], keys: SampleKeys) -> str | None:
    """Find the cluster of a sample's line, whatever the names of its metrics; ``None`` without clusters."""
    if not keys.has_clusters:
        return None
    if keys.clusters == "sent_media" or keys.clusters == "input_media":
        found = first_medium(record.get(keys.clusters))
    else:
        found = cluster_of(keys.cluster_key or "", _cluster_values(record))
    return own_cluster(doc_text(record.get("doc_id"))) if found is None and keys.clusters is not None else found


def _cluster_values(record: Mapping[str, Any]) -> list[Any]:
    """Return what may hold the cluster of a sample's line: the values of its metrics, and its document."""
    return [*(value for name, value in record.items() if name not in OWN_KEYS), record.get("doc")]


class SampleClusters:
    """The clusters of a task's samples, line by line: those that results state, or found as results would state them.

    Rows are numbers that the caller gives to documents.
    """

    def __init__(self, keys: SampleKeys) -> None:
        self._keys = keys
        self._finder = ClusterFinder(keys.cluster_key, bool(keys.own_media)) if keys.finds_clusters else None
        self._names: dict[int, str] = {}

    def add(self, row: int, record: Mapping[str, Any]) -> None:
        """Add a line of a scored document."""
        if self._finder is not None:
            values = _cluster_values(record)
            self._finder.note(row, values, record.get("sent_media"), record.get("input_media"))
        elif (name := cluster_in(record, self._keys)) is not None:
            self._names.setdefault(row, name)

    def forget(self, row: int) -> None:
        """Forget a document, before it is added again."""
        self._names.pop(row, None)
        if self._finder is not None:
            self._finder.forget(row)

    def of(self, rows: Sequence[int]) -> Sequence[str | None] | None:
        """Return the cluster of each of these rows; ``None`` if documents are independent, as far as it is known."""
        if self._finder is not None:
            return self._finder.clusters().of(rows)
        return [self._names.get(row) for row in rows] if self._keys.has_clusters else None


def sample_fields(sample: Mapping[str, Any], score_key: str) -> dict[str, Any]:
    """Return a document's fields, and the fields of its metrics' values if their names are free."""
    doc = sample.get("doc")
    fields = dict(doc) if isinstance(doc, Mapping) else {}
    for metric, value in sample.items():
        if metric not in OWN_KEYS and isinstance(value, Mapping):
            for key, item in value.items():
                if key != score_key:
                    fields.setdefault(key, item)
    return fields


def prompt_of(sample: Mapping[str, Any]) -> Any:
    """Return the prompt: ``input``, or the first of lm-eval's ``arguments``, which are a list or mapping by request."""
    found = sample.get("input", sample.get("arguments"))
    for _ in range(3):
        if isinstance(found, Mapping) and found:
            found = next(iter(found.values()))
        elif isinstance(found, list) and found:
            found = found[0]
    return found


def plain_text(value: Any) -> str:
    """Return a text unchanged, a text in a list of length one without the list, and anything else as JSON."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or isinstance(value, str):
        return value or ""
    return json_cell(value)


def json_cell(value: Any) -> str:
    """Format any value as one line of JSON."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode("utf-8")
    except (TypeError, ValueError):  # an integer beyond 64 bits, a lone surrogate, deep nesting
        try:
            return json.dumps(value, default=str)
        except (RecursionError, ValueError, TypeError):
            return '"(nested too deeply)"'
