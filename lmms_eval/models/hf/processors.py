"""Processors of checkpoints: as published, from their parts where torchvision is absent, or a tokenizer alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.errors import ModelError
from lmms_eval.models.hf.options import HFOptions
from lmms_eval.models.hf.profile import Profile

_PIXEL_LIMITS = ("min_pixels", "max_pixels")
_AUDIO_PARTS = ("feature_extractor", "audio_processor")
_PART_LOADERS = {
    "tokenizer": "AutoTokenizer",
    "image_processor": "AutoImageProcessor",
    "feature_extractor": "AutoFeatureExtractor",
    "audio_processor": "AutoFeatureExtractor",
}


@dataclass(frozen=True, slots=True)
class LoadedProcessor:
    """A processor that is ready for batches."""

    processor: Any
    absent: frozenset[str] = frozenset()
    """Its parts that could not be built, because torchvision is absent."""
    native_pixels: bool = False
    """It takes ``min_pixels`` and ``max_pixels`` itself."""


class TextProcessor:
    """A tokenizer in the place of a processor, for models without eyes and ears."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.chat_template = getattr(tokenizer, "chat_template", None)

    def __call__(self, text: list[str], **options: Any) -> Any:
        return self.tokenizer(text, **options)

    def apply_chat_template(self, messages: list[dict[str, Any]], **options: Any) -> Any:
        """Contents are joined to plain texts: templates of text models expect those."""
        plain = [
            {"role": message["role"], "content": "\n".join(part["text"] for part in message["content"])}
            for message in messages
        ]
        options["chat_template"] = options.get("chat_template") or self.chat_template
        return self.tokenizer.apply_chat_template(plain, **options)


def location(options: HFOptions) -> dict[str, Any]:
    """Keyword arguments that every ``from_pretrained`` gets. ``trust_remote_code`` is never left to a prompt."""
    where: dict[str, Any] = {"trust_remote_code": options.trust_remote_code}
    if options.revision:
        where["revision"] = options.revision
    return where


def source(options: HFOptions) -> str:
    """Folder or repository."""
    return os.path.expanduser(options.pretrained)


def load_processor(options: HFOptions, profile: Profile) -> LoadedProcessor:
    """The processor with padding on the left, a padding token, a chat template and the pixel limits.

    Raises:
        ModelError: a part or a template is lacking, or the image part has no such limit.
    """
    processor, absent = _read(options, profile)
    needed = [part for part in profile.parts if part not in absent]
    lacking = [part for part in needed if getattr(processor, part, None) is None]
    if lacking:
        takes_videos_alone = lacking == ["image_processor"] and getattr(processor, "video_processor", None) is not None
        meaning = (
            "it takes whole videos alone, and hf shows a video as pictures"
            if takes_videos_alone
            else f"it is not {profile.architecture}, or its processor files are incomplete"
        )
        raise ModelError(
            f"hf: the processor of {options.pretrained} is a {type(processor).__name__}, which has no "
            f"{' and no '.join(lacking)}: {meaning}"
        )
    if profile.chat:
        _check_template(processor, options)
    _pad_on_the_left(processor.tokenizer, options)
    native = "image_processor" in needed and _limit_pixels(processor, options)
    return LoadedProcessor(processor, absent, native)


def sampling_rate(processor: Any) -> int | None:
    """Samples per second that the sound part of a processor takes; ``None`` where it has none."""
    for name in _AUDIO_PARTS:
        part = getattr(processor, name, None)
        if part is not None and hasattr(part, "sampling_rate"):
            return int(part.sampling_rate)
    return None


def _read(options: HFOptions, profile: Profile) -> tuple[Any, frozenset[str]]:
    import transformers

    if profile.parts == ("tokenizer",):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source(options), **location(options))
        return TextProcessor(tokenizer), frozenset()
    try:
        return transformers.AutoProcessor.from_pretrained(source(options), **location(options)), frozenset()
    except (ImportError, ValueError) as error:
        if not _lacks_torchvision(error):
            raise
        return _from_parts(options, profile, error)


def _lacks_torchvision(error: Exception) -> bool:
    """Transformers says so with either type of error, by part and version."""
    from transformers.utils import is_torchvision_available

    return "torchvision" in str(error).lower() and not is_torchvision_available()


def _from_parts(options: HFOptions, profile: Profile, cause: Exception) -> tuple[Any, frozenset[str]]:
    """The family's processor without the parts that need torchvision: always the video part.

    Raises:
        ModelError: a part that the family cannot do without needs torchvision as well.
    """
    from transformers import AutoConfig
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    config = AutoConfig.from_pretrained(source(options), **location(options))
    if type(config) not in PROCESSOR_MAPPING:
        raise ModelError(f"hf: the processor of {options.pretrained} truly needs torchvision: {cause}") from cause
    family = PROCESSOR_MAPPING[type(config)]
    names = family.get_attributes() if hasattr(family, "get_attributes") else family.attributes
    parts: list[Any] = []
    absent = set()
    for name in names:
        part = _part(name, options, profile) if name in _PART_LOADERS else None
        if part is None:
            absent.add(name)
        parts.append(part)
    settings, _ = family.get_processor_dict(source(options), **location(options))
    return _allow_missing(family).from_args_and_dict(parts, settings), frozenset(absent)


def _part(name: str, options: HFOptions, profile: Profile) -> Any:
    import transformers

    try:
        return getattr(transformers, _PART_LOADERS[name]).from_pretrained(source(options), **location(options))
    except (ImportError, ValueError) as error:
        if not _lacks_torchvision(error):
            raise
        if name in profile.without_torchvision:
            return None
        label = name.replace("_", " ")
        raise ModelError(
            f"hf: the {label} of {options.pretrained} truly needs torchvision, which is not installed"
        ) from error


def _allow_missing(family: type[Any]) -> type[Any]:
    """``family`` whose constructor takes ``None`` for a part; name and module stay."""

    def check(self: Any, name: str, argument: Any) -> Any:
        if argument is None:
            return type(None)
        return family.check_argument_for_proper_class(self, name, argument)

    members: dict[str, Any] = {"check_argument_for_proper_class": check, "__module__": family.__module__}
    template = getattr(family.apply_chat_template, "__code__", None)
    if template is not None and "video_processor" in template.co_names:
        # SmolVLM asks its video part even where a prompt has no video: the method that it extends is enough.
        members["apply_chat_template"] = super(family, family).apply_chat_template
    return type(family.__name__, (family,), members)


def _check_template(processor: Any, options: HFOptions) -> None:
    if options.chat_template or getattr(processor, "chat_template", None):
        return
    template = getattr(processor.tokenizer, "chat_template", None)
    if not template:
        raise ModelError(
            f"hf: {options.pretrained} has no chat template (chat_template.jinja): give one with chat_template=FILE, "
            "or chat_template=none for the plain context, as base models take it"
        )
    processor.chat_template = template


def _pad_on_the_left(tokenizer: Any, options: HFOptions) -> None:
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ModelError(f"hf: the tokenizer of {options.pretrained} has neither a padding nor an end token")
        tokenizer.pad_token = tokenizer.eos_token


def _limit_pixels(processor: Any, options: HFOptions) -> bool:
    """Rebuild the image part with the pixel limits where its family has them; whether it does."""
    part = processor.image_processor
    accepted: Mapping[str, Any] = getattr(getattr(type(part), "valid_kwargs", None), "__annotations__", {})
    native = all(name in accepted or hasattr(part, name) for name in _PIXEL_LIMITS)
    limits = {name: getattr(options, name) for name in _PIXEL_LIMITS if getattr(options, name)}
    if native and limits:
        processor.image_processor = type(part).from_pretrained(source(options), **location(options), **limits)
    return native
