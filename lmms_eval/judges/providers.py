"""Opening of the model that the options of a judge name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.model import Model
from lmms_eval.config.resolve import RUN_ONLY_MODEL_ARGS
from lmms_eval.errors import ModelError
from lmms_eval.judges.options import KEY_VARIABLE, REMEDY, URL_VARIABLE, JudgeOptions
from lmms_eval.utils.redaction import REDACTED, redact

_ARGUMENT = {"hf": "pretrained", "internvl": "pretrained", "replay": "path", "scripted": "name"}
"""Argument of the back end that takes the name, where that is not ``model``."""
_SERVERS = ("openai", "azure", "anthropic", "gemini", "litellm")


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that judges, and what is recorded of it."""

    model: Model
    name: str
    """Name without the provider, as verdicts and results call it."""
    provider: str
    base_url: str | None = None
    """Address without user, password and query."""
    arguments: Mapping[str, Any] | None = None
    """Arguments as given, without secrets."""
    served: Mapping[str, Any] | None = None
    """The program that the run starts for it, in place of an address."""

    def identity(self) -> dict[str, Any]:
        """All that fixes what it says, without secrets and without what only changes how fast it is asked."""
        arguments = {
            key: value
            for key, value in (self.arguments or {}).items()
            if key not in RUN_ONLY_MODEL_ARGS and key not in ("base_url", "api_key")
        }
        identity = dict(self.model.identity())
        return {"provider": self.provider, "name": self.name, "arguments": arguments, "identity": identity}

    def describe(self) -> dict[str, Any]:
        """Describe the judge for the results."""
        facts = {"model": self.name, "provider": self.provider, "base_url": self.base_url}
        return facts if self.served is None else {**facts, "base_url": None, "served_by": dict(self.served)}

    def close(self) -> None:
        self.model.close()


def open_judge(options: JudgeOptions, environ: Mapping[str, str] | None = None) -> Judge:
    """Build the judge.

    Raises:
        ModelError: no judge is named, its back end refuses the arguments, or it takes no messages.
    """
    if not options.is_given:
        raise ModelError(f"no judge model: {REMEDY}")
    environ = os.environ if environ is None else environ
    arguments: dict[str, Any] = {_ARGUMENT.get(options.provider, "model"): options.name}
    if options.provider == "azure":
        arguments["azure_openai"] = True
    if options.base_url:
        if options.provider not in _SERVERS:
            raise ModelError(f"--judge_base_url names a server, but the judge {options.model!r} is none")
        arguments["base_url"] = options.base_url
        # The benchmark's own key belongs to the benchmark's own server: it goes nowhere else.
        if environ.get(KEY_VARIABLE) and options.base_url == environ.get(URL_VARIABLE):
            arguments["api_key"] = environ[KEY_VARIABLE]
    arguments |= options.arguments
    model = _build(options.provider, arguments, options)
    shown = _shown_url(arguments.get("base_url") or model.identity().get("base_url"))
    public = {key: value for key, value in redact(arguments).items() if value != REDACTED}
    return Judge(model, options.name, options.provider, shown, public)


def _build(provider: str, arguments: Mapping[str, Any], options: JudgeOptions) -> Model:
    if provider == "replay":
        from lmms_eval.judges.recorded import RecordedJudge

        return RecordedJudge(**arguments)
    if provider == "scripted":
        from lmms_eval.judges.scripted import ScriptedJudge

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
    """An address as it may be recorded."""
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
