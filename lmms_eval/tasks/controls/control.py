"""A control of a task: a task that changes the prompts of the same documents and scores in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.messages import ChatMessages, visual_to_content
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer, Exchange, ScoredDoc, Task
from lmms_eval.config.rules import AGAIN, control_name
from lmms_eval.tasks.controls.changes import BlankMedia, Change, ListedChoices, NoMedia, OtherMedia, Part, media_of
from lmms_eval.tasks.yaml.prompts import as_turns, dump
from lmms_eval.utils.prompt_variants import PromptVariant

Doc = Mapping[str, Any]


class ChangedMessages(Struct, frozen=True):
    """Builds the messages of a request with the change of a control."""

    request: Request
    """The request of the original task."""
    change: Change

    def __call__(self) -> ChatMessages:
        own = self.request.build_messages()
        return ChatMessages.model_validate({"messages": self.change.turns(dump(own)), "is_plain": own.is_plain})


@dataclass(frozen=True, slots=True)
class ChangedExchange(Exchange):
    """The task's exchange with each request changed."""

    own: Exchange
    changed: Callable[[Request], Request]

    def open(self) -> Sequence[Request]:
        return [self.changed(request) for request in self.own.open()]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        return [self.changed(request) for request in self.own.advance(responses)]

    def observation(self) -> str:
        return self.own.observation()

    def answer(self) -> Answer:
        return self.own.answer()


class ControlTask(Task):
    """A task around a task. It takes all other attributes from that one (``target``, ``document``, ``options``, ...).

    Args:
        task: scores the answers.
        control: name of the control.
        asked: the task that makes the prompts, if it is another one: the same task without its question.
        donors: for each document the one whose media replace its own (``shuffled-media``).
    """

    report = None  # a benchmark's own report is only about its original questions

    def __init__(
        self, task: Task, control: str, asked: Task | None = None, donors: Mapping[int, int] | None = None
    ) -> None:
        self.task, self.control, self.control_of = task, control, task.name
        self.asked, self._donors = asked or task, donors or {}
        self.name, self.alias = control_name(task.name, control), control
        for name in (
            "version", "output_type", "repeats", "num_fewshot", "metrics", "pipelines", "scoring", "cluster_key",
            "score_key", "split", "sample", "is_judged",
        ):  # fmt: skip
            setattr(self, name, getattr(task, name))

    def __getattr__(self, name: str) -> Any:
        if name == "task":  # not set yet
            raise AttributeError(name)
        return getattr(self.task, name)

    def load(self) -> None:
        self.task.load()
        self.asked.load()

    @property
    def data_files(self) -> Sequence[str]:
        return self.task.data_files

    def __len__(self) -> int:
        return len(self.task)

    def exchange(self, doc_id: int, repeat: int) -> Exchange:
        change = self._change(doc_id, self._messages_media)
        return ChangedExchange(self.asked.exchange(doc_id, repeat), lambda request: self._changed(request, change))

    def costs(self, doc_ids: Sequence[int]) -> Sequence[float]:
        return self.task.costs(doc_ids)

    def strata(self, doc_ids: Sequence[int]) -> Sequence[str] | None:
        return self.task.strata(doc_ids)

    def judge_questions(self, doc_id: int, answers: Sequence[Answer]) -> Sequence[JudgeQuestion]:
        return self.task.judge_questions(doc_id, answers)

    def score(self, doc_id: int, answers: Sequence[Answer], verdicts: Sequence[Verdict] = ()) -> ScoredDoc:
        return self.task.score(doc_id, answers, verdicts)

    def describe(self) -> dict[str, Any]:
        return {**self.task.describe(), "task": self.name, "control": {"of": self.control_of, "name": self.control}}

    def fingerprint(self) -> Mapping[str, str]:
        return {**self.task.fingerprint(), "control": self.control}

    def spec(self) -> Mapping[str, Any]:
        return {**self.task.spec(), "control": self.control}

    def carried_document(self, doc_id: int) -> Mapping[str, Any] | None:
        return self.task.carried_document(doc_id)

    def take_document(self, doc_id: int, document: Mapping[str, Any] | None) -> None:
        self.task.take_document(doc_id, document)

    def dataset_dict(self) -> Any:
        """The data without media columns, so that a plugin that opens media itself fails instead of showing them."""
        hidden = set(self._documents.media_columns)
        found = self.asked.dataset_dict()
        return type(found)(
            {name: part.remove_columns(sorted(hidden & {*part.column_names})) for name, part in found.items()}
        )

    def legacy_arguments(self, request: Request, chat: bool) -> tuple[Any, ...]:
        """Return the task's arguments for a plugin, with its functions changed and bound to the document."""
        made, doc_id = request.build_messages, request.doc_id
        own = made.request if isinstance(made, ChangedMessages) else request
        found: tuple[Any, ...] = self.asked.legacy_arguments(own, chat)  # type: ignore[attr-defined]  # checked by ``models``
        if request.kind == "loglikelihood_rolling":  # a text without media
            return found
        given, split = [request.context, *found[1:-2]], found[-1]
        change = self._change(doc_id, self._messages_media if chat else self._visuals_media)
        if not request.is_likelihood and chat:
            given[1] = self._bound(given[1], doc_id, lambda made: _changed_turns(change, made))
            return (*given, self.name, split)
        given[2] = self._bound(given[2], doc_id, lambda made: change.visuals(made or ()))
        if callable(given[3]):  # rounds that the plugin runs itself
            given[3] = self._bound(given[3], doc_id, lambda made: _changed_round(change, made))
        return (*given, self.name, split)

    def legacy_metadata(self, request: Request) -> Mapping[str, Any]:
        """``Instance.metadata`` under the control's name."""
        own: Mapping[str, Any] = self.asked.legacy_metadata(request)  # type: ignore[attr-defined]  # offered by models
        return {**own, "task": self.name}

    def _change(self, doc_id: int, media: Callable[[int], Sequence[Part]]) -> Change:
        if self.control == "blank-media":
            return BlankMedia()
        if self.control == "shuffled-media":
            return OtherMedia(lambda: map(media, self._givers(doc_id)))
        if self.control == "choices-only" and self.asked is self.task:
            return ListedChoices(lambda: self.task.choice_texts(doc_id))  # type: ignore[attr-defined]
        return NoMedia()

    def _givers(self, doc_id: int) -> Iterator[int]:
        """Yield the document's donor, then the donor's donor, until all have been visited."""
        donor = self._donors[doc_id]
        while donor != doc_id:
            yield donor
            donor = self._donors[donor]

    def _changed(self, request: Request, change: Change) -> Request:
        return replace(
            request,
            id=self.name + request.id.removeprefix(self.asked.name),
            task=self,
            context=change.text(request.context),
            build_messages=ChangedMessages(request, change),
        )

    def _messages_media(self, doc_id: int) -> Sequence[Part]:
        return media_of(dump(self.asked.exchange(doc_id, 0).open()[0].build_messages()))

    def _visuals_media(self, doc_id: int) -> Sequence[Part]:
        request = self.asked.exchange(doc_id, 0).open()[0]
        show = self.asked.legacy_arguments(request, False)[2]  # type: ignore[attr-defined]
        return [visual_to_content(visual) for visual in show(self._documents[doc_id]) or ()]

    @property
    def _documents(self) -> Any:
        return self.asked.documents  # type: ignore[attr-defined]  # of a task from YAML

    def _bound(self, function: Callable[..., Any], doc_id: int, change: Callable[[Any], Any]) -> Callable[..., Any]:
        """Apply a function to the document itself, whichever copy of it the plugin passes."""

        def changed(_doc: Any, **rounds: Any) -> Any:
            return change(function(self._documents[doc_id], **rounds))

        return changed


class RenamedTask(ControlTask):
    """A control that sends the requests of its task as they are. Only their ids differ."""

    def exchange(self, doc_id: int, repeat: int) -> Exchange:
        return ChangedExchange(self.task.exchange(doc_id, repeat), self._renamed)

    def dataset_dict(self) -> Any:
        return self.task.dataset_dict()

    def legacy_arguments(self, request: Request, chat: bool) -> tuple[Any, ...]:
        """Return the task's arguments for a plugin under the control's name."""
        found: tuple[Any, ...] = self.task.legacy_arguments(request, chat)  # type: ignore[attr-defined]  # as above
        return (*found[:-2], self.name, found[-1])

    def _renamed(self, request: Request) -> Request:
        return replace(request, id=self.name + request.id.removeprefix(self.task.name), task=self)


class AskedAgain(RenamedTask):
    """A task that sends the requests of another one a second time (``--repeat_share``)."""

    asks_again = True

    def __init__(self, task: Task) -> None:
        super().__init__(task, AGAIN)


class VariantTask(RenamedTask):
    """The task with a variant of its prompt (``--prompt_variants``).

    Args:
        task: the same task, built with the options of the variant. It makes the prompts and scores the answers.
        variant: the changes of the prompt.
    """

    variant: PromptVariant

    def __init__(self, task: Task, variant: PromptVariant) -> None:
        super().__init__(task, variant.name)
        self.variant = variant

    def describe(self) -> dict[str, Any]:
        found = super().describe()
        return {**found, "control": {**found["control"], "changes": self.variant.changes}}

    def fingerprint(self) -> Mapping[str, str]:
        return {**super().fingerprint(), "changes": self.variant.digest}


def _changed_turns(change: Change, made: Any) -> Any:
    """Change messages, or for a later round ``(messages, stop, outputs, info)``."""
    if isinstance(made, tuple):
        return (None if made[0] is None else change.turns(made[0]), *made[1:])
    return change.turns(as_turns(made, "doc_to_messages"))


def _changed_round(change: Change, made: Any) -> Any:
    """Change a text, or for a later round ``(visuals, text, stop, outputs, info)``."""
    if not isinstance(made, tuple):
        return change.text(str(made))
    return (change.visuals(made[0] or ()), None if made[1] is None else change.text(str(made[1])), *made[2:])
