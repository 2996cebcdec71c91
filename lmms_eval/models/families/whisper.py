"""Whisper: transcribes or translates the one sound of a request."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.api.messages import ChatAudioContent, ChatTextContent
from lmms_eval.models.hf.batching import RefusedError
from lmms_eval.models.hf.encode import Encoded, Encoder, refusing
from lmms_eval.models.hf.inputs import InputBuilder, Prepared
from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.options import COMMON, PROMPT_OPTIONS, VISUAL_OPTIONS, Profile

if TYPE_CHECKING:
    from lmms_eval.api.messages import ChatMessages
    from lmms_eval.api.request import RequestKind
    from lmms_eval.models.hf.inputs import PreparedRequest
    from lmms_eval.models.hf.load import Loaded
    from lmms_eval.models.hf.options import HFOptions

CHUNK_SECONDS = 30
_START_TOKENS = 4
"""The tokens for start of transcript, language, task and no timestamps."""


class SoundInputs(InputBuilder):
    """Uses the sound of a request. Its text is left out, as Whisper does not follow instructions."""

    def render(self, chat: ChatMessages, variables: Mapping[str, Any] | None = None) -> Prepared:  # noqa: ARG002
        parts = [part for message in chat.messages for part in message.content]
        for part in parts:
            if not isinstance(part, ChatTextContent):
                self._check_taken(part.type)
        sounds = [part for part in parts if isinstance(part, ChatAudioContent)]
        if len(sounds) != 1:
            raise RefusedError(f"whisper takes exactly one sound in a request, not {len(sounds)}")
        samples = self.sound(sounds[0])
        rate = self._sampling_rate or 1
        return self.finish("", [], [samples], alone=len(samples) > CHUNK_SECONDS * rate)


class SoundEncoder(Encoder):
    """Encodes log-mel features. A sound of more than 30 seconds is transcribed as a whole with timestamps."""

    def __init__(self, loaded: Loaded, options: HFOptions) -> None:
        super().__init__(loaded, options)
        self._spoken = dict(options.extra)
        config = loaded.model.config
        self._max_new_tokens = max(1, int(config.max_target_positions) - _START_TOKENS)

    def encode(self, jobs: Sequence[PreparedRequest]) -> Encoded:
        is_long = jobs[0].prepared.alone
        extract = self._loaded.processor.feature_extractor
        options: dict[str, Any] = {"padding": "longest", "truncation": False} if is_long else {}
        batch = refusing(
            lambda: extract(
                [job.prepared.audios[0] for job in jobs],
                sampling_rate=self._loaded.sampling_rate,
                return_tensors="pt",
                return_attention_mask=True,
                **options,
            )
        )
        inputs: dict[str, Any] = {**batch, **self._spoken}
        if is_long:
            inputs["return_timestamps"] = True
        return Encoded(inputs, (None,) * len(jobs), 0, max_new_tokens=self._max_new_tokens, in_pieces=is_long)


class Whisper(HuggingFace):
    """Whisper; ``language=de`` (default: detected from the sound) and ``task=transcribe`` or ``translate``."""

    kinds: frozenset[RequestKind] = frozenset({"generate_until"})
    input_builder = SoundInputs
    encoder = SoundEncoder
    profile = Profile(
        name="whisper",
        loader="AutoModelForSpeechSeq2Seq",
        architecture="a Whisper model",
        parts=("tokenizer", "feature_extractor"),
        media=frozenset({"audio"}),
        model_types=("whisper",),
        chat=False,
        aliases=COMMON,
        defaults={"pretrained": "openai/whisper-tiny"},
        extra={"language": str, "task": str},
        without=(*VISUAL_OPTIONS, *PROMPT_OPTIONS),
    )

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        logging.getLogger("transformers.generation.utils").addFilter(_is_not_about_length)


def _is_not_about_length(record: logging.LogRecord) -> bool:
    """Drop the message at each call that ``max_new_tokens`` takes precedence over ``max_length``."""
    return not str(record.msg).startswith("Both `max_new_tokens`")
