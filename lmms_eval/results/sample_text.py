"""Samples as text for a terminal: one of them whole, or several as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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


def _texts(sample: Sample) -> Iterator[tuple[str, str]]:
    yield "reason", sample.reason
    yield "prompt", sample.prompt
    yield "media", "\n".join(_media(sample))
    yield "answer", sample.raw
    yield "parsed answer", sample.prediction if sample.prediction != sample.raw else ""
    yield "target", sample.target
    yield "metrics", "\n".join(f"{name}: {_value(value)}" for name, value in sample.metrics.items())
    yield "judge", "\n".join(_judge(sample.judge))
    tokens = {"in": sample.tokens.input, "out": sample.tokens.output, "reasoning": sample.tokens.reasoning}
    facts = [f"{count} tokens {name}" for name, count in tokens.items() if count is not None]
    facts += [f"{sample.elapsed:.2f} s"] if sample.elapsed is not None else []
    facts += [f"ended by {sample.finish_reason}"] if sample.finish_reason else []
    facts += ["scoring drew at random"] if sample.drew else []
    yield "generation", ", ".join(facts)
    yield "document", "\n".join(f"{name}: {_short(value)}" for name, value in sample.doc.items())


def _media(sample: Sample) -> Iterator[str]:
    sent = sample.record.get("sent_media")
    if not isinstance(sent, list):
        yield from sample.media
        return
    for one in sent:
        if isinstance(one, Mapping):
            place = one.get("path") or one.get("url") or one.get("name") or one.get("sha256") or "in memory"
            size = f", {one['width']} x {one['height']}" if "width" in one and "height" in one else ""
            times = one.get("times")
            frames = (
                f", frames at {', '.join(f'{_value(time)} s' for time in times)}" if isinstance(times, list) else ""
            )
            yield f"{one.get('type', 'medium')}: {place}{size}{frames}"


def _judge(said: Any) -> Iterator[str]:
    """The transcript: each question by name, then what is known of it."""
    questions = said if isinstance(said, list) else [said] if said else []
    for question in questions:
        if not isinstance(question, Mapping):
            yield _value(question)
            continue
        for key, value in question.items():
            yield f"{key}: {_value(value)}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json_cell(value)


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
