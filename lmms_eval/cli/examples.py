"""Command lines to begin with, for the help and for whoever types the command alone."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """A command line and what it is for. No dataclass: importing those takes as long as all else of a short command."""

    purpose: str
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        """The line as it is typed."""
        return " ".join(("lmms-eval", *self.words))


FIRST_RUN = Example(
    "a first run, without network, key or GPU",
    ("--model", "hf", "--model_args", "pretrained=embedded", "--tasks", "megabench_demo"),
)
EXAMPLES = (
    FIRST_RUN,
    Example(
        "a local model",
        (
            *("--model", "hf", "--model_args", "pretrained=Qwen/Qwen2.5-VL-3B-Instruct,dtype=bfloat16"),
            *("--tasks", "mme", "--limit", "32", "--output_path", "out"),
        ),
    ),
    Example(
        "a model behind an OpenAI-compatible server",
        (
            *("--model", "openai", "--model_args", "model=NAME,base_url=http://127.0.0.1:8000/v1"),
            *("--tasks", "mme", "--output_path", "out", "--log_samples"),
        ),
    ),
    Example("what a run would ask, without asking", ("--model", "hf", "--tasks", "quick", "--dry_run")),
)
"""Evaluations."""
NEXT_STEPS = (
    Example("which tasks there are", ("tasks", "search", "chart")),
    Example("what this machine can run", ("doctor",)),
    Example("answers by topic", ("help",)),
    Example("all flags", ("eval", "--help")),
)
"""Further commands."""


def example_lines(examples: tuple[Example, ...]) -> list[str]:
    """Return each purpose as a comment, with its line below."""
    return [text for example in examples for text in (f"  # {example.purpose}", f"  {example.line}")]


def bare_evaluation() -> list[str]:
    """Return what an evaluation without flags is answered with, below its error."""
    return ["", *example_lines(EXAMPLES), "", "Next:", *example_lines(NEXT_STEPS)]
