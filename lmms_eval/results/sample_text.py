"""Samples as text for a terminal: one sample in full, or several as a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.results.facts import is_count, part_of
from lmms_eval.results.reading import noted_rule
from lmms_eval.results.sample import (
    Conversation,
    Piece,
    Sample,
    SampleRepeat,
    json_cell,
    places_of,
    read_messages,
    thoughts_text,
    without_thoughts,
)
from lmms_eval.utils.names import counted, some_of
from lmms_eval.utils.terminal import escaped, named_table


def conversation_text(messages: Conversation, media: Sequence[Any] = ()) -> str:
    """Format messages one after another. A medium is shown as ``[image 1]``, by its number in ``media`` from 1."""
    parts = []
    for message in messages:
        facts = [f"round {message.round + 1}"] if message.round else []
        if message.after is not None:
            facts.append(f"after the first {message.after} messages alone" if message.after else "sent alone")
        role = f"{message.role} {message.call}" if message.call else message.role
        text = "".join(piece.text if piece.kind == "text" else _mark(piece, media) for piece in message.content)
        parts.append(f"[{', '.join([role, *facts])}]\n{text}")
    return "\n\n".join(parts)


def is_plain(messages: Conversation) -> bool:
    """Return whether the messages are a single user text after its media, so that the prompt shows everything."""
    kinds = [piece.kind == "text" for message in messages for piece in message.content]
    return len(messages) < 2 and all(message.role == "user" for message in messages) and kinds == sorted(kinds)


def media_lines(media: Iterable[Any], is_numbered: bool = False) -> Iterator[str]:
    """Describe the media that were sent, one line each."""
    for number, one in enumerate(media, 1):
        if isinstance(one, Mapping):
            lead = f"{number}. " if is_numbered else ""
            size = f", {one['width']} x {one['height']}" if "width" in one and "height" in one else ""
            times = one.get("times")
            seconds = ", ".join(f"{time} s" for time in times) if isinstance(times, list) else ""
            frames = f", frames at {seconds}" if isinstance(times, list) else ""
            yield f"{lead}{one.get('type', 'medium')}: {_place(one)}{size}{frames}"


def _mark(piece: Piece, media: Sequence[Any]) -> str:
    if piece.kind == "call":
        return f"[{piece.text}]"
    if piece.medium is None:
        return f"[{piece.kind}]"
    number = next((number for number, one in enumerate(media, 1) if one is piece.medium), None)
    name = _place(piece.medium) if number is None else str(number)
    return f"[{piece.kind} {name}{'' if piece.frame is None else f', frame {piece.frame + 1}'}]"


def _place(medium: Mapping[str, Any]) -> Any:
    """Return where a medium is: its first kept file, with the number of the others, else its source."""
    first, *others = places_of(medium) or ["in memory"]
    reason = medium.get("not_stored")
    return f"{first}{f' and {len(others)} more' if others else ''}{f' (not stored: {reason})' if reason else ''}"


_MOST_NAMED = 4
_LONGEST_REQUEST = 400
"""Characters shown of a part."""
_DIGITS = 12
"""Digits shown of a hash."""


def asked_lines(document: Mapping[str, Any], task: str = "") -> list[str]:
    """Describe the requests of one task or all: options, prompts, media limits, statistics of the media, and clusters.

    The list is empty for results of earlier versions and of the lmms-eval family, which do not record requests.
    """
    lines, ignored = list(_requests(document, task)), document.get("ignored_gen_kwargs")
    if isinstance(ignored, list) and ignored:
        lines.append(f"asked without these options of --gen_kwargs (--allow_ignored): {', '.join(map(str, ignored))}")
    return [*lines, *_media(document, task), *_clusters(document, task), *_judge(document, task)]


def _judge(document: Mapping[str, Any], wanted: str) -> list[str]:
    """Return lines about biases of the judge."""
    found = part_of(document, "judge_bias")
    if not found:
        return []
    from lmms_eval.results.judge_bias import bias_lines

    return bias_lines(found, wanted)


def _requests(document: Mapping[str, Any], wanted: str) -> Iterator[str]:
    """Yield one block for all tasks with equal requests."""
    found: dict[str, list[str]] = {}
    requests = part_of(document, "effective_requests")
    for task in requests:
        if task == wanted or not wanted:
            found.setdefault(str(part_of(requests, task).get("sha256")), []).append(task)
    for digest, tasks in found.items():
        yield f"requests of {some_of(tasks, _MOST_NAMED)} (sha256 {digest[:_DIGITS]}):"
        for part, value in part_of(requests, tasks[0]).items():
            if part != "sha256":
                yield f"  {part}: {_shown(part, value)}"


def _media(document: Mapping[str, Any], wanted: str) -> Iterator[str]:
    """Yield one line for all tasks with equal media."""
    sent = part_of(document, "sent_media")
    found: dict[str, list[str]] = {}
    for task in sent:
        if task == wanted or not wanted:
            entry = part_of(sent, task)
            parts = []
            for name, value in entry.items():
                if isinstance(value, Mapping):
                    ends = [value.get(end) for end in ("min", "median", "max")]
                    texts = [f"{end:g}" if isinstance(end, int | float) else "?" for end in ends]
                    parts.append(f"{name} {texts[0] if len(set(texts)) == 1 else ' / '.join(texts)}")
            found.setdefault(f"{entry.get('documents')} documents, {', '.join(parts)}", []).append(task)
    for text, tasks in found.items():
        yield f"media of {some_of(tasks, _MOST_NAMED)} (min / median / max): {text}"


def _clusters(document: Mapping[str, Any], wanted: str) -> Iterator[str]:
    """Yield a line for each task whose intervals are over clusters."""
    clusters = part_of(document, "clusters")
    for task in clusters:
        entry = part_of(clusters, task)
        count, documents = entry.get("count"), entry.get("documents")
        if wanted not in ("", task) or not isinstance(count, int) or not isinstance(documents, int):
            continue
        if count < documents:
            yield f"clusters of {task}: {count:,} by {entry.get('by')} ({documents:,} documents)"


def _shown(part: str, value: Any) -> str:
    if part == "chat_template":
        return f"sha256 {str(value)[:_DIGITS]}"
    if isinstance(value, Mapping):
        text = ", ".join(f"{name}={json.dumps(item, ensure_ascii=False, default=str)}" for name, item in value.items())
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_REQUEST else f"{text[:_LONGEST_REQUEST]}…"


_LONGEST = 60
_LONGEST_LINE = 200


def sample_text(sample: Sample, located: Callable[[str], str] = str) -> str:
    """Format a sample: prompt, media, answer, reference, metrics, judge's replies, tokens.

    ``located`` returns the path of a file that the run keeps.

    The caller must escape control characters before printing (``utils.terminal.printable``).
    """
    facts = [f"{sample.task}, document {sample.doc_id}: {sample.status}"]
    facts += [f"filter {sample.filter}"] if sample.filter else []
    facts += [sample.outcome] if sample.outcome != sample.status else []
    parts = [", ".join(facts)]
    for heading, text in _texts(sample, located):
        if text:
            parts.append(f"--- {heading}\n{text}")
    return "\n\n".join(parts)


def pipelines_text(samples: Sequence[Sample]) -> str:
    """Format the answers and scores of further filter pipelines."""
    parts = []
    for sample in samples:
        facts = [sample.prediction, *(f"{name}: {_value(value)}" for name, value in sample.metrics.items())]
        parts.append(
            "\n".join([f"--- filter {sample.filter}: {sample.status}", *filter(None, [sample.reason, *facts])])
        )
    return "\n\n".join(parts)


def _texts(sample: Sample, located: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    attempts = sample.record.get("attempts")
    times = f"\nsent {attempts} times" if sample.reason and isinstance(attempts, int) else ""
    yield "reason", sample.reason + times
    yield from _asked(sample, located)
    if not sample.repeats:
        yield "thoughts", _folded(sample.thoughts)
    yield "answer", "" if sample.repeats else sample.answer
    yield "no answer", sample.blank
    yield "parsed answer", sample.prediction if sample.prediction != sample.answer else ""
    yield "target", sample.target
    scores = {name: value for name, value in sample.metrics.items() if not is_count(name, value)} or sample.metrics
    yield "metrics", "\n".join(f"{name}: {_value(value)}" for name, value in scores.items())
    for number, repeat in enumerate(sample.repeats, 1):
        yield f"repeat {number}", _repeat(repeat)
    yield from _judgements(sample.whole.get("judge"))
    tokens = {"in": sample.tokens.input, "out": sample.tokens.output, "reasoning": sample.tokens.reasoning}
    shown = {name: count for name, count in tokens.items() if count or (count == 0 and name != "reasoning")}
    facts = [f"{counted(count, 'token')} {name}" for name, count in shown.items()]
    facts += [f"{sample.elapsed:.2f} s"] if sample.elapsed is not None else []
    facts += [f"ended by {sample.finish_reason}"] if sample.finish_reason else []
    facts += [f"read by: {rule}"] if (rule := noted_rule(sample)) else []
    facts += ["scoring drew at random"] if sample.drew else []
    yield "generation", ", ".join(facts)
    yield "document", "\n".join(f"{name}: {_short(value)}" for name, value in sample.doc.items())


def _asked(sample: Sample, located: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    sent = sample.record.get("sent_media")
    media = sent if isinstance(sent, list) else []
    conversations = sample.conversations
    if all(is_plain(messages) for messages in conversations):
        yield "prompt", sample.prompt
        yield "media", "\n".join(media_lines(_with_paths(media, located)) if media else sample.media)
        return
    for number, messages in enumerate(conversations, 1):
        of_which = f" of repeat {number}" if len(conversations) > 1 else ""
        yield f"messages{of_which}", conversation_text(messages, media)
    yield "media", "\n".join(media_lines(_with_paths(media, located), is_numbered=True))


def _with_paths(media: Sequence[Any], located: Callable[[str], str]) -> Iterator[Any]:
    """Yield the media, with the paths of the files that the run keeps of them."""
    for medium in media:
        kept = medium.get("stored") if isinstance(medium, Mapping) else None
        yield {**medium, "stored": [located(str(place)) for place in kept]} if isinstance(kept, list) else medium


def _repeat(repeat: SampleRepeat) -> str:
    """Format one of several answers with its own scores, tokens and time."""
    facts = [f"{name}: {_value(value)}" for name, value in repeat.metrics.items()]
    facts += [f"{counted(repeat.tokens.output, 'token')} out"] if repeat.tokens.output is not None else []
    facts += [f"{repeat.elapsed:.2f} s"] if repeat.elapsed is not None else []
    facts += [f"ended by {repeat.finish_reason}"] if repeat.finish_reason else []
    thoughts = _folded(thoughts_text(repeat.thoughts))
    answer = _value(repeat.answer)
    answer = f"[thoughts: {thoughts}]\n{without_thoughts(answer, repeat.thoughts)}" if thoughts else answer
    return answer + (f"\n({', '.join(facts)})" if facts else "")


def _judgements(judge: Any) -> Iterator[tuple[str, str]]:
    """Yield each question to the judge with its prompt, replies and other fields."""
    questions = judge if isinstance(judge, list) else [judge] if judge else []
    for question in questions:
        if not isinstance(question, Mapping):
            yield "judge", _value(question)
            continue
        sent = question.get("sent_media")
        media = sent if isinstance(sent, list) else []
        asked = conversation_text(read_messages(question.get("asked"), media), media)
        lines = [f"{key}: {_value(value)}" for key, value in question.items() if key not in ("asked", "sent_media")]
        yield "judge", "\n".join([*filter(None, [asked]), *media_lines(media, is_numbered=True), *lines])


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json_cell(value)


def _folded(thoughts: str) -> str:
    """Return the beginning and the end of thoughts; ``--json`` shows them in full."""
    text = thoughts.strip()
    if len(text) <= 2 * _LONGEST_LINE:
        return text
    left = len(text) - 2 * _LONGEST_LINE
    return f"{text[:_LONGEST_LINE]}\n... ({left} more characters: --json) ...\n{text[-_LONGEST_LINE:]}"


def _short(value: Any) -> str:
    text = _value(value)
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}... ({len(text)} characters)"


def samples_table(samples: Sequence[Sample]) -> str:
    """Format samples as a Markdown table, one row each, with long texts cut."""
    columns: dict[str, list[str]] = {
        "Task": [one.task for one in samples],
        "Doc": [one.doc_id for one in samples],
        "Filter": [one.filter for one in samples],
        "Outcome": [one.outcome for one in samples],
        "Score": ["" if one.score is None else f"{one.score:.4g}" for one in samples],
        "Prediction": [one.prediction for one in samples],
        "Target": [one.target for one in samples],
        "Reason": [one.reason for one in samples],
    }
    shown = {heading: [escaped(cell[:_LONGEST]) for cell in cells] for heading, cells in columns.items()}
    return named_table(shown).rstrip("\n")
