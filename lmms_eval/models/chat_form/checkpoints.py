"""Checkpoints with their own method ``chat`` as models under test. See ``docs/models/chat.md``."""

from __future__ import annotations

import abc
import hashlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from lmms_eval.api.generation import PIXEL_LIMITS, VIDEO_LIMITS
from lmms_eval.api.request import Request, ResponseError
from lmms_eval.errors import ModelError
from lmms_eval.models.chat_form.form import (
    ChatConversation,
    ChatForm,
    ConversationReader,
    Piece,
    call,
    check_form,
    media_of,
)
from lmms_eval.models.chat_form.internvl import InternVLForm
from lmms_eval.models.chat_form.loading import (
    CheckpointPlace,
    LoadOptions,
    check_trust,
    device_map,
    has_own_code,
    load_checkpoint,
    read_config,
)
from lmms_eval.models.chat_form.model import CheckpointModel
from lmms_eval.models.hf.batching import RefusedError
from lmms_eval.models.hf.model import LocalModel, checkpoint_identity, describe_model
from lmms_eval.models.hf.options import COMMON, FRAMES, Converter, HFOptions, Profile, flag, local_folder, positive_int

_TAKEN = ("pretrained", "revision", "dtype", "device", "device_map", "attn_implementation", "trust_remote_code",
          "batch_size", "max_num_frames", "fps", "min_pixels", "max_pixels", "total_pixels", "max_image_size",
          "system_prompt", "reasoning_prompt", "interleave_visuals")  # fmt: skip
"""Arguments of ``hf`` that apply to models with their own ``chat``."""
_NAMES = {**COMMON, **FRAMES, "num_frame": "max_num_frames"}
_OWN_FORMS = {"internvl": "internvl_hf"}
"""Model names for checkpoints in the format of transformers, by ``model_type``. All others are ``hf``."""
_FRAME_SLICES = 2
"""``max_slice_nums`` for videos on the model cards."""


class MiniCPMForm(ChatForm):
    """Answers one conversation at a time.

    If ``chat`` has a parameter ``context`` (MiniCPM-V 1 and 2), it takes one picture, separately from the messages,
    and returns a tuple.
    """

    name = "minicpm_v"
    parameters = ("image", "msgs", "tokenizer")
    marks = ("(<image>./</image>)", "(<audio>./</audio>)")

    def __init__(self, model: Any, tokenizer: Any, config: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
        super().__init__(model, tokenizer, config, extra)
        self._is_early = "context" in self.chat_parameters
        kinds = [parameter.kind for parameter in self.chat_parameters.values()]
        self._takes_any = inspect.Parameter.VAR_KEYWORD in kinds
        for argument in ("enable_thinking", "max_slice_nums"):
            if argument in extra and argument not in self.chat_parameters:
                raise ModelError(f"{self.name}: chat of {type(self.model).__name__} has no argument {argument}")

    @property
    def media(self) -> frozenset[str]:
        hears = "audio_config" in self.config or bool(self.config.get("init_audio"))
        taken = ("image",) if self._is_early else ("image", "video", "audio") if hears else ("image", "video")
        return frozenset(taken)

    def takes_option(self, name: str) -> bool:
        """Return whether ``chat`` has the option. ``do_sample`` has another name there."""
        return name == "do_sample" or self._takes(name)

    def render(self, conversation: ChatConversation) -> ChatConversation:
        if conversation.system and "system_prompt" not in self.chat_parameters:
            raise RefusedError(f"{self.name}: chat of {type(self.model).__name__} takes no system prompt")
        pictures = len(media_of(conversation, "image"))
        if self._is_early and pictures > 1:
            raise RefusedError(f"{self.name}: {type(self.model).__name__} takes one picture, not {pictures}")
        return conversation

    def ask(self, prompts: Sequence[ChatConversation], arguments: Mapping[str, Any]) -> list[Any]:
        return [self._chat(prompt, arguments) for prompt in prompts]

    def _chat(self, conversation: ChatConversation, arguments: Mapping[str, Any]) -> Any:
        pictures = media_of(conversation, "image")
        more: dict[str, Any] = {name: self.extra[name] for name in ("enable_thinking", "max_slice_nums")
                                if name in self.extra}  # fmt: skip
        if media_of(conversation, "video"):
            of_films = {"use_image_id": False, "max_slice_nums": _FRAME_SLICES}
            more = {**{name: value for name, value in of_films.items() if name in self.chat_parameters}, **more}
        if conversation.system:
            more["system_prompt"] = conversation.system
        if self._is_early:
            more["context"] = None
        answer = call(
            self.model.chat,
            image=pictures[0].items[0] if self._is_early and pictures else None,
            msgs=[{"role": role, "content": self._content(role, pieces)} for role, pieces in conversation.turns],
            tokenizer=self.tokenizer,
            **more,
            **self._generation(arguments),
        )
        return answer[0] if self._is_early and isinstance(answer, tuple) else answer

    def _content(self, role: str, pieces: Sequence[Piece]) -> Any:
        if self._is_early or role != "user":
            return "".join(piece for piece in pieces if isinstance(piece, str))
        content: list[Any] = []
        for piece in pieces:
            if not isinstance(piece, str):
                content += piece.items
            elif content and isinstance(content[-1], str):
                content[-1] += piece  # ``chat`` inserts a line break between two items
            else:
                content.append(piece)
        return content

    def _generation(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options by the names of ``chat``. Greedy decoding needs one beam, unlike its default."""
        options = {name: value for name, value in arguments.items() if value is not None}
        given = {"sampling": options.pop("do_sample"), **options}
        refused = [name for name in given if not self._takes(name)]
        if refused:
            raise RefusedError(f"{self.name}: chat takes no generation option {', '.join(refused)}")
        return given if not self._takes("num_beams") else {"num_beams": 1, **given}

    def _takes(self, name: str) -> bool:
        return self._takes_any or name in self.chat_parameters


FORMS: tuple[type[ChatForm], ...] = (InternVLForm, MiniCPMForm)


class ChatCheckpoint(CheckpointModel, LocalModel):
    """A checkpoint, by name or folder.

    Raises:
        ModelError: an argument is wrong, the checkpoint's code is not allowed to run, or it is of another kind.
    """

    form_class: ClassVar[type[ChatForm]]

    def __init__(self, **arguments: Any) -> None:
        from lmms_eval.models.hf.load import check_processes, resolve_device, source

        options = self.options = HFOptions.from_arguments(arguments, self.profile)
        name = self.profile.name
        local_folder(options.pretrained, ())
        place = CheckpointPlace(name, source(options), options.revision)
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
        model, tokenizer = load_checkpoint(place, config, load_options)
        check_form(self.form_class, FORMS, model, options.pretrained)
        form = self.form_class(model, tokenizer, config, options.extra)
        super().__init__(form, options.batch_size)
        self._reader = ConversationReader(name, options, form)

    @property
    def media_limits(self) -> frozenset[str]:
        """Those of pictures and frames, and of tiles if the form cuts pictures."""
        return PIXEL_LIMITS | VIDEO_LIMITS | self.form.limits

    @classmethod
    @abc.abstractmethod
    def load_options(cls, options: HFOptions, config: Mapping[str, Any], device: Any) -> LoadOptions:
        """Return the loading options for the family's checkpoints."""

    def prepare(self, request: Request) -> Request:
        """Render the request in the form of the checkpoint. Raises ``MediaError`` if a medium cannot be read."""
        messages = request.build_messages()
        try:
            prompt = self.form.render(self._reader.limited(request.media).read(messages))
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
        return {
            **super().describe(),
            **describe_model(self.form.model, self.device),
            "form": self.form.name,
            "takes": ["text", *sorted(self.form.media)],
            "chat_parameters": list(self.form.chat_parameters),
            "batch_size": self.options.batch_size,
            "out_of_memory_batches": self._runner.out_of_memory,
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
