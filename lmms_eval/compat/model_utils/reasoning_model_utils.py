"""The final answer of a reasoning model, by the family's rule."""

from __future__ import annotations

_THOUGHTS, _ANSWER, _BOXED = ("<think>", "</think>"), ("<answer>", "</answer>"), (r"\boxed{", "}")


def parse_reasoning_model_answer(text: str) -> str:
    r"""Return an answer without its thoughts, white space around it trimmed.

    Closed ``<think>…</think>`` blocks go first. Of the rest counts the first ``<answer>…</answer>``, else the first
    ``\boxed{…}``, which ends at its first closing brace (``\boxed{\frac{1}{2}}`` gives ``\frac{1``: scores of the
    family rest on it), else all of it.
    """
    rest = _without(text, *_THOUGHTS)
    for opening, closing in (_ANSWER, _BOXED):
        _, _, after = rest.partition(opening)
        inner, found, _ = after.partition(closing)
        if found:
            return inner.strip()
    return rest.strip()


def _without(text: str, opening: str, closing: str) -> str:
    pieces: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        pieces.append(text[at:start])
        at = end + len(closing)
    return "".join([*pieces, text[at:]])
