"""Reasoning tags: separation of thoughts from the answer.

``split_thoughts`` splits off the thoughts at the start of a response (engine rules §16). ``strip_reasoning_tags`` is
the family's filter, which removes tagged text anywhere in a response (harness specification §12.3).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from lmms_eval.api.response import Response, Thoughts
from lmms_eval.errors import UsageError

DEFAULT_TAGS: tuple[tuple[str, str], ...] = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
TagPairs = Sequence[Sequence[str]]
ANSWER_MARKS = ("<answer>", "</answer>")
"""Marks around an answer that some models write unasked, and some tasks ask for."""
BOX_MARKS = ("<|begin_of_box|>", "<|end_of_box|>")
"""Marks of GLM's models around their final answer."""

THOUGHT_TAGS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<analysis>", "</analysis>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
)
"""Tags around models' thoughts. The last pair marks the channels of gpt-oss, special tokens included."""
_DECODED_CHANNELS = ("analysis", "assistantfinal")
"""The channels of gpt-oss if the decoder left out special tokens. As they are plain words, only both together count."""


def split_thoughts(
    text: str, pairs: Sequence[tuple[str, str]] = THOUGHT_TAGS, is_opened: bool = False
) -> tuple[Thoughts | None, str]:
    """Split a response into the thoughts at its start (``None`` without any) and the answer after them.

    Several thoughts in a row count as one. A closing tag without an opening tag ends a thought that the chat template
    opened. An opening tag without a closing tag begins an unfinished thought, and the answer is empty. If the prompt
    ends with an opening tag (``is_opened``), a text without any tag is an unfinished thought too.
    ``thoughts.before(answer)`` restores ``text``.
    """
    if not pairs or not (is_opened or any(map(text.__contains__, _marks(tuple(pairs))))):
        return None, text  # as for most texts: it lacks the characters that tags begin with
    start, end, opening, closing = 0, 0, "", ""
    while True:
        found = _thought_at(text, end, pairs, is_opened and end == 0)
        if found is None:
            break
        first, length, last = found  # start and end of the thought, and start of the text after its closing tag
        if end == 0:
            opening, start = text[:first], first
        if length < 0:
            return Thoughts(text[start:], opening, "", False), ""
        closing, stop, end = text[length:last], length, last
    if end == 0:
        return None, text
    return Thoughts(text[start:stop], opening, closing), text[end:]


@functools.lru_cache(maxsize=64)
def _marks(pairs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return (*{tag[0] for pair in pairs for tag in pair}, _DECODED_CHANNELS[1])


def thoughts_apart(response: Response, pairs: Sequence[tuple[str, str]] | None = None) -> Response:
    """Return the response with the thoughts at its start separated from its text.

    Thoughts that the back end returned separately stay as they are. Thoughts that were in the text are searched for
    again, so that a recorded response is read with the current tags. ``pairs`` are opening and closing tags, by default
    the known ones. If they are empty, tagged thoughts stay in the text.
    """
    text, known = response.text, response.thoughts
    if text is None or response.error is not None:
        return response
    pairs = THOUGHT_TAGS if pairs is None else pairs
    if known is not None:
        if not known.opening and (not known.closing or known.closing in {closing for _, closing in pairs}):
            return response  # the back end knew from the prompt that the thought was opened
        text = known.before(text)
    if response.parts:
        return response if known is not None else _without_leading_thoughts(response, pairs)
    thoughts, answer = split_thoughts(text, pairs)
    if thoughts == known:
        return response
    return replace(response, text=answer, thoughts=thoughts)


def _without_leading_thoughts(response: Response, pairs: Sequence[tuple[str, str]]) -> Response:
    """Remove a finished thought from the text parts before the first picture.

    A thought that is not finished there stays, as the picture after it is an answer.
    """
    leading = tuple(takewhile(lambda part: isinstance(part, str), response.parts))
    lead = "".join(part for part in leading if isinstance(part, str))
    thoughts, answer = split_thoughts(lead, pairs)
    if thoughts is None or not thoughts.is_finished:
        return response
    parts = (*((answer,) if answer else ()), *response.parts[len(leading) :])
    text = (response.text or "")[len(lead) - len(answer) :]
    return replace(response, text=text, parts=parts, thoughts=thoughts)


def _thought_at(text: str, at: int, pairs: Sequence[tuple[str, str]], is_opened: bool) -> tuple[int, int, int] | None:
    """Find the thought at a position. Returns its start, its end (-1: unfinished) and the start of the rest."""
    place = at + len(text[at:]) - len(text[at:].lstrip())
    for opening, closing in pairs:
        if text.startswith(opening, place):
            begin = place + len(opening)
            stop = text.find(closing, begin)
            return begin, stop, stop + len(closing)
    word, end = _DECODED_CHANNELS
    if at == 0 and text.startswith(word, place) and (stop := text.find(end, place)) >= 0:
        return place + len(word), stop, stop + len(end)
    last = max(((text.rfind(closing, at), closing) for _, closing in pairs), key=lambda each: each[0])
    if last[0] >= 0 and (is_opened or not any(0 <= text.find(opening, at) < last[0] for opening, _ in pairs)):
        return at, last[0], last[0] + len(last[1])
    return (at, -1, -1) if is_opened else None


def without_box_marks(text: str) -> str:
    """Return the text without the marks around its final answer (``BOX_MARKS``); what they enclose stays."""
    opening, closing = BOX_MARKS
    return text.replace(opening, "").replace(closing, "") if opening in text else text


def between(text: str, marks: tuple[str, str]) -> str:
    """Return what the first pair of marks encloses, stripped; the text itself without both marks."""
    _, is_open, rest = text.partition(marks[0])
    inside, is_closed, _ = rest.partition(marks[1])
    return inside.strip() if is_open and is_closed else text


def _strip_pair(text: str, opening: str, closing: str) -> str:
    kept: list[str] = []  # single characters, so that a tag that results from a removal can be removed too
    at, reach = 0, len(opening) - 1
    while True:
        tail = "".join(kept[-reach:]) if reach else ""
        joined = (tail + text[at : at + reach]).find(opening)
        known = len(tail) - joined if joined >= 0 else 0
        start = at if known else text.find(opening, at)
        end = text.find(closing, start + len(opening) - known) if start >= 0 else -1
        if end < 0:
            break
        kept.extend(text[at:start])
        del kept[len(kept) - known :]
        at = end + len(closing)
    rest = "".join(kept) + text[at:]
    return rest.rpartition(closing)[2] if start < 0 else rest


def strip_reasoning_tags(text: str, tag_pairs: TagPairs = DEFAULT_TAGS) -> str:
    """Remove tagged text, pair by pair, then trim white space.

    For each pair, the text from the first opening tag to the first closing tag after it is removed, as long as both
    exist. If only closing tags are left then, only the text after the last one stays. An opening tag that is never
    closed stays. Tags are case-sensitive. Raises ``UsageError`` if a tag is empty or a pair does not have two tags.
    """
    return strip_pairs(text, _checked(tag_pairs))


def strip_pairs(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Do the same as ``strip_reasoning_tags``, with pairs that have been checked."""
    for opening, closing in pairs:
        if closing in text:
            text = _strip_pair(text, opening, closing)
    return text.strip()


def _checked(value: Any) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise UsageError(f"reasoning tags: {value!r}; give a list of [open, close] pairs, or none")
    for pair in value:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise UsageError(f"reasoning tags: {pair!r} is not an [open, close] pair")
        opening, closing = pair
        if not (isinstance(opening, str) and opening and isinstance(closing, str) and closing):
            raise UsageError(f"reasoning tags: {pair!r}: both tags must be texts that are not empty")
        pairs.append((opening, closing))
    return pairs


def parse_reasoning_tags_config(
    cli_value: str | None = None, task_value: str | bool | TagPairs | None = None
) -> list[tuple[str, str]] | None:
    """Return the tag pairs that apply to a task; ``None`` if nothing is to be stripped.

    The task's value takes precedence. Each value is a list of pairs, the JSON text of one, or ``none`` (``False``).
    Raises ``UsageError`` if the text is neither JSON nor a list of pairs.
    """
    value: Any = cli_value if task_value is None else task_value
    if isinstance(value, str):
        if value.strip().lower() in {"", "none", "null", "false"}:
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"reasoning tags: {value[:200]!r} is neither 'none' nor JSON: {error}") from error
    if value is None or value is False:
        return None
    return _checked(value) or None
