"""A judge as the family's task files use it: over the same client, retries and concurrency as every model."""

from __future__ import annotations

import abc
import asyncio
import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.compat.llm_judge import prompts
from lmms_eval.compat.llm_judge.protocol import Request, Response, ServerConfig
from lmms_eval.judges import replies
from lmms_eval.judges.driver import ask
from lmms_eval.judges.options import JudgeOptions
from lmms_eval.judges.prompts import bounded_picture
from lmms_eval.judges.providers import Judge, open_judge

LONGEST_BACKOFF_S = 1.0


class ServerInterface(abc.ABC):
    """The judgements; a provider says how a batch of requests is answered.

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
        values = {"question": question, "answer": answer, "pred": prediction, "prediction": prediction, **kwargs}
        prompt = prompts.binary(values, output_format, custom_prompt)
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
        prompt = prompts.comparative(values, score_range, custom_prompt)
        response = self.evaluate(_text_request(prompt, images))
        return _shown(response, prompt, "scores", replies.parse_comparative(response.content))

    def evaluate_with_rubric(
        self, question: str, prediction: str, rubric: Mapping[str, Any], **_kwargs: Any
    ) -> dict[str, Any]:
        """``scores`` is the judge's JSON object, empty if it cannot be read."""
        prompt = prompts.rubric(question, prediction, rubric)
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
        made = []
        for question, answer, prediction in zip(questions, answers, predictions, strict=True):
            values = {"question": question, "answer": answer, "pred": prediction, "prediction": prediction, **kwargs}
            made.append(prompts.binary(values, output_format, custom_prompt))
        responses = await self.evaluate_batch_async([_text_request(prompt) for prompt in made])
        return [
            _shown(response, prompt, "result", replies.parse_binary(response.content, output_format))
            for response, prompt in zip(responses, made, strict=True)
        ]


class JudgeServer(ServerInterface):
    """A judge of ``lmms_eval.judges``.

    Args:
        options: the model and its server; the limits of ``config`` are added.
    """

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
    """The request's messages with its pictures after the text of the last user turn."""
    given = list(request.messages)
    if not given:
        values = {
            "question": request.question,
            "answer": request.answer,
            "pred": request.prediction,
            "prediction": request.prediction,
            **request.prompt_kwargs,
        }
        given = [{"role": "user", "content": prompts.binary(values, config.output_format, request.custom_prompt)}]
    made = [{"role": message["role"], "content": _parts(message["content"])} for message in given]
    if config.system_prompt and made[0]["role"] != "system":
        made.insert(0, {"role": "system", "content": _parts(config.system_prompt)})
    pictures = [{"type": "image", "url": _picture(image)} for image in request.images or ()]
    if pictures:
        last = max((n for n, message in enumerate(made) if message["role"] == "user"), default=len(made) - 1)
        made[last]["content"] = [*made[last]["content"], *pictures]
    return ChatMessages.model_validate({"messages": made})


def _parts(content: Any) -> list[dict[str, Any]]:
    """Content of chat completions as message parts."""
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
    """A PIL image, a path, or a base64 text (of which a path is told by its length and letters)."""
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
