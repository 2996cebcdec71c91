"""Samples as text for a terminal: one of them whole, or several as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval.results.conversation_text import conversation_text, is_plain, media_lines
from lmms_eval.results.run_reader.messages import read_messages
from lmms_eval.results.run_reader.reading import noted_rule
from lmms_eval.results.run_reader.repeats import Repeat, thoughts_text, without_thoughts
from lmms_eval.results.run_reader.sample import Sample, json_cell
from lmms_eval.utils.markdown import Column, escaped, markdown_table

_LONGEST = 60
_LONGEST_LINE = 200


def sample_text(sample: Sample) -> str:
    """Write a sample: prompt, media, answer, reference, metric by metric, what a judge said, tokens.

    Control characters are left to whoever prints it (``utils.terminal.printable``).
    """
    facts = [f"{sample.task}, document {sample.doc_id}: {sample.status}"]
    facts += [f"filter {sample.filter}"] if sample.filter else []
    facts += [sample.outcome] if sample.outcome != sample.status else []
    parts = [", ".join(facts)]
    for heading, text in _texts(sample):
        if text:
            parts.append(f"--- {heading}\n{text}")
    return "\n\n".join(parts)


def pipelines_text(samples: Sequence[Sample]) -> str:
    """Write what further filter pipelines read of an answer, and scored."""
    parts = []
    for sample in samples:
        facts = [sample.prediction, *(f"{name}: {_value(value)}" for name, value in sample.metrics.items())]
        parts.append(
            "\n".join([f"--- filter {sample.filter}: {sample.status}", *filter(None, [sample.reason, *facts])])
        )
    return "\n\n".join(parts)


def _texts(sample: Sample) -> Iterator[tuple[str, str]]:
    yield "reason", _failure(sample)
    yield from _asked(sample)
    if not sample.repeats:
        yield "thoughts", _folded(sample.thoughts)
    yield "answer", "" if sample.repeats else sample.answer
    yield "no answer", sample.blank
    yield "parsed answer", sample.prediction if sample.prediction != sample.answer else ""
    yield "target", sample.target
    yield "metrics", "\n".join(f"{name}: {_value(value)}" for name, value in sample.metrics.items())
    for number, repeat in enumerate(sample.repeats, 1):
        yield f"repeat {number}", _repeat(repeat)
    yield from _judgements(sample.whole.get("judge"))
    tokens = {"in": sample.tokens.input, "out": sample.tokens.output, "reasoning": sample.tokens.reasoning}
    facts = [f"{count} tokens {name}" for name, count in tokens.items() if count is not None]
    facts += [f"{sample.elapsed:.2f} s"] if sample.elapsed is not None else []
    facts += [f"ended by {sample.finish_reason}"] if sample.finish_reason else []
    facts += [f"read by: {rule}"] if (rule := noted_rule(sample)) else []
    facts += ["scoring drew at random"] if sample.drew else []
    yield "generation", ", ".join(facts)
    yield "document", "\n".join(f"{name}: {_short(value)}" for name, value in sample.doc.items())


def _failure(sample: Sample) -> str:
    attempts = sample.record.get("attempts")
    return sample.reason + (f"\nsent {attempts} times" if sample.reason and isinstance(attempts, int) else "")


def _asked(sample: Sample) -> Iterator[tuple[str, str]]:
    sent = sample.record.get("sent_media")
    media = sent if isinstance(sent, list) else []
    conversations = sample.conversations
    if all(is_plain(messages) for messages in conversations):
        yield "prompt", sample.prompt
        yield "media", "\n".join(media_lines(media) if media else sample.media)
        return
    for number, messages in enumerate(conversations, 1):
        of_which = f" of repeat {number}" if len(conversations) > 1 else ""
        yield f"messages{of_which}", conversation_text(messages, media)
    yield "media", "\n".join(media_lines(media, is_numbered=True))


def _repeat(repeat: Repeat) -> str:
    """An answer with what it scored alone and what it took."""
    facts = [f"{name}: {_value(value)}" for name, value in repeat.metrics.items()]
    facts += [f"{repeat.tokens.output} tokens out"] if repeat.tokens.output is not None else []
    facts += [f"{repeat.elapsed:.2f} s"] if repeat.elapsed is not None else []
    facts += [f"ended by {repeat.finish_reason}"] if repeat.finish_reason else []
    thoughts = _folded(thoughts_text(repeat.thoughts))
    answer = _value(repeat.answer)
    answer = f"[thoughts: {thoughts}]\n{without_thoughts(answer, repeat.thoughts)}" if thoughts else answer
    return answer + (f"\n({', '.join(facts)})" if facts else "")


def _judgements(said: Any) -> Iterator[tuple[str, str]]:
    """The transcript: each question with its prompt, the replies, and what else is known of it."""
    questions = said if isinstance(said, list) else [said] if said else []
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
    """The beginning and the end of thoughts; ``--json`` shows them whole."""
    text = thoughts.strip()
    if len(text) <= 2 * _LONGEST_LINE:
        return text
    left = len(text) - 2 * _LONGEST_LINE
    return f"{text[:_LONGEST_LINE]}\n... ({left} more characters: --json) ...\n{text[-_LONGEST_LINE:]}"


def _short(value: Any) -> str:
    text = _value(value)
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}... ({len(text)} characters)"


def samples_table(samples: Sequence[Sample]) -> str:
    """Write samples as a Markdown table, a line for each; texts are cut."""

    def text(heading: str, cells: Sequence[str]) -> Column:
        return Column(heading, tuple(escaped(cell[:_LONGEST]) for cell in cells), is_text=True)

    return markdown_table(
        [
            text("Task", [one.task for one in samples]),
            text("Doc", [one.doc_id for one in samples]),
            text("Filter", [one.filter for one in samples]),
            text("Outcome", [one.outcome for one in samples]),
            text("Score", ["" if one.score is None else f"{one.score:.4g}" for one in samples]),
            text("Prediction", [one.prediction for one in samples]),
            text("Target", [one.target for one in samples]),
            text("Reason", [one.reason for one in samples]),
        ]
    ).rstrip("\n")
