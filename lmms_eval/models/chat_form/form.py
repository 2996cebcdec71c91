"""The contract of a form: the way in which the checkpoints of one family are asked through their ``chat``."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lmms_eval.errors import ModelError
from lmms_eval.models.chat_form.conversation import Conversation, Senses
from lmms_eval.models.hf.batching import RefusedError, is_lost_device, is_out_of_memory


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A model with a ``chat`` of its own."""

    model: Any
    tokenizer: Any
    config: Mapping[str, Any] = field(default_factory=dict)
    """Content of ``config.json``."""


class Prompt(abc.ABC):
    """A conversation as one form's ``chat`` takes it."""

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """Size in memory."""


class ChatForm(abc.ABC):
    """Renders prompts and calls ``chat``. Rendering is thread-safe.

    Args:
        checkpoint: the model with its tokenizer.
        extra: arguments of the form alone.

    Raises:
        ModelError: an argument does not fit the checkpoint.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    """Parameters by which the family's ``chat`` is known."""

    def __init__(self, checkpoint: Checkpoint, extra: Mapping[str, Any]) -> None:
        self.model, self.tokenizer, self.config = checkpoint.model, checkpoint.tokenizer, checkpoint.config
        self.extra = extra
        self.chat_parameters = chat_parameters(checkpoint.model)

    @property
    @abc.abstractmethod
    def senses(self) -> Senses:
        """The media that the checkpoint takes beside text."""

    @abc.abstractmethod
    def render(self, conversation: Conversation) -> Any:
        """Render a conversation as a :class:`Prompt`.

        Raises:
            RefusedError: this form cannot express it.
        """

    @abc.abstractmethod
    def ask(self, prompts: Sequence[Any], arguments: Mapping[str, Any]) -> list[Any]:
        """Ask for the answer to each prompt; several at a time only of one ``group``.

        Args:
            prompts: of ``render``.
            arguments: of transformers' ``generate``, ``do_sample`` and ``max_new_tokens`` among them.

        Raises:
            RefusedError: ``chat`` failed, or does not take an option.
        """

    def takes_option(self, name: str) -> bool:  # noqa: ARG002 - for forms that take all
        """Return whether ``chat`` takes an option of ``generate``."""
        return True

    def group(self, prompt: Any) -> Hashable | None:  # noqa: ARG002 - for forms that ask one by one
        """Key of the prompts that may be asked together; ``None`` where this one is asked alone."""
        return None


def chat_parameters(model: Any) -> Mapping[str, inspect.Parameter]:
    """Parameters of the checkpoint's ``chat``; none where it cannot be looked at."""
    try:
        return inspect.signature(model.chat).parameters
    except (TypeError, ValueError):
        return {}


def check_form(form: type[ChatForm], others: Sequence[type[ChatForm]], model: Any, pretrained: str) -> None:
    """Raises ``ModelError`` for a checkpoint whose ``chat`` has another form; says which, where that is known."""
    found = chat_parameters(model)
    if set(form.parameters) <= set(found):
        return
    right = next((other.name for other in others if set(other.parameters) <= set(found)), "")
    remedy = f"use --model {right}" if right else "a class of your own can ask it as a plugin"
    raise ModelError(
        f"{form.name}: chat of {type(model).__name__} ({pretrained}) takes {', '.join(found) or 'nothing'}, not "
        f"{', '.join(form.parameters)}: {remedy}"
    )


def call(chat: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """Call the checkpoint's own code.

    Raises:
        RefusedError: it raised something. Running out of memory and the loss of the device pass through.
    """
    import torch

    try:
        with torch.inference_mode():
            return chat(*values, **named)
    except Exception as error:  # the checkpoint's own code may raise anything
        if is_out_of_memory(error) or is_lost_device(error):
            raise
        raise RefusedError(f"chat raised {type(error).__name__}: {error}", "internal") from error
