"""A judge as the family's task files use it: a client that ``process_results`` calls itself.

It runs on the same client, retries and concurrency as every model. New tasks name ``doc_to_judge`` instead
(``docs/judges.md``): the engine then asks the judge while the model generates.
"""

from __future__ import annotations

import abc
import asyncio
import base64
import binascii
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, field

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import UnknownNameError
from lmms_eval.judges import prompts as replies
from lmms_eval.judges.driver import ask
from lmms_eval.judges.options import DEFAULT_JUDGE_MODEL, JudgeOptions
from lmms_eval.judges.prompts import bounded_picture, fill_template
from lmms_eval.judges.providers import Judge, open_judge

LONGEST_BACKOFF_S = 1.0
LOCAL_URL = "http://localhost:8000/v1"


def default_model() -> str:
    """``MODEL_VERSION``, else the default judge."""
    return os.environ.get("MODEL_VERSION") or DEFAULT_JUDGE_MODEL


class ServerConfig(Struct):
    """Settings of a judge server. Times in seconds."""

    model_name: str = field(default_factory=default_model)
    temperature: float = 0.0
    max_tokens: int = 1024
    top_p: float | None = None
    timeout: float = 60
    num_retries: int = 5
    retry_delay: float = 10
    """The longest first pause before another attempt; pauses then grow, and ``Retry-After`` is honoured."""
    max_concurrent: int = 10
    system_prompt: str | None = None
    response_format: str | Mapping[str, Any] | None = None
    """``json`` asks for a JSON object."""
    judge_type: str = "general"
    output_format: str = "0/1"
    score_range: tuple[float, float] = (1, 10)
    evaluation_criteria: Mapping[str, Any] | None = None


class Request(Struct):
    """A question: ``messages`` in the form of chat completions, or the parts of a judge's prompt."""

    messages: Sequence[Mapping[str, Any]] = ()
    images: Sequence[Any] | None = None
    """PIL images, paths, or base64 texts; they follow the text of the last user message."""
    config: ServerConfig | None = None
    """Configuration in place of the server's own."""
    question: str | None = None
    answer: str | None = None
    prediction: str | None = None
    context: str | None = None
    options: Any = None
    response1: str | None = None
    response2: str | None = None
    custom_prompt: str | None = None
    prompt_kwargs: Mapping[str, Any] = field(default_factory=dict)


class Response(Struct):
    """A reply."""

    content: str
    model_used: str
    usage: Mapping[str, Any] | None = None
    raw_response: Any = None
    parsed_result: Any = None
    success: bool = True
    error_message: str | None = None


BINARY = (
    "You check answers. Decide whether the given answer to the question means the same as the reference answer.\n\n"
    "Question: {question}\nReference answer: {answer}\nGiven answer: {prediction}\n\n{wanted}"
)
WANTED = {
    "0/1": "Reply with the single character 1 if it does, 0 if it does not.",
    "yes/no": "Reply with the single word yes if it does, no if it does not.",
}
COMPARATIVE = (
    "You compare two replies to the same question. Rate each of them from {low} to {high}.\n\n"
    "{context}Question: {question}\n\nFirst reply: {response1}\n\nSecond reply: {response2}\n\n"
    "Write the two numbers, first reply first, on the first line, separated by a blank. Explain below."
)
RUBRIC = (
    "You rate an answer by a rubric.\n\nQuestion: {question}\nAnswer: {prediction}\nRubric (JSON): {rubric}\n\n"
    "Reply with one JSON object that gives a number for each of these keys: {keys}."
)


def binary_prompt(
    triple: tuple[str | None, str | None, str | None],
    output_format: str,
    custom: str | None,
    others: Mapping[str, Any],
) -> str:
    """Fill a custom prompt, or the built-in one, with question, answer and prediction, and ``others`` by name."""
    question, answer, prediction = triple
    values = {"question": question, "answer": answer, "pred": prediction, "prediction": prediction, **others}
    if custom:
        return fill_template(custom, values, "the custom judge prompt")
    wanted = WANTED.get(output_format, WANTED["yes/no"])
    return fill_template(BINARY, {**values, "wanted": wanted}, "the judge prompt")


class ServerInterface(abc.ABC):
    """Makes judgements; a provider implements how a batch of requests is answered.

    A judge that gives no reply raises ``NotEvaluated``: inside ``process_results`` the sample is then *unscored*.
    """

    def __init__(self, config: ServerConfig | None = None) -> None:
        self.config = config or ServerConfig()

    @abc.abstractmethod
    def evaluate_batch(self, requests: Sequence[Request]) -> list[Response]:
        """Replies in order, up to ``max_concurrent`` at a time."""

    def evaluate(self, request: Request) -> Response:
        return self.evaluate_batch([request])[0]

    def evaluate_binary(
        self,
        question: str,
        answer: str,
        prediction: str,
        output_format: str = "0/1",
        custom_prompt: str | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """``result`` is 1 or 0 (``0/1``) or a boolean; custom prompts are filled by ``str.format`` rules."""
        prompt = binary_prompt((question, answer, prediction), output_format, custom_prompt, kwargs)
        response = self.evaluate(_text_request(prompt))
        return _shown(response, prompt, "result", replies.parse_binary(response.content, output_format))

    def evaluate_comparative(  # noqa: PLR0913 - the parameters of the family's interface
        self,
        question: str,
        response1: str,
        response2: str,
        context: str | None = None,
        score_range: tuple[float, float] = (1, 10),
        custom_prompt: str | None = None,
        images: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """``scores`` are the two ratings, ``(-1, -1)`` if they cannot be read."""
        values = {"question": question, "response1": response1, "response2": response2, "context": context, **kwargs}
        values |= {"low": score_range[0], "high": score_range[1]}
        if custom_prompt:
            prompt = fill_template(custom_prompt, {**values, "score_range": score_range}, "the custom judge prompt")
        else:
            context = values["context"]
            values["context"] = f"Context: {context}\n\n" if context else ""
            prompt = fill_template(COMPARATIVE, values, "the judge prompt")
        response = self.evaluate(_text_request(prompt, images))
        return _shown(response, prompt, "scores", replies.parse_comparative(response.content))

    def evaluate_with_rubric(
        self, question: str, prediction: str, rubric: Mapping[str, Any], **_kwargs: Any
    ) -> dict[str, Any]:
        """``scores`` is the judge's JSON object, empty if it cannot be read."""
        values = {
            "question": question,
            "prediction": prediction,
            "rubric": json.dumps(rubric, ensure_ascii=False, default=str),
            "keys": ", ".join(map(str, rubric)),
        }
        prompt = fill_template(RUBRIC, values, "the judge prompt")
        response = self.evaluate(_text_request(prompt))
        return _shown(response, prompt, "scores", replies.parse_json(response.content))

    async def evaluate_async(self, request: Request) -> Response:
        return await asyncio.to_thread(self.evaluate, request)

    async def evaluate_binary_async(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self.evaluate_binary, *args, **kwargs)

    async def evaluate_comparative_async(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self.evaluate_comparative, *args, **kwargs)

    async def evaluate_with_rubric_async(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self.evaluate_with_rubric, *args, **kwargs)

    async def evaluate_batch_async(self, requests: Sequence[Request]) -> list[Response]:
        return await asyncio.to_thread(self.evaluate_batch, requests)

    async def evaluate_binary_batch_async(
        self,
        questions: Sequence[str],
        answers: Sequence[str],
        predictions: Sequence[str],
        output_format: str = "0/1",
        custom_prompt: str | None = None,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """``evaluate_binary`` of each triple, all in one batch."""
        triples = zip(questions, answers, predictions, strict=True)
        made = [binary_prompt(triple, output_format, custom_prompt, kwargs) for triple in triples]
        responses = await self.evaluate_batch_async([_text_request(prompt) for prompt in made])
        return [
            _shown(response, prompt, "result", replies.parse_binary(response.content, output_format))
            for response, prompt in zip(responses, made, strict=True)
        ]


class JudgeServer(ServerInterface):
    """A judge of ``lmms_eval.judges``. The limits of ``config`` are added to the model's options."""

    def __init__(self, config: ServerConfig, options: JudgeOptions) -> None:
        super().__init__(config)
        limits = {
            "num_concurrent": config.max_concurrent,
            "timeout": config.timeout,
            "max_retries": config.num_retries,
            "retry_backoff_s": min(float(config.retry_delay), LONGEST_BACKOFF_S),
        }
        self._options = JudgeOptions(options.model, options.base_url, {**limits, **options.arguments})
        self._judge: Judge | None = None

    def evaluate_batch(self, requests: Sequence[Request]) -> list[Response]:
        if self._judge is None:
            self._judge = open_judge(self._options)
        questions = [self._question(request, number) for number, request in enumerate(requests)]
        responses = []
        for verdict in ask(self._judge, questions):
            if verdict.text is None:
                raise NotEvaluated(f"the judge {verdict.model} gave no reply: {verdict.error}")
            usage = None if verdict.usage is None else verdict.usage.to_dict()
            responses.append(Response(verdict.text, verdict.model, usage=usage, raw_response=verdict.text))
        return responses

    def _question(self, request: Request, number: int) -> JudgeQuestion:
        config = request.config or self.config
        messages = _messages(request, config)
        generation: dict[str, Any] = {"temperature": config.temperature, "max_new_tokens": config.max_tokens}
        if config.temperature:
            generation["do_sample"] = True
        if config.top_p is not None:
            generation["top_p"] = config.top_p
        if config.response_format:
            wanted = config.response_format
            generation["response_format"] = {"type": "json_object"} if isinstance(wanted, str) else dict(wanted)
        return JudgeQuestion(str(number), lambda: messages, lambda text: bool(text.strip()), generation)


class DummyServer(ServerInterface):
    """Answers every request with the same text, without a server."""

    CONTENT = "dummy"

    def evaluate_batch(self, requests: Sequence[Request]) -> list[Response]:
        return [Response(self.CONTENT, self.config.model_name) for _ in requests]


def _text_request(prompt: str, images: Sequence[Any] | None = None) -> Request:
    return Request(messages=[{"role": "user", "content": prompt}], images=images)


def _messages(request: Request, config: ServerConfig) -> ChatMessages:
    """Return the request's messages, with its pictures after the text of the last user turn."""
    given = list(request.messages)
    if not given:
        triple = (request.question, request.answer, request.prediction)
        prompt = binary_prompt(triple, config.output_format, request.custom_prompt, request.prompt_kwargs)
        given = [{"role": "user", "content": prompt}]
    made = [{"role": message["role"], "content": _parts(message["content"])} for message in given]
    if config.system_prompt and made[0]["role"] != "system":
        made.insert(0, {"role": "system", "content": _parts(config.system_prompt)})
    pictures = [{"type": "image", "url": _picture(image)} for image in request.images or ()]
    if pictures:
        last = max((n for n, message in enumerate(made) if message["role"] == "user"), default=len(made) - 1)
        made[last]["content"] = [*made[last]["content"], *pictures]
    return ChatMessages.model_validate({"messages": made})


def _parts(content: Any) -> list[dict[str, Any]]:
    """Convert content of chat completions to message parts."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    made = []
    for part in content:
        if part["type"] == "image_url":
            address = part["image_url"]
            made.append({"type": "image", "url": address["url"] if isinstance(address, Mapping) else address})
        else:
            made.append(dict(part))
    return made


def _picture(image: Any) -> Any:
    """Convert a PIL image, a path, or a base64 text, which is longer than any path and has other characters."""
    if isinstance(image, bytes):
        image = image.decode("ascii") if image[:4].isascii() and image[:1].isalnum() else image
    if isinstance(image, str) and len(image) > 256 and not image.startswith(("data:", "http")):
        try:
            return base64.b64decode(image, validate=True)
        except (binascii.Error, ValueError):
            return image
    return image if isinstance(image, str | bytes) else bounded_picture(image, None)


def _shown(response: Response, prompt: str, key: str, value: Any) -> dict[str, Any]:
    return {
        key: value,
        "raw_response": response.content,
        "model": response.model_used,
        "prompt": prompt,
        "success": response.success,
    }


def _server(config: ServerConfig, provider: str, url: str | None = None, **arguments: str | None) -> ServerInterface:
    given = {name: value for name, value in arguments.items() if value}
    return JudgeServer(config, JudgeOptions(f"{provider}{config.model_name}", url, given))


def _openai(config: ServerConfig) -> ServerInterface:
    environ = os.environ
    url = environ.get("OPENAI_API_URL") or environ.get("OPENAI_API_BASE")
    return _server(config, "openai:", url, api_key=environ.get("OPENAI_API_KEY"))


def _azure(config: ServerConfig) -> ServerInterface:
    key, version = os.environ.get("AZURE_API_KEY"), os.environ.get("API_VERSION")
    return _server(config, "azure:", os.environ.get("AZURE_ENDPOINT"), api_key=key, api_version=version)


class ProviderFactory:
    """Builds providers by name from a ``ServerConfig``."""

    _providers: ClassVar[dict[str, Callable[[ServerConfig], ServerInterface]]] = {
        "openai": _openai,
        "async_openai": _openai,
        "azure": _azure,
        "async_azure": _azure,
        "bedrock": lambda config: _server(config, "litellm:bedrock/"),
        "local": lambda config: _server(
            config, "openai:", os.environ.get("LLM_JUDGE_URL") or LOCAL_URL, api_key="EMPTY"
        ),
        "dummy": DummyServer,
    }

    @classmethod
    def create_provider(cls, api_type: str | None = None, config: ServerConfig | None = None) -> ServerInterface:
        """Create the server of that name, by default the one that ``API_TYPE`` names, else ``openai``.

        Raises ``UnknownNameError`` if no provider has this name.
        """
        name = (api_type or os.environ.get("API_TYPE") or "openai").lower()
        if name not in cls._providers:
            raise UnknownNameError("judge provider", name, cls._providers)
        return cls._providers[name](config or ServerConfig())

    @classmethod
    def register_provider(cls, name: str, provider: Callable[[ServerConfig], ServerInterface]) -> None:
        """Register a class (or function) that takes a ``ServerConfig`` under a name."""
        cls._providers[name.lower()] = provider


def get_server(server_name: str | None = None, config: ServerConfig | None = None) -> ServerInterface:
    """Call ``ProviderFactory.create_provider``."""
    return ProviderFactory.create_provider(server_name, config)
