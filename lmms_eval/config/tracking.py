"""Arguments of trackers and of the hub upload: the keys and values that each accepts (``docs/trackers.md``)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from lmms_eval.errors import ConfigError, UsageError
from lmms_eval.utils.arguments import split_args_string
from lmms_eval.utils.redaction import redact

if TYPE_CHECKING:
    from lmms_eval.config.options import RunConfig

Kind = Literal["text", "texts", "flag", "text or flag"]
_SECRETS = frozenset({"api_key", "hf_token", "key", "token"})
_FLAGS = {"true": True, "false": False}
TRACES = "/v1/traces"
"""Path of spans below the address of a collector (the OTLP specification)."""


class Destination(Struct, frozen=True):
    """A tracker, or the hub, that a run is reported to."""

    name: str
    package: str
    """Distribution that it needs; the extra has the same name."""
    option: str
    secret: str
    """Source of its secret, for messages."""
    keys: Mapping[str, Kind]
    choices: Mapping[str, tuple[str, ...]] = {}
    aliases: Mapping[str, str] = {}

    @property
    def samples_option(self) -> str:
        """The switch that sends samples too; empty for destinations without one."""
        return f"{self.name}_log_samples" if self.option == f"{self.name}_args" else ""


def _keys(texts: str, lists: str = "", flags: str = "", texts_or_flags: str = "") -> dict[str, Kind]:
    kinds: tuple[tuple[Kind, str], ...] = (
        ("text", texts), ("texts", lists), ("flag", flags), ("text or flag", texts_or_flags)
    )  # fmt: skip
    return {name: kind for kind, names in kinds for name in names.split()}


WANDB = Destination(
    "wandb", "wandb", "wandb_args", "WANDB_API_KEY, or `wandb login`",
    _keys(
        "project entity name notes group job_type dir mode id resume_from fork_from",
        lists="tags config_exclude_keys config_include_keys", flags="force save_code allow_val_change",
        texts_or_flags="resume reinit",
    ),
    choices={"mode": ("online", "offline", "disabled", "shared")},
)  # fmt: skip
SWANLAB = Destination(
    "swanlab", "swanlab", "swanlab_args", "SWANLAB_API_KEY, or `swanlab login`",
    _keys(
        "project workspace name description job_type group log_dir mode id color",
        lists="tags", flags="public", texts_or_flags="resume",
    ),
    choices={"mode": ("online", "offline", "local", "disabled")},
    aliases={"exp_name": "name", "experiment_name": "name", "logdir": "log_dir"},
)  # fmt: skip
TRACKIO = Destination(
    "trackio", "trackio", "trackio_args", "HF_TOKEN, or `hf auth login`",
    _keys(
        "project name group space_id server_url dataset_id bucket_id resume",
        flags="private embed auto_log_gpu auto_log_cpu",
    ),
    choices={"resume": ("must", "allow", "never")},
)  # fmt: skip
HUB = Destination(
    "hub", "huggingface_hub", "hf_hub_log_args", "HF_TOKEN, or `hf auth login`",
    _keys(
        "hub_results_org hub_repo_name details_repo_name results_repo_name leaderboard_url point_of_contact",
        flags="push_results_to_hub push_samples_to_hub public_repo gated",
    ),
)  # fmt: skip
OTLP = Destination(
    "otlp", "opentelemetry-exporter-otlp-proto-http", "otlp", "OTEL_EXPORTER_OTLP_HEADERS", _keys("endpoint"),
)  # fmt: skip
"""A collector of OpenTelemetry. Its option is the address alone."""
TRACKERS = (WANDB, SWANLAB, TRACKIO)
DESTINATIONS = (*TRACKERS, HUB, OTLP)


def destination_arguments(destination: Destination, value: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Read the arguments of a destination: texts, lists of texts, flags.

    Raises ``ConfigError`` if a key is unknown or holds a secret, or a value has the wrong form.
    """
    flag = f"--{destination.option}"
    if destination is OTLP:
        return {"endpoint": _collector(str(value or ""))}
    try:
        given: Mapping[str, Any] = value if isinstance(value, Mapping) else split_args_string(value)
    except UsageError as error:
        raise ConfigError(f"{flag}: write it as key=value,key=value ({redact(str(error))})") from None
    found: dict[str, Any] = {}
    for key, item in given.items():
        if str(key).lower() in _SECRETS:
            raise ConfigError(f"{flag}: {key} holds a secret, which is read from the environment: {destination.secret}")
        name = destination.aliases.get(key, key)
        if name not in destination.keys:
            known = [*destination.keys, *destination.aliases]
            close = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}?" if close else f"it takes {', '.join(known)}"
            raise ConfigError(f"{flag}: unknown key {key!r}; {hint}")
        if name in found:
            raise ConfigError(f"{flag}: {key} and its other spelling are both given: leave one out")
        found[name] = _value(f"{flag}: {key}", destination.keys[name], item)
        allowed = destination.choices.get(name, ())
        if allowed and found[name] not in allowed:
            raise ConfigError(f"{flag}: {key}: choose one of {', '.join(allowed)}; got {redact(str(item))!r}")
    return found


def destination_problems(config: RunConfig) -> Iterator[str]:
    """Yield what is wrong with the options of trackers and of the hub upload.

    Raises ``ConfigError`` if an argument is wrong.
    """
    for one in DESTINATIONS:
        given = getattr(config, one.option)
        if one.samples_option and getattr(config, one.samples_option) and not given:
            yield f"--{one.samples_option} needs --{one.option}, such as --{one.option} project=lmms-eval"
        if not given:
            continue
        arguments = destination_arguments(one, given)
        if one is HUB:
            yield from _hub_problems(config, arguments)
    if config.otlp_content and not config.otlp:
        yield "--otlp_content needs --otlp, such as --otlp http://localhost:4318"


def _collector(address: str) -> str:
    """Return the address that spans are posted to. Raises ``ConfigError`` if it is not one of HTTP."""
    try:
        parts = urlsplit(address.strip())
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets without an address
        is_usable = False
    if not is_usable:
        raise ConfigError(
            f"--otlp: give the address of a collector that takes OTLP over HTTP, such as http://localhost:4318; got "
            f"{redact(address)!r}"
        )
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith(TRACES) else f"{path}{TRACES}", fragment="").geturl()


def _hub_problems(config: RunConfig, arguments: Mapping[str, Any]) -> Iterator[str]:
    for key in ("hub_repo_name", "details_repo_name", "results_repo_name"):
        if "/" in arguments.get(key, ""):
            yield f"--hf_hub_log_args: {key} is a name without its organisation, which goes into hub_results_org"
    if not (arguments.get("push_results_to_hub") or arguments.get("push_samples_to_hub")):
        yield "--hf_hub_log_args: it pushes nothing without push_results_to_hub=true or push_samples_to_hub=true"
    if not config.output_path:
        yield "--hf_hub_log_args pushes the files of a run: name their folder with --output_path DIR"
    if arguments.get("push_samples_to_hub") and not config.log_samples:
        yield "--hf_hub_log_args: push_samples_to_hub needs --log_samples"


def _value(place: str, kind: Kind, item: Any) -> Any:
    text = "" if item is None else str(item).strip()
    if kind == "texts":
        parts = item if isinstance(item, list | tuple) else text.strip("[]()").split(",")
        return [str(part).strip().strip("\"'") for part in parts if str(part).strip()]
    if kind == "flag" or (kind == "text or flag" and text.lower() in _FLAGS):
        if text.lower() not in _FLAGS:
            raise ConfigError(f"{place}: give true or false; got {redact(text)!r}")
        return _FLAGS[text.lower()]
    if not text or isinstance(item, Mapping | list | tuple):
        raise ConfigError(f"{place}: give a text; got {redact(text)!r}")
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def named_destinations(config: RunConfig) -> Iterator[Destination]:
    """Yield the destinations that the options name: trackers, and the hub."""
    return (one for one in DESTINATIONS if getattr(config, one.option))
