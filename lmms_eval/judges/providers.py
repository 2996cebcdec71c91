"""Opening the model that the judge's options select."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, Response, ResponseError
from lmms_eval.config.resolve import RUN_ONLY_MODEL_ARGS
from lmms_eval.engine.prompts import content_fingerprint
from lmms_eval.errors import ModelError, UnknownNameError
from lmms_eval.judges.options import KEY_VARIABLE, REMEDY, URL_VARIABLE, JudgeOptions
from lmms_eval.storage.lines import has_checksums, records_in
from lmms_eval.utils.files import read_plain
from lmms_eval.utils.redaction import REDACTED, redact

TAKE = 32
Script = Callable[[ChatMessages, Request], str | ResponseError]
"""A function of the rendered prompt and its request that returns the reply, or the error of the request."""
_SCRIPTS: dict[str, Script] = {}
_ARGUMENT = {"hf": "pretrained", "internvl": "pretrained", "replay": "path", "scripted": "name"}
"""The argument of the back end that takes the name, if it is not ``model``."""
_SERVERS = ("openai", "azure", "anthropic", "gemini", "litellm")


class RecordedJudge(Model):
    """Repeats the replies that are recorded in a file. Raises ``ModelError`` if the file cannot be used."""

    concurrency = TAKE

    def __init__(self, path: str) -> None:
        self.path = Path(path).expanduser()
        try:
            data = read_plain(self.path)
        except OSError as error:
            raise ModelError(f"replay: cannot read the judge's replies {path}: {error.strerror or error}") from error
        self._digest = hashlib.sha256(data).hexdigest()
        self._by_id: dict[str, str] = {}
        self._by_both: dict[tuple[str, str], str] = {}
        self._by_prompt: dict[str, list[str]] = {}
        if has_checksums(data):
            for number, row in enumerate(records_in(data, self.path), 1):
                self._add(row, number)
            return
        for number, line in enumerate(data.splitlines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8", "replace"))
            except ValueError as error:
                raise ModelError(f"replay: {self.path} line {number} is not a recorded reply: {error!r}") from error
            self._add(row, number)

    def prepare(self, request: Request) -> Request:
        return request.with_payload(content_fingerprint(request.build_messages()), 0)

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(TAKE):
            for request in requests:
                text = self._by_both.get((request.id, request.payload), self._by_id.get(request.id))
                if text is None and (same := self._by_prompt.get(request.payload)):
                    text = same[min(request.repeat, len(same) - 1)]
                if text is None:
                    message = f"no reply to {request.id} (prompt {request.payload}) in {self.path.name}"
                    yield Response.failure(request.id, "bad_request", message)
                else:
                    yield Response(request.id, text=text, finish_reason="stop")

    def identity(self) -> Mapping[str, Any]:
        return {"file": self._digest}

    def _add(self, row: Any, number: int) -> None:
        try:
            if "error" in row:
                return
            name, prompt, text = row.get("id"), row.get("prompt"), row["text"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"replay: {self.path} line {number} is not a recorded reply: {error!r}") from error
        if not isinstance(text, str) or not (name or prompt):
            raise ModelError(f"replay: {self.path} line {number} needs text, and id or prompt")
        if name and prompt:
            self._by_both[name, prompt] = text
        elif name:
            self._by_id[name] = text
        if prompt:
            self._by_prompt.setdefault(prompt, []).append(text)


def register_script(name: str, script: Script) -> None:
    """Make ``scripted:NAME`` a judge in this process."""
    _SCRIPTS[name] = script


class ScriptedJudge(Model):
    """Answers with a registered function. Raises ``UnknownNameError`` if no function has that name."""

    concurrency = 8

    def __init__(self, name: str) -> None:
        if name not in _SCRIPTS:
            raise UnknownNameError("scripted judge", name, _SCRIPTS)
        self.name, self._script = name, _SCRIPTS[name]

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(self.concurrency):
            for request in requests:
                reply = self._script(request.payload, request)
                if isinstance(reply, ResponseError):
                    yield Response(request.id, error=reply)
                else:
                    yield Response(request.id, text=reply, finish_reason="stop")

    def identity(self) -> Mapping[str, Any]:
        return {"scripted": self.name}


class Judge(Struct, frozen=True):
    """A model that judges, and the facts that are recorded about it."""

    model: Model
    name: str
    """The name without the provider, as in verdicts and results."""
    provider: str
    base_url: str | None = None
    """The address without user, password and query."""
    arguments: Mapping[str, Any] | None = None
    """The arguments as given, without secrets."""
    served: Mapping[str, Any] | None = None
    """The program that the run starts for the judge, instead of an address."""

    def identity(self) -> dict[str, Any]:
        """Return what determines its replies, without secrets and without arguments that only affect speed."""
        arguments = {
            key: value
            for key, value in (self.arguments or {}).items()
            if key not in RUN_ONLY_MODEL_ARGS and key not in ("base_url", "api_key")
        }
        identity = dict(self.model.identity())
        return {"provider": self.provider, "name": self.name, "arguments": arguments, "identity": identity}

    def describe(self) -> dict[str, Any]:
        """Return the description of the judge in the results."""
        facts = {"model": self.name, "provider": self.provider, "base_url": self.base_url}
        return facts if self.served is None else {**facts, "base_url": None, "served_by": dict(self.served)}

    def close(self) -> None:
        self.model.close()


def open_judge(options: JudgeOptions, environ: Mapping[str, str] | None = None) -> Judge:
    """Build the judge. Raises ``ModelError`` if no judge is given, or it does not take chat messages."""
    if not options.is_given:
        raise ModelError(f"no judge model: {REMEDY}")
    environ = os.environ if environ is None else environ
    arguments: dict[str, Any] = {_ARGUMENT.get(options.provider, "model"): options.name}
    if options.provider == "azure":
        arguments["azure_openai"] = True
    if options.base_url:
        if options.provider not in _SERVERS:
            raise ModelError(f"--judge_base_url names a server, but the judge {options.model!r} does not use one")
        arguments["base_url"] = options.base_url
        # The benchmark's own key belongs to the benchmark's own server and is sent to no other server.
        if environ.get(KEY_VARIABLE) and options.base_url == environ.get(URL_VARIABLE):
            arguments["api_key"] = environ[KEY_VARIABLE]
    arguments |= options.arguments
    model = _build(options.provider, arguments, options)
    shown = _shown_url(arguments.get("base_url") or model.identity().get("base_url"))
    public = {key: value for key, value in redact(arguments).items() if value != REDACTED}
    return Judge(model, options.name, options.provider, shown, public)


def _build(provider: str, arguments: Mapping[str, Any], options: JudgeOptions) -> Model:
    if provider == "replay":
        return RecordedJudge(**arguments)
    if provider == "scripted":
        return ScriptedJudge(**arguments)
    if provider == "internvl":
        from lmms_eval.judges.internvl.loading import build_internvl

        return build_internvl({"device": options.device or "auto", **arguments})
    from lmms_eval.models.building import BuildOptions, build_model
    from lmms_eval.models.legacy import LegacyAdapter
    from lmms_eval.models.registry import ModelRegistry

    resolved = ModelRegistry().resolve("openai" if provider == "azure" else provider)
    try:
        model = build_model(resolved, arguments, BuildOptions(device=options.device))
    except ModelError as error:
        raise ModelError(f"the judge (--judge_model, --judge_args): {error}") from error
    if isinstance(model, LegacyAdapter):
        raise ModelError(f"the judge {options.model!r} is a class plugin: a judge must take chat messages")
    return model


def _shown_url(value: Any) -> str | None:
    """Return an address in a form that may be recorded: without user, password and query."""
    from urllib.parse import urlsplit, urlunsplit

    if not value:
        return None
    try:
        parts = urlsplit(str(value))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    return urlunsplit((parts.scheme, place, parts.path, "", ""))
