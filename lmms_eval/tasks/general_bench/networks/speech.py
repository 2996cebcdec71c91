"""Whisper: transcription of speech (Radford et al., 2022). Sounds are cut, or padded with silence, to 30 seconds.

Decoding is greedy, without time stamps, in the language that the network detects, with at most 224 tokens as in the
authors' decoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.tasks.general_bench.networks.tensors import check_loaded
from lmms_eval.tasks.general_bench.networks.weights import Network, inference, opener

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

WHISPER = Network(
    key="whisper-large-v3-turbo",
    model_id="openai/whisper-large-v3-turbo",
    package="torch transformers",
    metrics=("wer", "cider/speech"),
)
SAMPLING_RATE = 16_000
SECONDS = 30
MAX_TOKENS = 224


class Speech(Struct, frozen=True, eq=False):
    """A loaded Whisper."""

    model: Any
    features: Any
    tokenizer: Any
    device: str

    def transcript(self, samples: Floats) -> str:
        """Return the words of mono samples at 16 kHz, or an empty text if there are no words."""
        cut = samples[: SECONDS * SAMPLING_RATE]
        made = self.features(cut, sampling_rate=SAMPLING_RATE, return_tensors="pt")
        with inference():
            heard = self.model.model.encoder(made["input_features"].float().to(self.device))
            tokens = list(self._tokens(heard))
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True)).strip()

    def _tokens(self, heard: Any) -> Iterator[int]:
        """Yield the tokens of the text, the most likely one at each step."""
        settings = self.model.generation_config
        prompt = self._prompt(heard)
        longest = min(MAX_TOKENS, int(self.model.config.max_target_positions) - len(prompt))
        first = min(prompt[0], int(settings.no_timestamps_token_id))  # from here on no token is text
        special = (token for token in range(first, int(self.model.config.vocab_size)) if token != self._end)
        silenced = {*(settings.suppress_tokens or ()), *special} - {-1}
        given, cache = prompt, None
        for step in range(longest):
            scores, cache = self._scores(heard, given, cache)
            barred = silenced | set(settings.begin_suppress_tokens or ()) if step == 0 else silenced
            scores[sorted(barred)] = -float("inf")
            token = int(scores.argmax())
            if token == self._end:
                return
            yield token
            given = [token]

    def _prompt(self, heard: Any) -> list[int]:
        """Return the start token and, for multilingual networks, the detected language and the transcription token."""
        settings = self.model.generation_config
        prompt = [int(settings.decoder_start_token_id)]
        languages = getattr(settings, "lang_to_id", None)
        if getattr(settings, "is_multilingual", False) and languages:
            scores, _ = self._scores(heard, prompt, None)
            prompt += [max(sorted(languages.values()), key=lambda token: float(scores[token]))]
            prompt += [int(settings.task_to_id["transcribe"])]
        return [*prompt, int(settings.no_timestamps_token_id)]

    @property
    def _end(self) -> int:
        end = self.model.generation_config.eos_token_id
        return int(end[0] if isinstance(end, list) else end)

    def _scores(self, heard: Any, tokens: Sequence[int], cache: Any) -> tuple[Any, Any]:
        """Return the scores of the next token and the cache for the following step."""
        import torch

        made = self.model(
            encoder_outputs=heard,
            decoder_input_ids=torch.tensor([list(tokens)], device=self.device),
            past_key_values=cache,
            use_cache=True,
        )
        return made.logits[0, -1].float().clone(), made.past_key_values


@opener(WHISPER)
def speech(source: str, device: str) -> Speech:
    """Load Whisper."""
    from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizer

    local = Path(source).exists()
    model, report = WhisperForConditionalGeneration.from_pretrained(
        source, local_files_only=local, output_loading_info=True
    )
    check_loaded(report["missing_keys"], "proj_out")
    if getattr(model.generation_config, "no_timestamps_token_id", None) is None:
        raise ValueError("its generation_config.json does not name the token for no time stamps")
    features = WhisperFeatureExtractor.from_pretrained(source, local_files_only=local)
    tokenizer = WhisperTokenizer.from_pretrained(source, local_files_only=local)
    return Speech(model.float().eval().to(device), features, tokenizer, device)
