"""Checkpoints with their own method ``chat`` as models under test. See ``docs/models/chat.md``."""

from __future__ import annotations

import abc
import hashlib
import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from lmms_eval.api.generation import MediaForm
from lmms_eval.api.request import Request, ResponseError
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import IGNORED_LOCALLY
from lmms_eval.models.chat_form.form import ChatForm, Checkpoint, ConversationReader, check_form
from lmms_eval.models.chat_form.internvl import InternVLForm
from lmms_eval.models.chat_form.loading import (
    LoadOptions,
    Place,
    check_trust,
    device_map,
    has_own_code,
    load_checkpoint,
    read_config,
)
from lmms_eval.models.chat_form.minicpm import MiniCPMForm
from lmms_eval.models.chat_form.model import ChatModel
from lmms_eval.models.hf.batching import RefusedError
from lmms_eval.models.hf.model import checkpoint_identity, peak_memory
from lmms_eval.models.hf.options import (
    COMMON,
    FRAMES,
    Converter,
    HFOptions,
    Profile,
    flag,
    local_folder,
    positive_int,
)
from lmms_eval.models.hf.settings import DEFAULT_MAX_NEW_TOKENS

FORMS: tuple[type[ChatForm], ...] = (InternVLForm, MiniCPMForm)
_TAKEN = ("pretrained", "revision", "dtype", "device", "device_map", "attn_implementation", "trust_remote_code",
          "batch_size", "max_num_frames", "fps", "min_pixels", "max_pixels", "total_pixels", "max_image_size",
          "system_prompt", "reasoning_prompt", "interleave_visuals")  # fmt: skip
"""Arguments of ``hf`` that apply to models with their own ``chat``."""
_NAMES = {**COMMON, **FRAMES, "num_frame": "max_num_frames"}
_OWN_FORMS = {"internvl": "internvl_hf"}
"""Model names for checkpoints in the format of transformers, by ``model_type``. All others are ``hf``."""


class ChatCheckpoint(ChatModel):
    """A checkpoint, by name or folder. The arguments are the fields of :class:`HFOptions` and those of the form.

    Raises:
        ModelError: an argument is wrong, the checkpoint's code is not allowed to run, or it is of another kind.
    """

    profile: ClassVar[Profile] = Profile()
    form_class: ClassVar[type[ChatForm]]
    ignored_arguments = IGNORED_LOCALLY
    __signature__: ClassVar[inspect.Signature] = profile.signature(HFOptions)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.__signature__ = cls.profile.signature(HFOptions)

    @classmethod
    def media_form(cls, model_args: Mapping[str, Any]) -> MediaForm:
        return HFOptions.from_arguments(model_args, cls.profile).media_form

    def __init__(self, **arguments: Any) -> None:
        self.options = HFOptions.from_arguments(arguments, self.profile)
        form = self.form_class(self._load(), self.options.extra)
        super().__init__(form, self.options.batch_size)
        self._reader = ConversationReader(self.profile.name, self.options, form)

    @classmethod
    @abc.abstractmethod
    def load_options(cls, options: HFOptions, config: Mapping[str, Any], device: Any) -> LoadOptions:
        """Return the loading options for the family's checkpoints."""

    def _load(self) -> Checkpoint:
        from lmms_eval.models.hf.load import check_processes, resolve_device, source

        options, name = self.options, self.profile.name
        local_folder(options.pretrained, ())
        place = Place(name, source(options), options.revision)
        config = read_config(place)
        if not has_own_code(config):
            raise ModelError(
                f"{name}: {options.pretrained} holds a model of type {config.get('model_type')!r} without code of its "
                f"own: --model {_OWN_FORMS.get(str(config.get('model_type')), 'hf')} runs it"
            )
        check_trust(place, options.trust_remote_code)
        check_processes(options)
        device = resolve_device(options.device)
        load_options = self.load_options(options, config, device)
        if load_options.device_map is None and device.type != "cpu":
            load_options = replace(load_options, device_map={"": device})
        found = load_checkpoint(place, config, load_options)
        check_form(self.form_class, FORMS, found.model, options.pretrained)
        return found

    def prepare(self, request: Request) -> Request:
        """Render the request in the form of the checkpoint.

        Raises:
            MediaError: a picture, video or sound cannot be read.
        """
        messages = request.build_messages()
        try:
            prompt = self.form.render(self._reader.read(messages))
        except RefusedError as error:
            return request.with_payload(ResponseError(error.kind, str(error)), 0)
        return request.with_payload(prompt, prompt.nbytes)

    def identity(self) -> Mapping[str, Any]:
        model, system = self.form.model, self._reader.system_prompt
        return {
            **checkpoint_identity(self.options.pretrained, self.options.revision, model),
            "class": type(model).__name__,
            "dtype": str(getattr(model, "dtype", None)).removeprefix("torch."),
            "form": self.form.name,
            "system_prompt": None if system is None else hashlib.sha256(system.encode()).hexdigest(),
        }

    def describe(self) -> Mapping[str, Any]:
        import torch
        import transformers

        model, device = self.form.model, self.device
        return {
            **super().describe(),
            "model_class": type(model).__name__,
            "form": self.form.name,
            "takes": ["text", *sorted(self.form.media)],
            "chat_parameters": list(self.form.chat_parameters),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "device": str(device),
            "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
            "dtype": str(model.dtype).removeprefix("torch."),
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "batch_size": self.options.batch_size,
            "out_of_memory_batches": self._runner.out_of_memory,
            "default_max_new_tokens": DEFAULT_MAX_NEW_TOKENS,
            "peak_memory_bytes": peak_memory(device),
        }


def _profile(name: str, **extra: Converter) -> Profile:
    without = tuple(name for name in HFOptions.__struct_fields__ if name not in (*_TAKEN, "extra"))
    return Profile(name=name, aliases=_NAMES, extra=extra, without=without)


class InternVL(ChatCheckpoint):
    """InternVL 1.5 to 3.5, and checkpoints with the same form of ``chat``.

    ``max_num`` is the maximum number of tiles of a picture (12), and ``total_max_num`` that of a prompt.
    """

    profile = _profile("internvl", max_num=positive_int, total_max_num=positive_int)
    form_class = InternVLForm

    @classmethod
    def load_options(cls, options: HFOptions, config: Mapping[str, Any], device: Any) -> LoadOptions:
        import torch

        attention = options.attn_implementation
        flash = None if attention is None else attention == "flash_attention_2"
        place = options.device_map
        if place == "auto":  # the authors' rule: layers that are added together must be on one GPU
            gpus = torch.cuda.device_count()
            place = {"": device} if gpus < 2 else device_map(gpus, layers_of(config))
        return LoadOptions(options.dtype, place, flash, fast_tokenizer=False)


class MiniCPM(ChatCheckpoint):
    """MiniCPM-V and MiniCPM-o. ``max_slice_nums`` (the slices of a picture) and ``enable_thinking`` go to ``chat``."""

    profile = _profile("minicpm_v", max_slice_nums=positive_int, enable_thinking=flag)
    form_class = MiniCPMForm

    @classmethod
    def load_options(cls, options: HFOptions, config: Mapping[str, Any], device: Any) -> LoadOptions:  # noqa: ARG003 - for other forms
        arguments: dict[str, Any] = {}
        if options.attn_implementation:
            arguments["attn_implementation"] = options.attn_implementation
        if "init_tts" in config:
            arguments["init_tts"] = False  # answers are texts only
        return LoadOptions(options.dtype, options.device_map, arguments=arguments)


def layers_of(config: Mapping[str, Any]) -> int:
    """Return the number of layers of the language model."""
    language = config.get("llm_config") or config.get("text_config") or config
    return int(language.get("num_hidden_layers", 32))
