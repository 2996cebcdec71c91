"""The judge of the vectors of popular benchmarks: recorded replies, in the order in which the reference asks."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.api.judging import Verdict as Reply
from lmms_eval.api.messages import ChatTextContent
from lmms_eval.tasks.mmbench.letters import find_letter, options_of
from tests.parity.vectors import Verdict, failed

ATTEMPTS = 3
"""At a question to the judge, as ``--judge_retries`` is by default."""
JUDGE_NAMES = {"llava_in_the_wild": "gpt-4o-2024-11-20"}
"""What records name the judge, where it is not ``judge-model``."""


@dataclass(slots=True)
class Judge:
    """A judge that gives the recorded replies in order, and then is out of reach; it notes what it is asked."""

    record: Mapping[str, Any]
    given: Iterator[str] = field(init=False)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.given = iter(self.record.get("judge_replies") or ())

    def verdicts(self, questions: Sequence[JudgeQuestion]) -> list[Reply]:
        """Verdicts about a document, asked again after a reply that cannot be read, as often as a run does."""
        return [self._verdict(question) for question in questions]

    def _verdict(self, question: JudgeQuestion) -> Reply:
        (turn,) = question.build_messages().messages
        (part,) = turn.content
        assert isinstance(part, ChatTextContent)
        sampling = {"max_tokens": question.generation["max_new_tokens"]}
        self.asked.append({"sha256": hashlib.sha256(part.text.encode()).hexdigest(), **sampling})
        said: list[str] = []
        for reply in itertools.islice(self.given, ATTEMPTS):
            said.append(reply)
            if question.accepts(reply):
                break
        text, error = (said[-1], None) if said else (None, "judge out of reach")
        is_read = text is not None and question.accepts(text)
        model = JUDGE_NAMES.get(self.record["task"], "judge-model")
        return Reply(question.name, text, is_read, model, "", tuple(said), None, error, question.details)

    def fault(self) -> Verdict | None:
        """A verdict where other questions were asked than recorded; a record may hold the first of its calls alone."""
        if "judge_calls" not in self.record:
            return None
        keys = ("sha256", "max_tokens")
        wanted = [{key: call[key] for key in keys if key in call} for call in self.record["judge_calls"]]
        wanted = [call for place, call in enumerate(wanted) if call not in wanted[:place]]
        found = self.asked[: len(wanted)] if wanted else self.asked
        return None if found == wanted else failed(f"the judge is asked {found} instead of {wanted}")

    @property
    def was_lost(self) -> bool:
        """The reference's judge was out of reach at one of its calls."""
        calls = self.record.get("judge_calls") or ()
        return max(len(calls), self.record.get("judge_calls_total") or 0) > len(self.record.get("judge_replies") or ())


def asked_in_turn(task: str, rows: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Places of the rows in the order in which the reference asks about them; a list ends at its first wrong answer."""
    places = list(range(len(rows)))
    if task.startswith("hallusion_bench"):
        return [sorted(places, key=lambda place: rows[place]["category"] != "VD")]
    if not task.startswith("mmbench"):
        return [places]
    items: dict[int, list[int]] = {}
    for place in sorted(places, key=lambda place: rows[place]["index"]):
        items.setdefault(rows[place]["index"] % 1_000_000, []).append(place)
    letters = [find_letter(row["prediction"], options_of(row)) for row in rows]
    return [
        item for _, item in sorted(items.items())
        if all(letters[place] in (None, rows[place]["answer"]) for place in item)
    ]  # fmt: skip


def unjudged(value: Any) -> Any:
    """A value without what the judge decides."""
    if not isinstance(value, Mapping):
        return value
    return {key: unjudged(item) for key, item in value.items() if key not in ("score", "eval_model", "true_false")}
