"""Prompts of lm-eval's tasks: values of documents, the draw of examples, and how the texts are joined."""

from __future__ import annotations

import ast
import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.errors import TaskError
from lmms_eval.tasks.data import Documents
from lmms_eval.tasks.lm_eval.config import LmEvalConfig
from lmms_eval.tasks.yaml.prompts import Doc, Part, PromptBuilder, Prompts, RenderError, Turn, field_value

SAMPLERS = ("default", "first_n")


def is_number(value: Any) -> bool:
    """Return whether a value is a whole number, also one of numpy."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


class LmEvalPrompts(Prompts):
    """The values of documents by lm-eval's rules. A newline at the end of a template stays."""

    config: LmEvalConfig
    keeps_newline = True

    def _stated(self, key: str, doc: Doc) -> Any:
        return self._value(getattr(self.config, key), doc, key)

    def _value(self, spec: Any, doc: Doc, key: str) -> Any:
        """Return the value of a question or target: of a function, a column, or a template.

        The digits that a template gives are a number if the task has choices; a target in brackets is read as a list.
        """
        if callable(spec):
            return spec(doc)
        value = field_value(spec, doc, self._key(key), self.keeps_newline)
        if not isinstance(value, str) or spec in doc:
            return value
        if self.config.doc_to_choice is not None and value.isdigit():
            return int(value)
        if key == "doc_to_target" and len(value) > 1 and value.startswith("[") and value.endswith("]"):
            with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return ast.literal_eval(value)
        return value

    def description(self, doc: Doc) -> str:
        """Return the text at the beginning of the prompt: a column, else a template."""
        spec = self.config.description
        if not spec:
            return ""
        return str(spec(doc) if callable(spec) else field_value(spec, doc, self._key("description"), True))

    def gen_prefix(self, doc: Doc, spec: Any) -> str:
        """Return the beginning of the answer that the prompt gives; empty without the key."""
        if spec is None:
            return ""
        return str(spec(doc) if callable(spec) else field_value(spec, doc, self._key("gen_prefix"), True))

    def example(self, doc: Doc) -> tuple[str, str]:
        """Return question and answer of an example, by the keys of ``fewshot_config`` where it has them."""
        stated, own = self.config.examples, self.config
        choices_spec = stated.get("doc_to_choice", own.doc_to_choice)
        choices = None if choices_spec is None else self._choices_by(choices_spec, doc)
        question = self._value(stated.get("doc_to_text", own.doc_to_text), doc, "doc_to_text")
        answer = self._value(stated.get("doc_to_target", own.doc_to_target), doc, "doc_to_target")
        if is_number(question) and choices is not None:  # the choices are the questions, and the target ends them
            question = _choice(choices, int(question), self._key("doc_to_text"))
            return question, str(answer)
        return str(question), self._answer(answer, choices)

    def answer_text(self, doc: Doc) -> str:
        return self._answer(self.target(doc), self.choices(doc))

    def _answer(self, value: Any, choices: Sequence[str] | None) -> str:
        """Return an answer as text: of a list the first one; a number is that choice."""
        if isinstance(value, list | tuple) and value:
            value = value[0]
        if is_number(value) and choices is not None and 0 <= int(value) < len(choices):
            return choices[int(value)]
        return str(value)


def _choice(choices: Sequence[str], number: int, where: str) -> str:
    if not 0 <= number < len(choices):
        raise RenderError(f"{where}: there is no choice number {number} among {len(choices)}")
    return choices[number]


class ExampleDraws:
    """Draws the examples of the documents, one after the other, with one generator for the whole task.

    Args:
        pool: the documents that examples are drawn from.
        documents: the evaluated documents.
        count: number of examples.
        sampler: ``default`` draws at random, ``first_n`` takes the first.
        excludes: a document is not drawn as its own example; equal documents count as the same.
        seed: seed of the generator.
    """

    def __init__(
        self, pool: Sequence[Doc], documents: Documents, count: int, sampler: str, excludes: bool, seed: int | None
    ) -> None:  # fmt: skip
        self._pool, self._documents, self._count = pool, documents, count
        self._sampler, self._excludes = sampler, excludes
        self._random = random.Random(seed)
        self._drawn: list[list[int]] = []
        self._lock = threading.Lock()

    def of(self, doc_id: int) -> list[Doc]:
        """Return the examples of a document. Those of the documents before it are drawn first."""
        with self._lock:
            while len(self._drawn) <= doc_id:
                self._drawn.append(self._draw(len(self._drawn)))
        return [self._pool[number] for number in self._drawn[doc_id]]

    def check(self, where: str) -> None:
        """Raise ``TaskError`` if there are too few documents for the examples."""
        needed = self._count + (self._excludes and self._sampler == "default")
        if len(self._pool) < needed:
            raise TaskError(f"{where}: num_fewshot {self._count}: there are only {len(self._pool)} documents for them")

    def _draw(self, doc_id: int) -> list[int]:
        pool = range(len(self._pool))
        if self._sampler == "first_n":
            return [number for number in pool if not self._is_same(number, doc_id)][: self._count]
        if not self._excludes:
            return self._random.sample(pool, self._count)
        drawn = [one for one in self._random.sample(pool, self._count + 1) if not self._is_same(one, doc_id)]
        if len(drawn) < self._count:
            others = [number for number in pool if not self._is_same(number, doc_id)]
            drawn = self._random.sample(others, self._count)
        return drawn[: self._count]

    def _is_same(self, number: int, doc_id: int) -> bool:
        return self._excludes and dict(self._pool[number].items()) == dict(self._documents.text_view(doc_id).items())


class Said(Struct, frozen=True):
    """A message of a prompt."""

    role: Literal["system", "user", "assistant"]
    text: str
    after: str = ""
    """Text that follows it where messages are joined."""


def needs_blank(left: str, right: str) -> bool:
    """Return whether two texts need something between them: both sides of the joint have no white space."""
    return bool(left) and not left[-1].isspace() and not right[:1].isspace()


def single_turn(said: Sequence[Said]) -> list[Said]:
    """Join the messages between the system message and a beginning of the answer to one of the user."""
    lead = [one for one in said[:1] if one.role == "system"]
    rest = list(said[len(lead) :])
    end = [rest.pop()] if rest[-1].role == "assistant" else []
    text = "".join(one.text + one.after for one in rest[:-1]) + rest[-1].text
    return [*lead, Said("user", text), *end]


class LmEvalPromptBuilder(PromptBuilder):
    """Joins system instruction, description, examples and question as lm-eval does."""

    prompts: LmEvalPrompts

    def __init__(self, prompts: LmEvalPrompts, documents: Documents, draws: ExampleDraws | None) -> None:
        super().__init__(prompts, documents, None, None)
        self._draws, self.has_examples = draws, draws is not None

    def said(self, doc_id: int, question: str | None = None) -> list[Said]:
        """Return the messages of a document's prompt; ``question`` replaces its own."""
        prompts, config = self.prompts, self.prompts.config
        doc = self.documents.text_view(doc_id)
        shown = prompts.shown_text(doc) if question is None else question
        system = self._joined(prompts.options.system_instruction or "", prompts.description(doc))
        made = [Said("system", system)] if system else []
        for example in self._draws.of(doc_id) if self._draws is not None else ():
            made += self._example(example)
        prefix = prompts.gen_prefix(doc, config.gen_prefix)
        between = config.answer_delimiter if prefix and needs_blank(shown, prefix) else ""
        made.append(Said("user", shown, between))
        return [*made, Said("assistant", prefix)] if prefix else made

    def context(self, doc_id: int, question: str | None = None) -> str:
        return "".join(one.text + one.after for one in self.said(doc_id, question))

    def chat(self, doc_id: int, question: str | None = None) -> list[Said]:
        """Return the messages for a chat template. Without ``fewshot_as_multiturn``, those of the user are joined."""
        said = self.said(doc_id, question)
        if self.prompts.options.fewshot_as_multiturn:
            return said
        return single_turn(said)

    def text_turns(self, doc_id: int, question: str | None = None) -> list[dict[str, str]]:
        return [{"role": one.role, "content": one.text} for one in self.chat(doc_id, question)]

    def turns(self, doc_id: int, doc: Doc | None = None, own: Sequence[Turn] | None = None) -> list[Turn]:
        """Return the messages of a document, its media first in the last message of the user."""
        if own is not None:
            return super().turns(doc_id, doc, own)
        full = self.documents[doc_id] if doc is None else doc
        media = self.prompts.user_turn(self.prompts.visuals(full), "")[0]["content"]
        shown: list[Part] = [part for part in media if part.get("type") != "text"]
        said = self.chat(doc_id)
        last = max(number for number, one in enumerate(said) if one.role == "user")
        return [
            {"role": one.role, "content": [*(shown if number == last else ()), {"type": "text", "text": one.text}]}
            for number, one in enumerate(said)
        ]

    def _joined(self, left: str, right: str) -> str:
        between = self.prompts.config.fewshot_delimiter if right and needs_blank(left, right) else ""
        return f"{left}{between}{right}"

    def _example(self, doc: Doc) -> Iterator[Said]:
        prompts, config = self.prompts, self.prompts.config
        stated = config.examples
        question, answer = prompts.example(doc)
        prefix = prompts.gen_prefix(doc, stated.get("gen_prefix", config.gen_prefix))
        delimiter = stated.get("target_delimiter", config.answer_delimiter)
        after = delimiter if not prefix or needs_blank(question, prefix) else ""
        blank = " " if prefix and needs_blank(prefix, answer) else ""
        yield Said("user", question, after)
        yield Said("assistant", f"{prefix}{blank}{answer}", stated.get("fewshot_delimiter", config.fewshot_delimiter))


def example_pool(
    config: LmEvalConfig, documents_of: Callable[[str], Documents], where: str
) -> tuple[Sequence[Doc], bool]:
    """Return the documents that examples are drawn from, and whether a document is excluded from its own examples.

    Args:
        config: the task, with functions in it.
        documents_of: opens a split, after ``process_docs``.
        where: the task's file, for messages.

    Raises:
        TaskError: ``samples`` is no list of documents.
    """
    stated = config.examples
    split = stated.get("split") or config.fewshot_split
    if split is None and "samples" in stated:
        samples = stated["samples"]() if callable(stated["samples"]) else stated["samples"]
        if not isinstance(samples, list | tuple) or not all(isinstance(one, Mapping) for one in samples):
            raise TaskError(f"{where}: key 'fewshot_config': samples must be a list of documents")
        return list(samples), split == config.test_split
    found = split or config.training_split or config.validation_split or config.split
    documents = documents_of(str(found))
    return [documents.text_view(number) for number in range(len(documents))], split == config.test_split


def sampler_of(config: LmEvalConfig, where: str) -> str:
    """Return the name of the sampler of examples. Raises ``TaskError`` if it is not in this version."""
    sampler = config.examples.get("sampler", "default")
    if sampler not in SAMPLERS:
        raise TaskError(f"{where}: key 'fewshot_config': sampler {sampler!r}; valid are {', '.join(SAMPLERS)}")
    return str(sampler)
