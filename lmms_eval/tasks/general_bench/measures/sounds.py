"""Measures of sounds and notes: CLAP scores, distances of spectra and of features, word errors, pitch classes.

A CLAP score is 100 times the plain cosine. Words of speech are compared without case and punctuation, each Chinese
character as a word (Whisper writes both as it hears them). With the option ``wer_words=written``, the words between
spaces are compared unchanged. Transcripts made elsewhere are predictions ``{"transcript": "..."}``, vectors made
elsewhere are ``{"features": "FILE.npy"}`` (``measures.embeddings``).
"""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import embeddings, texts
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.seen import input_text, media_of, wanted_text
from lmms_eval.tasks.general_bench.measures.text_math import word_error_rate
from lmms_eval.tasks.general_bench.networks import sounds as networks
from lmms_eval.tasks.general_bench.networks.base import not_evaluated
from lmms_eval.tasks.general_bench.readers.sounds import Note, predicted_notes, predicted_sound, reference_sound

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
MAX_ROWS = 4096
"""Most vectors of one sound in a Frechet distance (VGGish gives 1875 for half an hour)."""
_STYLE_KEYS = ("target_style", "style")
_APOSTROPHES = frozenset("'’")
_FIRST_CJK, _LAST_CJK = 0x3400, 0x9FFF


def clap_score(prediction: Any, item: Item, context: Context) -> State:
    """Return 100 times the cosine of the predicted sound and the item's text."""
    given = embeddings.reference_rows(item, context, lambda: networks.clap(context, item).texts([wanted_text(item)]))
    return embeddings.similarity(_sound(prediction, item, context), given, item)


def style_score(prediction: Any, item: Item, context: Context) -> State:
    """Return 100 times the cosine of the predicted sound and the wanted style: the style in words (``input.style`` or
    ``input.target_style``), else the reference sound, else the prompt.
    """

    def style() -> Floats:
        network = networks.clap(context, item)
        words = next((text for key in _STYLE_KEYS if (text := input_text(item, key))), "")
        if not words and isinstance(item.reference, str):
            return network.sound(reference_sound(item, networks.CLAP_RATE).samples)
        if words or item.prompt.strip():
            return network.texts([words or item.prompt.strip()])
        raise DataError(f"{item.where}: the item names no style: no `input.style`, reference sound or prompt")

    return embeddings.similarity(
        _sound(prediction, item, context), embeddings.reference_rows(item, context, style), item
    )


def audio_pair(prediction: Any, item: Item, context: Context) -> State:
    """Return the vectors of the predicted and of the reference sound, ``[[rows], [rows]]``."""
    rows, given = embeddings.predicted_features(prediction, item), embeddings.reference_features(item, context)
    if given is None:
        given = _embedded(lambda rate: _reference_samples(item, rate), item, context)
    if rows is None:
        rows = _embedded(lambda rate: predicted_sound(media_of(prediction), item, rate).samples, item, context)
    embeddings.check_lengths(rows, given, item)
    for part in (rows, given):
        if len(part) > MAX_ROWS:
            raise UnreadableAnswer(f"{item.where}: {len(part)} vectors of one sound; at most {MAX_ROWS} are read")
    return [[embeddings.as_state(row) for row in part] for part in (rows, given)]


def audio_distance(states: Sequence[State]) -> float:
    """Return the Frechet distance of predicted and reference vectors. Raises ``DataError`` if lengths differ."""
    from lmms_eval.tasks.general_bench.measures.embeddings import frechet_from_embeddings

    rows = [[row for state in states for row in state[side]] for side in (0, 1)]
    if len({len(row) for part in rows for row in part}) != 1:
        raise DataError("the vectors of this task's sounds are of different lengths")
    return frechet_from_embeddings(rows[0], rows[1])


def spoken_words(text: str) -> list[str]:
    """Split a text into words without case and punctuation, and into single Chinese characters."""
    kept: list[str] = []
    for character in unicodedata.normalize("NFKC", text).casefold():
        if _FIRST_CJK <= ord(character) <= _LAST_CJK:
            kept.append(f" {character} ")
        elif character in _APOSTROPHES:
            kept.append("'")
        else:
            kept.append(character if unicodedata.category(character)[0] in "LMN" else " ")
    words = (word.strip("'") for word in "".join(kept).split())
    return [word for word in words if word]


def _sound(prediction: Any, item: Item, context: Context) -> Floats:
    """Return the CLAP vectors of the predicted sound, one unless the prediction holds several."""

    def compute() -> Floats:
        network = networks.clap(context, item)
        return network.sound(predicted_sound(media_of(prediction), item, networks.CLAP_RATE).samples)

    return embeddings.predicted_rows(prediction, item, compute)


def _embedded(samples: Callable[[int], Floats], item: Item, context: Context) -> Floats:
    """Return the vectors of samples by the network that the option ``fad_network`` names, at its sampling rate."""
    if context.choice("fad_network", "vggish", "clap") == "vggish":
        return networks.vggish(context, item).rows(samples(networks.VGGISH_RATE))
    return networks.clap(context, item).parts(samples(networks.CLAP_RATE))


def _reference_samples(item: Item, sampling_rate: int) -> Floats:
    if item.reference is None:
        raise not_evaluated(
            item,
            "reference sounds, which the items do not name",
            "give a folder of their vectors with the setting `reference_features`",
        )
    return reference_sound(item, sampling_rate).samples


def _heard(prediction: Any, item: Item, context: Context) -> str:
    """Return the prediction's transcript, else that of its sound by Whisper."""
    if isinstance(prediction, Mapping) and "transcript" in prediction:
        return texts.answer_text(prediction["transcript"], item, texts.MAX_CAPTION)
    network = networks.speech(context, item)
    sound = predicted_sound(media_of(prediction), item, networks.SPEECH_RATE)
    return network.transcript(sound.samples)


def _least_error(heard: str, item: Item, context: Context) -> float:
    words = spoken_words if context.choice("wer_words", "spoken", "written") == "spoken" else str.split
    references = [words(reference) for reference in texts.references_of(item)]
    if not all(references):
        raise DataError(f"{item.where}: the reference {item.reference!r:.80} holds no word")
    return min(word_error_rate(" ".join(words(heard)), " ".join(reference)) for reference in references)


_CLAP = "CLAP (torch, transformers; weights `clap-htsat-unfused`), or vectors of sounds and texts"
_WHISPER = "Whisper (torch, transformers; weights `whisper-large-v3-turbo`), or transcripts"
_SMALL = "cosines computed by torch from the same small network; the network itself was not run here"
_GREEDY = "transformers' greedy decoding of a small network; the network itself was not run here"


SAMPLING_RATE = 16_000
FRAME, HOP, FFT = 400, 80, 512
"""Samples of a frame (25 ms, Hann window), of a step (5 ms), and of the transform."""
ORDER = 24
WARP = 0.42
"""Coefficient of the all-pass that bends the frequency axis to nearly mel; the customary value at 16 kHz."""
_FLOOR = 1e-10
"""Least power of a frequency bin, so that silence has a spectrum too."""
_GRID = 4096
_CHUNK = 4096
PITCH_CLASSES = 12


def mel_cepstra(samples: npt.NDArray[np.floating]) -> Doubles:
    """Return the mel-cepstral coefficients 0 to 24 of each frame of samples at 16 kHz, ``(frames, 25)``.

    The log amplitude spectrum is expanded in cosines of the warped frequency (Tokuda and others, 1994, without the
    iterative fit): ``log|S(w)| = sum c_m cos(m w~)``. What is shorter than a frame is padded with zeros.
    """
    padded = np.zeros(max(len(samples), FRAME))
    padded[: len(samples)] = samples
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    window, expansion = np.hanning(FRAME + 1)[:-1], _expansion()
    found = np.empty((len(frames), ORDER + 1))
    for start in range(0, len(frames), _CHUNK):
        spectra = np.fft.rfft(frames[start : start + _CHUNK] * window, FFT)
        power = spectra.real**2 + spectra.imag**2
        found[start : start + _CHUNK] = np.log(np.maximum(power, _FLOOR)) / 2 @ expansion.T
    return found


def mel_cepstral_distortion(first: npt.NDArray[np.floating], second: npt.NDArray[np.floating]) -> float:
    """Return the mean over frames of ``10 / ln 10 * sqrt(2 * sum (c_m - c'_m)^2)``, m = 1 to 24, in dB, at 16 kHz.

    Frames are paired in order ("plain": no time warping). Frames of the longer sound without a partner do not count
    (General-Bench specification §5.1).
    """
    frames = min(max(len(first), FRAME), max(len(second), FRAME))
    one, other = mel_cepstra(first[:frames]), mel_cepstra(second[:frames])
    distances = np.sqrt(2 * ((one[:, 1:] - other[:, 1:]) ** 2).sum(axis=1))
    return float(10 / math.log(10) * distances.mean())


def pitch_class_consistency(notes: Iterable[Note]) -> float | None:
    """Return the mean, over neighbouring bars, of the overlap of their pitch-class histograms, 0 to 1.

    A bar's histogram holds the shares of the notes that begin in it (C, C sharp, ... B). The overlap of two is the sum
    of the smaller shares. Bars without the beginning of a note are skipped. With fewer than two bars of notes it is
    ``None``.
    """
    bars: dict[int, list[int]] = {}
    for note in notes:
        bars.setdefault(note.bar, [0] * PITCH_CLASSES)[note.pitch % PITCH_CLASSES] += 1
    if len(bars) < 2:
        return None
    shares = [[count / sum(bars[bar]) for count in bars[bar]] for bar in sorted(bars)]
    overlaps = [math.fsum(map(min, before, after)) for before, after in pairwise(shares)]
    return math.fsum(overlaps) / len(overlaps)


@functools.cache
def _expansion() -> Doubles:
    """Return the matrix from log amplitudes of a transform's bins to mel-cepstral coefficients, ``(25, bins)``.

    Bins give cosine coefficients of the plain frequency, and ``c_k = 2/pi * integral of log|S(w(w~))| cos(k w~) dw~``
    (half of it for k = 0) is computed as a sum over midpoints. The sum is exact, because the integrand is a finite sum
    of cosines that the grid resolves.
    """
    bins = FFT // 2 + 1
    cosines = np.fft.irfft(np.eye(bins), FFT, axis=1)[:, :bins].T  # (coefficient, bin)
    cosines[1:-1] *= 2
    warped = (np.arange(_GRID) + 0.5) * math.pi / _GRID
    plain = warped - 2 * np.arctan2(WARP * np.sin(warped), 1 + WARP * np.cos(warped))
    scale = np.full((ORDER + 1, 1), 2.0 / _GRID)
    scale[0] = 1.0 / _GRID
    onto = scale * np.cos(np.outer(np.arange(ORDER + 1), warped))
    matrix: Doubles = onto @ np.cos(np.outer(plain, np.arange(bins))) @ cosines
    return matrix


def _distortion_state(prediction: Any, item: Item, _: Context) -> State:
    reference = reference_sound(item, SAMPLING_RATE)
    return mel_cepstral_distortion(
        predicted_sound(media_of(prediction), item, SAMPLING_RATE).samples, reference.samples
    )


def _consistency_state(prediction: Any, item: Item, _: Context) -> State:
    value = pitch_class_consistency(predicted_notes(prediction, item))
    if value is None:
        raise UnreadableAnswer(
            f"{item.where}: the piece has notes in one bar only: there is nothing to compare it with"
        )
    return 100 * value


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="mcd", form="audio", state=_distortion_state, value=mean,
        checked="the warping against its series, sounds of known spectra; no recorded vectors",
    ),
    Measure(
        name="pitch_class_consistency", form="notes", state=_consistency_state, value=mean, is_mean=True,
        checked="hand-computed pieces, as JSON and as MIDI; no recorded vectors",
    ),
    Measure("clap", "audio", clap_score, mean, needs=_CLAP, checked=_SMALL),
    Measure("style_clap", "audio", style_score, mean, needs=_CLAP, checked=_SMALL),
    Measure(
        "fad", "audio", audio_pair, audio_distance, is_costly=True,
        needs="VGGish (torch; weights `vggish`), CLAP with the option `fad_network`, or vectors of sounds",
        checked="network and spectrogram: the package torchvggish over the same random weights; distance: the vectors",
    ),
    Measure(
        "wer", "audio",
        lambda prediction, item, context: _least_error(_heard(prediction, item, context), item, context), mean,
        lambda item, context: _least_error("", item, context), needs=_WHISPER,
        checked=f"word error rate: the recorded vectors; transcript: {_GREEDY}",
    ),
    Measure(
        "cider/speech", "audio",
        lambda prediction, item, context: texts.caption_state(_heard(prediction, item, context), item, context),
        texts.cider_value, texts.no_caption, needs=f"{_WHISPER}; {texts.WITH_JAVA}",
        checked=f"CIDEr-D: computed by pycocoevalcap; transcript: {_GREEDY}",
    ),
)  # fmt: skip
