"""Networks of sounds: CLAP, Whisper and VGGish.

CLAP gives sounds and texts as vectors of one space (Wu et al., 2023, LAION). Their cosines are the CLAP scores. The
network takes 10 seconds of 48 kHz mono; a shorter sound is repeated to that length. A longer one is cut into
consecutive parts of 10 seconds (a remainder of less than one second is dropped), and the vectors of the parts are
averaged. LAION's own processing takes a random part, which would give other numbers each time.

Whisper transcribes speech (Radford et al., 2022). Sounds are cut, or padded with silence, to 30 seconds. Decoding is
greedy, without time stamps, in the language that the network detects, with at most 224 tokens as in the authors'
decoder.

VGGish gives 128 numbers for each 0.96 seconds of sound (Hershey et al., 2017), for the Frechet audio distance. As in
Kilgour et al. (2019), the last layer has no rectifier and there are no principal components. The weights are a table
with the tensors of the usual PyTorch conversions (``features.N.weight``, ``embeddings.N.weight``, or torchaudio's
names). Its input is the logarithm of a mel spectrogram of 16 kHz mono: windows of 25 ms (Hann) every 10 ms, magnitudes
of 512 points, 64 triangular bands from 125 to 7500 Hz that are even on the mel scale, 0.01 added. 96 windows make one
vector.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lmms_eval.tasks.general_bench.networks import base

if TYPE_CHECKING:
    import torch

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
WHISPER = base.Network("whisper-large-v3-turbo", "openai/whisper-large-v3-turbo")
SPEECH_RATE = 16_000
SPEECH_SECONDS = 30
MAX_TOKENS = 224


class Speech(base.LoadedNetwork, frozen=True, eq=False):
    """A loaded Whisper."""

    features: Any
    tokenizer: Any

    def transcript(self, samples: Floats) -> str:
        """Return the words of mono samples at 16 kHz, or an empty text if there are no words."""
        cut = samples[: SPEECH_SECONDS * SPEECH_RATE]
        made = self.features(cut, sampling_rate=SPEECH_RATE, return_tensors="pt")
        with base.inference():
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


@base.opener(WHISPER)
def speech(source: str, device: str) -> Speech:
    """Load Whisper."""
    from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizer

    local = Path(source).exists()
    model = base.pretrained(WhisperForConditionalGeneration, source, device, "proj_out")
    if getattr(model.generation_config, "no_timestamps_token_id", None) is None:
        raise ValueError("its generation_config.json does not name the token for no time stamps")
    features = WhisperFeatureExtractor.from_pretrained(source, local_files_only=local)
    tokenizer = WhisperTokenizer.from_pretrained(source, local_files_only=local)
    return Speech(model, device, features, tokenizer)


VGGISH = base.Network("vggish", package="torch")
VGGISH_RATE = 16_000
WINDOWS = 96
BANDS = 64
_WINDOW, _HOP, _POINTS = 400, 160, 512
_LOWEST, _HIGHEST = 125.0, 7500.0
_OFFSET = 0.01
_AT_ONCE = 16
_BLOCK = 4096
_CONVOLUTIONS = {0: True, 3: True, 6: False, 8: True, 11: False, 13: True}
"""Numbers of the convolutions in ``features``, and whether a pooling follows each."""
_DENSE = (0, 2, 4)
_NAMES = (("features_network.", "features."), ("embedding_network.", "embeddings."))


class Vggish(base.LoadedNetwork, frozen=True, eq=False):
    """A loaded VGGish. ``model`` is the table of its weights."""

    def rows(self, samples: Floats) -> Floats:
        """Return the vectors ``(vectors, 128)`` of mono samples at 16 kHz, one for each whole 0.96 seconds. A shorter
        sound is padded with silence to one.
        """
        import torch

        seen = torch.from_numpy(examples(samples))[:, None]
        with base.inference():
            return base.numpy_rows([forward(part.to(self.device), self.model) for part in seen.split(_AT_ONCE)])


def examples(samples: Floats) -> Floats:
    """Return logarithmic mel spectrograms ``(examples, 96, 64)`` of mono samples at 16 kHz, at least one."""
    least = (WINDOWS - 1) * _HOP + _WINDOW
    sound = np.asarray(samples, dtype=np.float64)
    sound = np.pad(sound, (0, max(0, least - len(sound))))
    count = (1 + (len(sound) - _WINDOW) // _HOP) // WINDOWS
    windows = np.lib.stride_tricks.sliding_window_view(sound, _WINDOW)[::_HOP][: count * WINDOWS]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)
    bands = mel_bands()
    # a block of windows at a time: half an hour would need gigabytes of spectrum
    blocks = (windows[start : start + _BLOCK] for start in range(0, len(windows), _BLOCK))
    parts = [np.abs(np.fft.rfft(block * hann, _POINTS)) @ bands for block in blocks]
    logarithms: Floats = np.log(np.concatenate(parts) + _OFFSET).astype(np.float32)
    return logarithms.reshape(count, WINDOWS, BANDS)


@functools.cache
def mel_bands() -> Doubles:
    """Return the weights ``(frequencies, 64)`` of the triangular bands. The constant part has weight 0 in all bands."""
    frequencies = _mel(np.linspace(0.0, VGGISH_RATE / 2, _POINTS // 2 + 1))
    edges = np.linspace(float(_mel(np.float64(_LOWEST))), float(_mel(np.float64(_HIGHEST))), BANDS + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (frequencies[:, None] - low) / (middle - low)
    falling = (high - frequencies[:, None]) / (high - middle)
    bands: Doubles = np.maximum(0.0, np.minimum(rising, falling))
    bands[0] = 0.0
    return bands


def tensors() -> list[str]:
    """Return the names of the network's tensors."""
    layers = [f"features.{number}" for number in _CONVOLUTIONS] + [f"embeddings.{number}" for number in _DENSE]
    return [f"{layer}.{part}" for layer in layers for part in ("weight", "bias")]


def forward(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return ``(examples, 128)`` for ``(examples, 1, 96, 64)``."""
    import torch.nn.functional as nn

    for number, is_pooled in _CONVOLUTIONS.items():
        name = f"features.{number}"
        x = nn.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1).relu()
        x = nn.max_pool2d(x, 2) if is_pooled else x
    x = x.permute(0, 2, 3, 1).flatten(1)  # in the order of the original: time, frequency, channel
    for number in _DENSE:
        name = f"embeddings.{number}"
        x = nn.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
        x = x if number == _DENSE[-1] else x.relu()
    return x


def _mel(frequency: Doubles | np.float64) -> Doubles:
    mels: Doubles = 1127.0 * np.log1p(np.asarray(frequency) / 700.0)
    return mels


@base.opener(VGGISH)
def vggish(source: str, device: str) -> Vggish:
    """Load VGGish."""
    found = base.read_weights(source)
    for theirs, ours in _NAMES:
        found = {ours + name.removeprefix(theirs) if name.startswith(theirs) else name: t for name, t in found.items()}
    return Vggish(base.need(found, tensors(), device), device)


CLAP = base.Network("clap-htsat-unfused", "laion/clap-htsat-unfused")
CLAP_RATE = 48_000
CLAP_SECONDS = 10
_PARTS_AT_ONCE = 4
_LEAST_REST = CLAP_RATE
"""Least number of samples of a last part that is kept."""


class Clap(base.TextTower, frozen=True, eq=False):
    """A loaded CLAP."""

    features: Any

    def parts(self, samples: Floats) -> Floats:
        """Return the vectors of mono samples at 48 kHz, ``(parts of 10 seconds, dimensions)``, each of length 1."""
        # the form of the input that the network wants; no part is so long that anything is cut
        truncation = "fusion" if self.model.config.audio_config.enable_fusion else "rand_trunc"

        def run(batch: list[Floats]) -> torch.Tensor:
            made = self.features(batch, truncation=truncation, sampling_rate=CLAP_RATE, return_tensors="pt")
            pooled = self.model.audio_model(
                input_features=made["input_features"].float().to(self.device),
                # with "fusion" the processing says at random of one sound that it is longer: none is
                is_longer=made["is_longer"].new_zeros(made["is_longer"].shape).to(self.device),
            ).pooler_output
            return base.unit_rows(self.model.audio_projection(pooled))

        return self.rows_of(cut(samples, CLAP_SECONDS * CLAP_RATE), run, _PARTS_AT_ONCE)

    def sound(self, samples: Floats) -> Floats:
        """Return the mean of the parts' vectors, ``(1, dimensions)``."""
        rows: Floats = self.parts(samples).mean(axis=0, keepdims=True)
        return rows


def cut(samples: Floats, length: int) -> list[Floats]:
    """Cut samples into parts of ``length``. A remainder of less than a second is dropped unless it is all there is."""
    starts = [start for start in range(0, len(samples), length) if start == 0 or len(samples) - start >= _LEAST_REST]
    return [samples[start : start + length] for start in starts]


@base.opener(CLAP)
def clap(source: str, device: str) -> Clap:
    """Load CLAP."""
    from transformers import AutoTokenizer, ClapFeatureExtractor, ClapModel

    local = Path(source).exists()
    model = base.pretrained(ClapModel, source, device, "position_ids")
    features = ClapFeatureExtractor.from_pretrained(source, local_files_only=local)
    if features.sampling_rate != CLAP_RATE:
        raise ValueError(f"its sounds have {features.sampling_rate} samples a second, not {CLAP_RATE}")
    tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
    texts = model.config.text_config
    longest = int(texts.max_position_embeddings) - int(texts.pad_token_id) - 1  # positions start behind padding
    return Clap(model, device, tokenizer, longest, features)
