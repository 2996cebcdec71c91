"""The interfaces of models: ``Model`` (streaming) and ``lmms``, the base class of class plugins."""

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
    """Merge ``k=v,k=v`` into further keyword arguments; ``None`` values of the latter are left out."""
    from lmms_eval.utils import simple_parse_args_string

    kept = {key: value for key, value in (additional or {}).items() if value is not None}
    return {**kept, **simple_parse_args_string(arg_string)}


class RequestStream(Protocol):
    """Source of the requests for a model, which are already prepared (``Model.prepare``)."""

    def take(self, max_n: int) -> list[Request]:
        """Return 1 to ``max_n`` requests; an empty list means that the stream has ended.

        Blocks only while no request is ready. More requests may become ready when open ones are answered (multi-round
        tasks), so never wait for a full batch.
        """

    def take_full(self, max_n: int) -> list[Request] | None:
        """Return the next ``max_n`` requests in the order of the source, for a model that forms batches.

        Waits only for preparation. The list is shorter, or empty, if more requests become ready only when open ones
        are answered, or if the budget of prepared media is full. An empty list does not mean that the stream has
        ended. ``None`` means that the run was stopped: requests that the model holds but has not begun need no answer.
        """

    async def take_async(self, max_n: int) -> list[Request]:
        """``take`` for asynchronous models."""

    def put_away(self, request: Request) -> None:
        """Free the payload of a taken request, which the model keeps in a file: its bytes no longer count.

        So the budget of prepared media does not block a model that collects many requests before it sends them.
        """


class Model(abc.ABC):
    """A function from a stream of requests to a stream of responses.

    Subclasses accept their ``model_args`` as keyword arguments of ``__init__``, and raise ``ModelError`` if the model
    cannot be built. ``respond`` yields exactly one response to every taken request, in any order.
    """

    kinds: frozenset[RequestKind] = frozenset({"generate_until"})
    """Kinds of requests that this model can answer; a task with another kind is refused before the run starts.

    ``generate_visual_cot`` means that answers may hold pictures (``Response.parts``). A task of that type is asked by
    two ``generate_until`` requests; the second one shows the picture from the first answer. Class plugins receive
    ``generate_visual_cot`` requests."""
    concurrency: int = 1
    """Maximum number of open requests (batch size of a local model, connections of an API client)."""
    collects: int = 0
    """Number of requests that it collects before it sends any (the size of a batch at a batch service)."""
    ordered: bool = False
    """Requests must arrive in the order of their documents and repeats: a single thread prepares them."""
    collective_forward: bool = False
    """A forward pass needs all processes (sharded weights), so they take their blocks in lockstep."""
    ignored_arguments: ClassVar[Mapping[str, str]] = {}
    """Patterns of ``model_args`` without effect on this back end, each with the reason. They are accepted with a
    warning, are not passed to ``__init__`` and do not change the identity of the run. Parameters of ``__init__`` are
    never ignored."""
    reads_documents: bool = False
    """Answers depend on the task's document, not only on the rendered messages (for the response cache)."""
    calls_tasks: bool = False
    """It calls the task's functions itself, after ``prepare``, in place of ``Request.build_messages``."""

    @classmethod
    def create_from_arg_string(cls: type[M], arg_string: str, additional_config: Mapping[str, Any] | None = None) -> M:
        """Build the model from ``k=v,k=v`` and those of the additional arguments that the class accepts.

        ``arg_string`` takes precedence; ``None`` values are left out. Raises ``ModelError`` if that fails.
        """
        given = _keywords(arg_string, additional_config)
        parameters = inspect.signature(cls).parameters
        named = _keywords(arg_string, None)
        return cls(**{name: value for name, value in given.items() if name in named or name in parameters})

    @classmethod
    def opens_media(cls, model_args: Mapping[str, Any]) -> bool:  # noqa: ARG003 - the default
        """Return whether a model with these arguments opens the media of documents; if not, they need not exist."""
        return True

    @classmethod
    def media_form(cls, model_args: Mapping[str, Any]) -> MediaForm:  # noqa: ARG003 - the default
        """Return the form of media that a model with these arguments receives, without building the model."""
        return MediaForm()

    @property
    def media_limits(self) -> frozenset[str]:
        """Names of the limits of ``Request.media`` that this back end applies; by default it applies none."""
        return frozenset()

    def prepare(self, request: Request) -> Request:
        """Prepare a request for this back end. Called in preparation threads, so it must be thread-safe.

        If ``respond`` is an asynchronous generator, requests that are prepared quickly are prepared in its thread.

        Returns ``request.with_payload(payload, nbytes)``. Raises ``MediaError`` for unusable media.
        """
        return request.with_payload(request.build_messages(), 0)

    @abc.abstractmethod
    def respond(self, stream: RequestStream) -> Iterator[Response] | AsyncIterator[Response]:
        """Answer requests until the stream has ended: a generator or an asynchronous generator."""

    def generation_options(self) -> TakenOptions | None:
        """Return the generation options that this back end accepts; ``None`` if it accepts any.

        A run whose ``--gen_kwargs`` hold another option ends before anything is asked.
        """
        return None

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        """Return what is sent with a request apart from its messages, in readable form for the results.

        This covers options, system prompt, chat template and limits of media. Empty if nothing is sent.
        """
        return {"options": dict(request.generation)}

    def identity(self) -> Mapping[str, Any]:
        """Return the facts that determine the answers (weights or URL, revision, dtype) for the run key."""
        return {}

    def describe(self) -> Mapping[str, Any]:
        """Return further facts for the results (throughput, precision, versions, ...)."""
        return {}

    def attach_tasks(self, tasks: Sequence[Task]) -> None:
        """Receive the tasks of the run; called once before ``respond``."""

    def attach_folder(self, folder: Path) -> None:
        """Receive the path of a folder for this model in the run's folder; it need not exist yet.

        Called once before ``respond``, for the model under test only. Files in it are still there when the run is
        resumed, even after a kill.
        """

    def close(self) -> None:
        """Free all resources; the model is not used afterwards."""


class CacheHook:
    """Receives partial results of a plugin. The engine replaces it by a hook that makes them durable."""

    def add_partial(self, method: str, arguments: Any, result: Any) -> None:
        """Receive one answer.

        Args:
            method: name of the request type.
            arguments: the arguments of the request, or only its context.
            result: the answer.
        """


class lmms(abc.ABC):
    """Base class of class plugins; see ``docs/model_guide.md`` for the newer ``Model``."""

    is_simple: bool = True

    def __init__(self) -> None:
        self._rank = 0
        self._world_size = 1
        self.cache_hook: Any = CacheHook()
        self.task_dict: dict[str, Any] = {}

    @abc.abstractmethod
    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Return the loss and the greedy flag of each request's continuation."""

    @abc.abstractmethod
    def generate_until(self, requests: list[Instance]) -> list[Any]:
        """Return one answer per request, in their order."""

    @abc.abstractmethod
    def generate_until_multi_round(self, requests: list[Instance]) -> list[Any]:
        """Return for each request the list of the answers of all rounds."""

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Return the log-likelihood of each request's whole text, its only argument; greater is likelier.

        Raises:
            NotImplementedError: the plugin does not define it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} gives no likelihoods of whole texts: it does not define loglikelihood_rolling, as "
            "the back ends hf, vllm and openai (api=completions) do"
        )

    def generate_visual_cot(self, requests: list[Instance]) -> list[str]:
        """Return the text of each request's answer, which the model finds by drawing a picture first.

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
        """Build from ``k=v,k=v`` and keyword arguments, without ``None`` values; ``arg_string`` takes precedence."""
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
        """Do nothing; plugins may override it. The model stays usable."""

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
