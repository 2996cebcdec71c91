"""Prompts of documents: text contexts and chat messages with media, few-shot examples included."""

from __future__ import annotations

import ast
import contextlib
import functools
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.api.messages import ChatMessages, build_user_turn, is_relative_file
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import AbsentFileError, LmmsEvalError, MediaError, TaskError
from lmms_eval.tasks.data import Documents
from lmms_eval.tasks.yaml.config import TaskConfig
from lmms_eval.tasks.yaml.settings import specific_kwargs, target_kwargs
from lmms_eval.utils.signatures import parameters_of

if TYPE_CHECKING:
    from lmms_eval.media.policy import MediaPolicy


Doc = Mapping[str, Any]


class RenderError(LmmsEvalError):
    """A value of one document cannot be made. The sample fails and the run continues."""


def check_template(text: str, where: str) -> None:
    """Raise ``TaskError`` for a template with a syntax error."""
    from jinja2 import TemplateSyntaxError

    from lmms_eval.utils.template import compiled

    try:
        compiled(text)
    except TemplateSyntaxError as error:
        raise TaskError(f"{where}: template {text!r}: {error}") from error


def render_template(text: str, doc: Doc, where: str, keeps_newline: bool = False) -> str:
    """Render a Jinja2 template with a document's columns. A missing column is an error.

    One newline at the end is dropped, as Jinja does, unless ``keeps_newline`` is set. Raises ``RenderError`` if a name
    is undefined, or an expression fails for this document.
    """
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return text[:-1] if text.endswith("\n") and not keeps_newline else text
    from jinja2 import TemplateError

    from lmms_eval.utils.template import compiled

    try:
        return str(compiled(text, keeps_newline).render(dict(doc.items())))
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, re.error) as error:
        columns = ", ".join(doc)
        raise RenderError(f"{where}: template {text!r}: {error}; the document has the columns {columns}") from error


def bound_text(function: Callable[..., Any], kwargs: Any) -> Callable[..., Any]:
    """Bind ``doc_to_text`` or a similar function to its settings, if any: the second positional argument."""
    takes = parameters_of(function)
    if kwargs is None or (takes.positional < 2 and not takes.any_positional):
        return function
    return lambda doc, **rounds: function(doc, kwargs, **rounds)


def bound_visual(function: Callable[..., Any], kwargs: Any) -> Callable[[Doc], Any]:
    """Bind ``doc_to_visual`` to its settings if it has exactly two parameters."""
    takes = parameters_of(function)
    if max(takes.positional, len(takes.names)) == takes.positional == 2:
        return lambda doc: function(doc, kwargs)
    return function


def bound_messages(function: Callable[..., Any], kwargs: Any) -> Callable[..., Any]:
    """Bind ``doc_to_messages`` to its settings: a keyword, or the second parameter unless a round gives that one."""
    takes = parameters_of(function)
    if "lmms_eval_specific_kwargs" in takes.names or takes.any_keyword:
        return partial(function, lmms_eval_specific_kwargs=kwargs)
    if takes.positional != 2 or len(takes.names) < 2:
        return function
    second = takes.names[1]
    return lambda doc, **rounds: function(doc, **rounds) if second in rounds else function(doc, kwargs, **rounds)


@functools.cache
def keep_originals() -> None:
    """Keep the bytes of files that a function opens by ``Image.open``, so that they are sent unchanged."""
    from lmms_eval.media import opened

    opened.keep_originals()


def field_value(spec: Any, doc: Doc, where: str, keeps_newline: bool = False) -> Any:
    """Return the value of a key that is not a function: column, template, number, or literal list."""
    if isinstance(spec, str):
        return doc[spec] if spec in doc else render_template(spec, doc, where, keeps_newline)
    return spec


def choices_value(spec: Any, doc: Doc, where: str, keeps_newline: bool = False) -> list[str]:
    """Return the choices of a document as texts. Raises ``RenderError`` if they are not a list."""
    value = spec(doc) if callable(spec) else field_value(spec, doc, where, keeps_newline)
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise RenderError(f"{where}: {value!r} is no list of choices: {error}") from error
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple) or not value:
        raise RenderError(f"{where}: choices must be a list that is not empty, not {value!r:.80}")
    return [str(choice) for choice in value]


SAMPLERS = ("default", "first_n")


class FewShot(Struct, frozen=True):
    """Chooses the examples of a task; a resumed run chooses the same ones for a document."""

    count: int
    split: str
    same_split: bool
    """Whether examples come from the evaluated split. A document is never its own example."""
    sampler: str
    seed: str

    def choose(self, doc_id: int, available: int) -> list[int]:
        """Return the numbers of the documents of ``split`` that are the examples for a document.

        Raises ``TaskError`` if the split has too few documents.
        """
        needed = self.count + (1 if self.same_split else 0)
        if available < needed:
            raise TaskError(
                f"num_fewshot {self.count}: split {self.split!r} has only {available} documents"
                f"{', the question among them' if self.same_split else ''}; ask for fewer shots"
            )
        if self.sampler == "first_n":
            chosen = list(range(needed))
        else:
            chosen = random.Random(f"{self.seed}:{doc_id}").sample(range(available), needed)
        if self.same_split:
            chosen = [number for number in chosen if number != doc_id]
        return chosen[: self.count]


def few_shot(config: TaskConfig, count: int, seed: int | None, where: str) -> FewShot | None:
    """Return the choice of examples by a task's configuration; ``None`` without examples.

    Examples come from ``fewshot_split``, else the training, validation or evaluated split. Raises ``TaskError`` if the
    sampler is unknown.
    """
    sampler = str((config.fewshot_config or {}).get("sampler", "default"))
    if sampler not in SAMPLERS:
        raise TaskError(f"{where}: key 'fewshot_config': sampler {sampler!r}; valid are {', '.join(SAMPLERS)}")
    if count == 0:
        return None
    split = config.fewshot_split or config.training_split or config.validation_split or config.split
    return FewShot(count, split, split == config.split, sampler, f"{seed}:{config.task}")


Turn = dict[str, Any]
Part = dict[str, Any]


class Prompts:
    """The prompts of one task. ``config`` holds functions, not references. They are bound to their settings once."""

    keeps_newline = False
    """Whether templates keep a newline at their end."""

    def __init__(self, config: TaskConfig, options: TaskOptions, where: str) -> None:
        self.config, self.options, self.where = config, options, where
        self.kwargs = specific_kwargs(config, options)
        """Settings for the prompt functions, with the run's ``data_root`` where one is given."""
        if isinstance(self.kwargs, dict) and options.data_root is not None:
            self.kwargs.setdefault("data_root", options.data_root)
        self.media: MediaPolicy | None = None
        """Limits on what documents may show, where the data comes from the hub."""
        self.folders: Callable[[], Sequence[Path]] = lambda: (Path(),)
        """Returns the folders that a column's relative path may refer to, the most specific first."""
        text, target = config.doc_to_text, config.doc_to_target
        self.text: Callable[..., Any] = partial(self._stated, "doc_to_text")
        """Returns the value of ``doc_to_text``: a text, or the number of a choice."""
        if callable(text):
            self.text = bound_text(text, self.kwargs)
        self.target: Callable[[Doc], Any] = partial(self._stated, "doc_to_target")
        """Returns the value of ``doc_to_target``: a text, a choice's number, a list of either, or another value."""
        if callable(target):
            settings = target_kwargs(config.model_specific_target_kwargs, options)
            self.target = bound_text(target, settings)
            if settings is None and "lmms_eval_specific_kwargs" in parameters_of(target).names:
                self.target = partial(target, lmms_eval_specific_kwargs=self.kwargs)
        gold, visual, messages = config.doc_to_gold, config.doc_to_visual, config.doc_to_messages
        self.gold: Callable[[Doc], Any] = bound_text(gold, self.kwargs) if callable(gold) else self.answer_text
        """Returns an answer with full marks: ``doc_to_gold``, else the first reference answer."""
        self._visuals = bound_visual(visual, self.kwargs) if callable(visual) else None
        self.messages = None if messages is None else bound_messages(messages, self.kwargs)
        """Returns the value of ``doc_to_messages``; ``None`` without the key."""

    def _stated(self, key: str, doc: Doc) -> Any:
        """Return the value of a key that is no function.

        Digits that a template gives are a number if the task has choices. A target may be the text of a list.
        """
        spec = getattr(self.config, key)
        value = field_value(spec, doc, self._key(key), self.keeps_newline)
        if not isinstance(value, str) or not isinstance(spec, str) or spec in doc:
            return value
        if self.config.doc_to_choice is not None and value.isdigit():
            return int(value)
        if key == "doc_to_target" and value.startswith("[") and value.endswith("]"):
            with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return ast.literal_eval(value)
        return value

    def choices(self, doc: Doc) -> list[str] | None:
        """Return the value of ``doc_to_choice`` as texts; ``None`` without the key."""
        spec = self.config.doc_to_choice
        return None if spec is None else self._choices_by(spec, doc)

    def _choices_by(self, spec: Any, doc: Doc) -> list[str]:
        return choices_value(spec, doc, self._key("doc_to_choice"), self.keeps_newline)

    def visuals(self, doc: Doc) -> list[Any]:
        """Return the value of ``doc_to_visual``: the media of a document."""
        spec = self.config.doc_to_visual
        if spec is None:
            return []
        if self._visuals is not None:
            keep_originals()
            value = self._visuals(doc)
        elif spec in doc:
            value = self._located(doc[spec])
        else:
            raise RenderError(f"{self._key('doc_to_visual')}: no column {spec!r}; there is: {', '.join(doc)}")
        if value is None:
            return []
        return list(value) if isinstance(value, list | tuple) else [value]

    def _located(self, value: Any) -> Any:
        """Return the value of a column of media with the paths of its files, which are named relative to some folder.

        Raises ``MediaError`` if there is no such file.
        """
        if isinstance(value, list | tuple):
            return [self._located(one) for one in value]
        if not isinstance(value, str) or not is_relative_file(value):
            return value
        folders = list(self.folders())
        found = next((folder / value for folder in folders if (folder / value).is_file()), None)
        if found is not None:
            return str(found)
        kind = MediaError if self.media is not None else AbsentFileError
        tried = ", ".join(str(folder / value) for folder in folders)
        raise kind(f"{self._key('doc_to_visual')}: media file {value!r} not found; tried {tried}")

    def allowed(self, turns: list[Turn]) -> list[Turn]:
        """Return messages that may be sent. Raises ``MediaError`` if they name a forbidden file or address."""
        return turns if self.media is None else self.media.turns(turns)

    def shown_text(self, doc: Doc) -> str:
        """Return the question as text: if ``doc_to_text`` gives a number, the choice of that number.

        With a layout, ``doc`` is the full document.
        """
        if self.options.layout is not None:
            parts = (part for turn in self.own_turns(doc) for part in turn["content"])
            return "\n".join(part["text"] for part in parts if part.get("type") == "text")
        return self.varied(self._question(doc))

    def readable(self, documents: Documents, doc_id: int) -> Doc:
        """Return as much of a document as ``shown_text`` reads: without its media, unless a layout places them."""
        return documents.text_view(doc_id) if self.options.layout is None else documents[doc_id]

    def varied(self, text: str) -> str:
        """Return a question with the labels and in the frame of the run's variant of the prompt."""
        before, after = self.options.question_frame
        labels = self.options.option_labels
        if labels:
            from lmms_eval.utils.prompt_variants import relabelled

            text = relabelled(text, labels)
        return before + text + after

    def _question(self, doc: Doc) -> str:
        if self.config.doc_to_text is None:
            return ""
        value = self.text(doc)
        if type(value) is str:
            return value
        choices = self.choices(doc) if isinstance(value, int) and not isinstance(value, bool) else None
        if choices is None:
            if value is None or isinstance(value, Mapping | list | tuple):
                spec = self.config.doc_to_text
                place = f"column {spec!r}" if isinstance(spec, str) else "its value"
                problem = f"holds a {type(value).__name__}, not a text; write a template such as '{{{{{spec}.text}}}}'"
                problem = "is empty in this document" if value is None else problem
                raise RenderError(f"{self._key('doc_to_text')}: {place} {problem}")
            return str(value)
        if not 0 <= value < len(choices):
            raise RenderError(f"{self._key('doc_to_text')}: there is no choice number {value} among {len(choices)}")
        return str(choices[value])

    def answer_text(self, doc: Doc) -> str:
        """Return the reference answer for an example: the first one, as the text of its choice."""
        value = self.target(doc)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, int) and self.config.doc_to_choice is not None:
            choices = self.choices(doc) or []
            return choices[value] if 0 <= value < len(choices) else str(value)
        return str(value)

    def description(self, doc: Doc) -> str:
        """Return the text at the beginning of the prompt; a template, never a column name."""
        spec = self.config.description
        if not spec:
            return ""
        if callable(spec):
            return str(spec(doc))
        return render_template(str(spec), doc, self._key("description"))

    def own_turns(self, doc: Doc) -> list[Turn]:
        """Return the task's messages for a full document: ``doc_to_messages``, else all media followed by the text."""
        if self.options.layout is not None:
            return self._varied_turns(self.options.layout(doc, lambda: self.visuals(doc)))
        if self.messages is None:
            return self.user_turn(self.visuals(doc), self.shown_text(doc))
        keep_originals()
        return self._varied_turns(as_turns(self.messages(doc), f"{self.where}: doc_to_messages"))

    def _varied_turns(self, turns: list[Turn]) -> list[Turn]:
        """Return messages with the variant of the prompt in the last message of the user.

        The text before the question precedes the first text there, and the text after it follows the last one. Labels
        are changed in the last text with option lines.
        """
        options = self.options
        asked = [number for number, turn in enumerate(turns) if turn["role"] == "user"]
        if not asked or not (any(options.question_frame) or options.option_labels):
            return turns
        parts = list(turns[asked[-1]]["content"])
        texts = [place for place, part in enumerate(parts) if part.get("type") == "text"]
        if not texts:
            return [*turns[: asked[-1]], {**turns[asked[-1]], "content": [*parts, _text(self.varied(""))]},
                    *turns[asked[-1] + 1 :]]  # fmt: skip
        from lmms_eval.utils.prompt_variants import option_letters, relabelled

        before, after = options.question_frame
        listed = [place for place in texts if option_letters(parts[place]["text"])]
        for place in listed[-1:] if options.option_labels else ():
            parts[place] = {**parts[place], "text": relabelled(parts[place]["text"], options.option_labels)}
        parts[texts[0]] = {**parts[texts[0]], "text": before + parts[texts[0]]["text"]}
        parts[texts[-1]] = {**parts[texts[-1]], "text": parts[texts[-1]]["text"] + after}
        return [*turns[: asked[-1]], {**turns[asked[-1]], "content": parts}, *turns[asked[-1] + 1 :]]

    def user_turn(self, visuals: Sequence[Any], text: str) -> list[Turn]:
        """Make one user message, media first.

        Raises ``RenderError`` if an item of ``doc_to_visual`` is not a picture, video or sound.
        """
        try:
            return build_user_turn(visuals, text)
        except TypeError as error:
            raise RenderError(f"{self.where}: {error}") from error

    def _key(self, key: str) -> str:
        return f"{self.where}: {key}"


class PromptBuilder:
    """Builds complete prompts: system instruction, description and examples, then the task's own messages."""

    def __init__(self, prompts: Prompts, documents: Documents, few: FewShot | None, examples: Documents | None) -> None:
        self.prompts, self.documents = prompts, documents
        self._few, self._examples, self.has_examples = few, examples, few is not None

    @property
    def asks_question_alone(self) -> bool:
        """Whether nothing precedes or follows the question."""
        options = self.prompts.options
        return not (
            self.prompts.config.description or options.system_instruction or self.has_examples or options.layout
        )

    def is_plain(self, bare: bool) -> bool:  # noqa: ARG002 - other families' prompts are plain
        """Return whether local models get the text without a chat template. ``bare`` prompts have only the request."""
        return False

    def context(self, doc_id: int, question: str | None = None) -> str:
        """Return the prompt as text: system instruction, description, examples, question."""
        prompts = self.prompts
        doc = prompts.readable(self.documents, doc_id)
        shown = prompts.shown_text(doc) if question is None else question
        system = prompts.options.system_instruction
        lead = f"{system}\n\n" if system else ""
        if prompts.config.description:
            lead += prompts.description(doc)
        return lead + shown if self._few is None else lead + self._example_text(doc_id) + shown

    def text_turns(self, doc_id: int, question: str | None = None) -> list[dict[str, str]]:
        """Return the prompt as plain role and content pairs, for the chat template of a model without media."""
        doc = self.prompts.readable(self.documents, doc_id)
        shown = self.prompts.shown_text(doc) if question is None else question
        system = "\n\n".join(t for t in (self.prompts.options.system_instruction, self.prompts.description(doc)) if t)
        turns = [{"role": "system", "content": system}] if system else []
        if not self.prompts.options.fewshot_as_multiturn:
            return [*turns, {"role": "user", "content": self._example_text(doc_id) + shown}]
        for other in self._examples_for(doc_id):
            turns += [
                {"role": "user", "content": self.prompts.shown_text(other)},
                {"role": "assistant", "content": self.prompts.answer_text(other)},
            ]
        return [*turns, {"role": "user", "content": shown}]

    def turns(self, doc_id: int, doc: Doc | None = None, own: Sequence[Turn] | None = None) -> list[Turn]:
        """Return the complete messages of a document; ``own`` replaces the task's messages."""
        full = self.documents[doc_id] if doc is None else doc
        turns = [dict(turn) for turn in (self.prompts.own_turns(full) if own is None else own)]
        leading = [turn for turn in turns[:1] if turn["role"] == "system"]
        rest = turns[len(leading) :]
        if self._few is not None and self.prompts.options.fewshot_as_multiturn:
            examples: list[Turn] = []
            for doc in self._examples_for(doc_id, with_media=True):
                examples += [turn for turn in self.prompts.own_turns(doc) if turn["role"] != "system"]
                examples.append({"role": "assistant", "content": [_text(self.prompts.answer_text(doc))]})
            rest = [*examples, *rest]
        elif self._few is not None:
            rest = _in_front(self._example_parts(doc_id), rest)
        if self.prompts.config.description:
            description = self.prompts.description(self.documents.text_view(doc_id))
            rest = _with_description(description, rest)
        turns = [*leading, *rest]
        return self.with_system(turns) if self.prompts.options.system_instruction else turns

    def with_system(self, turns: Sequence[Turn]) -> list[Turn]:
        """Put the system instruction before the task's system message, or add it as a system message."""
        system = self.prompts.options.system_instruction
        if not system:
            return list(turns)
        if turns and turns[0]["role"] == "system":
            joined = _joined([_text(f"{system}\n\n")], turns[0]["content"])
            return [{**turns[0], "content": joined}, *turns[1:]]
        return [{"role": "system", "content": [_text(system)]}, *turns]

    def _example_parts(self, doc_id: int) -> list[Part]:
        config, parts = self.prompts.config, list[Part]()
        for doc in self._examples_for(doc_id, with_media=True):
            for turn in self.prompts.own_turns(doc):
                if turn["role"] != "system":
                    parts = _joined(parts, turn["content"])
            answer = config.answer_delimiter + self.prompts.answer_text(doc) + config.fewshot_delimiter
            parts = _joined(parts, [_text(answer)])
        return parts

    def _examples_for(self, doc_id: int, with_media: bool = False) -> list[Doc]:
        """Return the documents that are the examples for a document."""
        if self._few is None or self._examples is None:
            return []
        with_media = with_media or self.prompts.options.layout is not None
        read = self._examples.__getitem__ if with_media else self._examples.text_view
        return [read(number) for number in self._few.choose(doc_id, len(self._examples))]

    def _example_text(self, doc_id: int) -> str:
        config, made = self.prompts.config, ""
        for doc in self._examples_for(doc_id):
            question, answer = self.prompts.shown_text(doc), self.prompts.answer_text(doc)
            made += question + config.answer_delimiter + answer + config.fewshot_delimiter
        return made


def as_turns(value: Any, where: str) -> list[Turn]:
    """Convert the value of ``doc_to_messages`` to a list of mappings.

    Raises ``RenderError`` if it is neither a list of messages nor ``ChatMessages``.
    """
    if isinstance(value, ChatMessages):
        return dump(value)
    if not isinstance(value, list) or not all(isinstance(turn, Mapping) and "role" in turn for turn in value):
        raise RenderError(f"{where} must return a list of messages with role and content, not {value!r:.120}")
    for turn in value:
        if not isinstance(turn.get("content"), list):
            raise RenderError(
                f"{where}: the content of a message must be a list of parts, not {turn.get('content')!r:.80}"
            )
    return [dict(turn) for turn in value]


def dump(messages: ChatMessages) -> list[Turn]:
    """Convert messages to plain mappings; media objects are kept."""
    return [
        {
            "role": message.role,
            "content": [
                {key: value for key, value in vars(part).items() if value is not None} for part in message.content
            ],
        }
        for message in messages.messages
    ]


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _joined(first: Sequence[Part], second: Sequence[Part]) -> list[Part]:
    """Join two lists of parts; two texts that become neighbours become one part."""
    if first and second and first[-1].get("type") == "text" and second[0].get("type") == "text":
        return [*first[:-1], _text(first[-1]["text"] + second[0]["text"]), *second[1:]]
    return [*first, *second]


def _in_front(parts: Sequence[Part], turns: Sequence[Turn]) -> list[Turn]:
    """Put parts before the first user message."""
    if not parts:
        return list(turns)
    for number, turn in enumerate(turns):
        if turn["role"] == "user":
            return [*turns[:number], {**turn, "content": _joined(parts, turn["content"])}, *turns[number + 1 :]]
    return [{"role": "user", "content": list(parts)}, *turns]


def _with_description(description: str, turns: Sequence[Turn]) -> list[Turn]:
    """Put the description before the first text of the first user message; media before that text stay before it."""
    if not description:
        return list(turns)
    for number, turn in enumerate(turns):
        if turn["role"] != "user":
            continue
        parts = list(turn["content"])
        for place, part in enumerate(parts):
            if part.get("type") == "text":
                parts[place] = _text(description + part["text"])
                break
        else:
            parts.append(_text(description))
        return [*turns[:number], {**turn, "content": parts}, *turns[number + 1 :]]
    return [{"role": "user", "content": [_text(description)]}, *turns]
