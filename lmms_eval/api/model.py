"""The contract of models: ``Model`` (streaming) and ``lmms``, the class that the family's plugins subclass."""

from __future__ import annotations

import abc
import inspect
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from lmms_eval.api.generation import MediaForm, TakenOptions

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance
    from lmms_eval.api.request import Request, RequestKind, Response
    from lmms_eval.api.task import Task

T = TypeVar("T", bound="lmms")
M = TypeVar("M", bound="Model")


def _keywords(arg_string: str, additional: Mapping[str, Any] | None) -> dict[str, Any]:
    """Read ``k=v,k=v`` over further keyword arguments; those that are ``None`` are left out."""
    from lmms_eval.utils import simple_parse_args_string

    kept = {key: value for key, value in (additional or {}).items() if value is not None}
    return {**kept, **simple_parse_args_string(arg_string)}


class RequestStream(Protocol):
    """Source of a model's requests. Requests arrive prepared (``Model.prepare`` has run)."""

    def take(self, max_n: int) -> list[Request]:
        """1 ... ``max_n`` ready requests. Blocks only while none is ready; an empty list means that no more will come.

        More requests may become ready when open ones are answered (multi-round tasks), so never wait for a full batch.
        """

    def take_full(self, max_n: int) -> list[Request] | None:
        """The next ``max_n`` requests in the order of the source, for a model that forms batches.

        Waits for preparation alone: there are fewer, or none, where more become ready only when open ones are
        answered, or where the budget of prepared media is full. An empty list does not say that the stream has
        ended. ``None``: the asking was stopped; what the model holds and has not begun needs no answer.
        """

    async def take_async(self, max_n: int) -> list[Request]:
        """``take`` for asynchronous models."""

    def put_away(self, request: Request) -> None:
        """Note that the model keeps a taken request's payload in a file: it is let go, and its bytes no longer count.

        A model that collects many requests before it asks is thus not held up by the budget of prepared media.
        """


class Model(abc.ABC):
    """A function from a stream of requests to a stream of responses.

    Subclasses take their ``model_args`` as keyword arguments of ``__init__`` and raise ``ModelError`` for what
    cannot be built. ``respond`` yields every taken request's response exactly once, in any order.
    """

    kinds: frozenset[RequestKind] = frozenset({"generate_until"})
    """Request kinds that this model can answer; anything else is refused before the run starts.

    ``generate_visual_cot`` says that answers may hold pictures (``Response.parts``): a task of that type is put as two
    ``generate_until`` requests, the second with the picture that the first was answered with. Class plugins get the
    requests themselves."""
    concurrency: int = 1
    """Requests that are open at a time at most (batch size of a local model, ceiling of an API client)."""
    ordered: bool = False
    """Requests must arrive in the order of their documents and repeats: they are then prepared by one thread."""
    collective_forward: bool = False
    """Forward passes of all processes meet in collectives (sharded weights): blocks are taken in lockstep."""
    ignored_arguments: ClassVar[Mapping[str, str]] = {}
    """Patterns of ``model_args`` that say nothing to this back end, each with the reason: they are accepted with a
    warning, do not reach ``__init__``, and a run with them is the same run as one without. Names that ``__init__``
    has are not concerned."""
    reads_documents: bool = False
    """Answers depend on the task's document, not on the rendered messages alone (the response cache must know)."""

    @classmethod
    def create_from_arg_string(cls: type[M], arg_string: str, additional_config: Mapping[str, Any] | None = None) -> M:
        """Build from ``k=v,k=v`` and those of the further arguments that the class takes; ``arg_string`` wins.

        ``None`` values are left out. Raises ``ModelError`` for what cannot be built.
        """
        given = _keywords(arg_string, additional_config)
        parameters = inspect.signature(cls).parameters
        named = _keywords(arg_string, None)
        return cls(**{name: value for name, value in given.items() if name in named or name in parameters})

    @classmethod
    def opens_media(cls, model_args: Mapping[str, Any]) -> bool:  # noqa: ARG003 - the default
        """Tell whether a model of these arguments opens what documents show; else their files need not be there."""
        return True

    @classmethod
    def media_form(cls, model_args: Mapping[str, Any]) -> MediaForm:  # noqa: ARG003 - the default
        """Tell how a model of these arguments takes media, without building it."""
        return MediaForm()

    def prepare(self, request: Request) -> Request:
        """Turn a request into what this back end sends. Runs in preparation threads: must be thread-safe.

        Returns ``request.with_payload(payload, nbytes)``. Errors of media are ``MediaError``.
        """
        return request.with_payload(request.build_messages(), 0)

    @abc.abstractmethod
    def respond(self, stream: RequestStream) -> Iterator[Response] | AsyncIterator[Response]:
        """Answer requests until the stream is closed. A generator, or an asynchronous generator."""

    def generation_options(self) -> TakenOptions | None:
        """Return which generation options this back end takes; ``None``: it gets all of them and says nothing.

        A run whose ``--gen_kwargs`` hold another one ends before anything is asked.
        """
        return None

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        """Return what is sent with a request apart from its messages, in readable form, for the results.

        Options as they are sent, system prompt, chat template, limits of media. Empty if nothing is sent.
        """
        return {"options": dict(request.generation)}

    def identity(self) -> Mapping[str, Any]:
        """Facts that fix this model's answers (weights' files or URL, revision, dtype): part of the run key."""
        return {}

    def describe(self) -> Mapping[str, Any]:
        """Facts for the results beside the model's arguments (throughput, precision, versions, ...)."""
        return {}

    def attach_tasks(self, tasks: Sequence[Task]) -> None:
        """Called once before ``respond``: the tasks of this run."""

    def attach_folder(self, folder: Path) -> None:
        """Called once before ``respond`` of the model under test: a folder of its own in the run's, not made yet.

        What a back end writes there is found again by a start that continues the run, after a kill too.
        """

    def close(self) -> None:
        """Free what the model holds; it is not used afterwards."""


class CacheHook:
    """Takes partial results of a plugin as they come; the engine replaces it by one that makes them durable."""

    def add_partial(self, method: str, arguments: Any, result: Any) -> None:
        """``arguments``: the request's arguments, or just its context; ``result``: its answer."""


class lmms(abc.ABC):
    """Base class of the family's model plugins; see ``docs/model_guide.md`` for the newer ``Model``."""

    is_simple: bool = True

    def __init__(self) -> None:
        self._rank = 0
        self._world_size = 1
        self.cache_hook: Any = CacheHook()
        self.task_dict: dict[str, Any] = {}

    @abc.abstractmethod
    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Loss and greedy flag of each request's continuation."""

    @abc.abstractmethod
    def generate_until(self, requests: list[Instance]) -> list[Any]:
        """An answer for each request, in their order."""

    @abc.abstractmethod
    def generate_until_multi_round(self, requests: list[Instance]) -> list[Any]:
        """The list of all rounds' answers for each request."""

    def generate_visual_cot(self, requests: list[Instance]) -> list[str]:
        """Return the text of each request's answer, which was found by drawing a picture for the question first.

        Raises:
            NotImplementedError: the plugin does not define it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} draws no pictures: generate_visual_cot is for models that generate pictures and "
            "texts, such as bagel_unig2u, illume_plus, ovis_u1 and qwen_image_edit of the family, or the back ends "
            "openai and gemini with such a checkpoint"
        )

    @classmethod
    def create_from_arg_string(cls: type[T], arg_string: str, additional_config: Mapping[str, Any] | None = None) -> T:
        """Build from ``k=v,k=v`` and further keyword arguments; ``arg_string`` wins, ``None`` values are left out."""
        return cls(**_keywords(arg_string, additional_config))

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def world_size(self) -> int:
        return self._world_size

    def set_cache_hook(self, cache_hook: Any) -> None:
        self.cache_hook = cache_hook

    def clean(self) -> None:
        """Kept for plugins that override it; the model object stays usable."""

    @staticmethod
    def _resolve_system_prompt(value: str | None) -> str | None:
        if value and len(value) < 4096 and Path(value).is_file():
            return Path(value).read_text(encoding="utf-8")
        return value

    @staticmethod
    def _apply_system_prompt(messages: list[dict[str, Any]], prompt: str | None) -> list[dict[str, Any]]:
        """Insert or replace a leading system message."""
        if not prompt:
            return messages
        as_parts = bool(messages) and all(isinstance(message["content"], list) for message in messages)
        content: Any = [{"type": "text", "text": prompt}] if as_parts else prompt
        rest = messages[1:] if messages and messages[0]["role"] == "system" else messages
        return [{"role": "system", "content": content}, *rest]
