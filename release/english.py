"""Reports words that this project's English avoids: ``python -m release.english [--counts] [PATH ...]``.

It reads docstrings, comments and messages of Python files and the prose of Markdown files. Code, quotations in double
quotes or backticks, links and fenced blocks are passed over. ``CONTRIBUTING.md`` says what to write instead.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

AVOIDED: tuple[tuple[str, str], ...] = (
    (r"\b(?:tell|tells|told|telling)\b", "report, return, state, show"),
    (r"\b(?:stand|stands|stood|standing)\b(?![- ]?alone|[- ]in)", "is, are, lies, precedes"),
    (r"\bbeside\b", "next to, with, in addition to"),
    (r"\bnone of\b", "no, not any"),
    (r"\bthat which\b", "what, the one that"),
    (r"\b(?:go|goes|gone|went|going) on\b", "continue, resume"),
    (r"\b(?:has|have) (?:it|them) not\b", "lacks, does not have"),
    (r"\b(?:is|are|was|were|be) said\b", "is reported, is stated"),
    (r"\b(?:say|says|said) so\b", "report it"),
    (r"\bwhoever\b", "the caller, the user"),
    (r"\b(?:is|are) (?-i:none)\b", "is not a, has no"),
    (r"\bwhere (?:there (?:is|are)|it is|they are|nothing|none|no one)\b", "if"),
    (r"(?:^|(?<=[.:;] ))(?-i:Whose)\b", "a full sentence"),
    (r"\b(?:by|to|of|for|from|in) which\b", "two sentences, or a clause with 'that'"),
)
"""Pattern and what to write instead."""

PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in AVOIDED)
QUOTED = re.compile(r"``.*?``|`[^`]*`|\"[^\"]*\"|“[^”]*”|\{[^}]*\}|\]\([^)]*\)|<[^>]*>", re.DOTALL)
FENCE = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$", re.DOTALL | re.MULTILINE)
EVERYWHERE = ("lmms_eval", "benchmarks", "release", "docs", "examples", "README.md", "CONTRIBUTING.md")
PASSED_OVER = ("lmms_eval/viewer/bundle", "lmms_eval/viewer/web", "docs/generated", "release/english.py")
QUESTIONS = (
    "benchmarks/megabench_workload.py",
    "benchmarks/popular_scoring.py",
    "examples/make_",
    "examples/megabench_demo_tasks.py",
    "examples/tiny_vlm/",
    "examples/general_bench_demo_language.py",
    "examples/training_loop.py",
    "examples/build_tiny_model.py",
    "lmms_eval/tasks/general_bench/prompts/media.py",
    "lmms_eval/tasks/general_bench/prompts/nlp.py",
    "lmms_eval/tasks/hallusion_bench/utils.py",
    "lmms_eval/tasks/mathvista/prompts.py",
    "lmms_eval/tasks/mmie/judge_prompts.py",
    "lmms_eval/utils/picture_marks.py",
)
"""Files whose strings are prompts or questions: only their docstrings and comments are read."""


class Text(NamedTuple):
    """A piece of prose with its first line's number."""

    line: int
    text: str


class Finding(NamedTuple):
    """A word that is avoided, with its place."""

    path: Path
    line: int
    word: str
    advice: str
    context: str


def python_texts(source: str, with_messages: bool = True) -> Iterator[Text]:
    """Yield the docstrings, messages and comments of a Python file: strings of at least three words.

    Without messages only docstrings and comments.
    """
    tree = ast.parse(source)
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if node.value.count(" ") >= 2 and (with_messages or node in docstrings):
            yield Text(node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string.lstrip("# "))


def markdown_texts(source: str) -> Iterator[Text]:
    """Yield the lines of a Markdown file outside fenced blocks and HTML comments."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    prose = re.sub(r"<!--.*?-->", blank, FENCE.sub(blank, source), flags=re.DOTALL)
    yield from (Text(number, line) for number, line in enumerate(prose.splitlines(), 1))


def findings(path: Path) -> Iterator[Finding]:
    """Yield each avoided word of a file."""
    source = path.read_text("utf-8")
    with_messages = not path.as_posix().startswith(QUESTIONS)
    texts = python_texts(source, with_messages) if path.suffix == ".py" else markdown_texts(source)
    for text in texts:
        prose = QUOTED.sub(lambda found: " " + "\n" * found[0].count("\n"), text.text)
        for pattern, advice in PATTERNS:
            for found in pattern.finditer(prose):
                line = text.line + prose.count("\n", 0, found.start())
                context = " ".join(prose[max(0, found.start() - 30) : found.end() + 30].split())
                yield Finding(path, line, found[0], advice, context)


def files(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the Python and Markdown files below paths, in order."""
    for name in paths or EVERYWHERE:
        path = Path(name)
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        for one in below:
            if one.suffix in (".py", ".md") and one.is_file() and not one.as_posix().startswith(PASSED_OVER):
                yield one


def main(arguments: Sequence[str]) -> int:
    """Print what is found. Returns 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m release.english", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--counts", action="store_true", help="print how often each word occurs, by first folders")
    parser.add_argument("paths", nargs="*", help="files or folders; default: the whole project")
    given = parser.parse_args(arguments)
    found = [one for path in files(given.paths) for one in findings(path)]
    if given.counts:
        for place, count in Counter("/".join(one.path.parts[:2]) for one in found).most_common():
            print(f"{count:6} {place}")
        for word, count in Counter(one.word.lower() for one in found).most_common():
            print(f"{count:6} {word}")
    else:
        for one in found:
            print(f"{one.path}:{one.line}: “{one.word}” ({one.advice}): … {one.context} …")
    print(f"{len(found)} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
