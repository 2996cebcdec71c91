from __future__ import annotations

import base64
import io
import wave
from pathlib import Path

import numpy as np
import pytest

from lmms_eval.errors import MediaError
from lmms_eval.media import encode_wav, load_audio, wire_audio
from lmms_eval.media.audio import sniff
from lmms_eval.media.sent import recording
from tests.cases import for_each
from tests.media.draw import picture, tone, write_video


def write_sound(path: Path, codec: str, rate: int = 16000) -> Path:
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.layout = "mono"
        pcm = (tone(rate, 1.0) * 32767).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(pcm, format="s16", layout="mono")
        frame.sample_rate = rate
        resampler = av.AudioResampler(format=stream.format, layout="mono", rate=rate, frame_size=stream.frame_size)
        for part in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(part))
        container.mux(stream.encode(None))
    return path


def test_wav_of_an_array_is_sixteen_bit_mono() -> None:
    samples = tone()
    with wave.open(io.BytesIO(encode_wav(samples, 8000))) as found:
        assert (found.getnchannels(), found.getsampwidth(), found.getframerate()) == (1, 2, 8000)
        pcm = np.frombuffer(found.readframes(found.getnframes()), "<i2")
    assert np.abs(pcm / 32767 - samples).max() < 1e-4


def test_floats_are_clipped_and_integers_scaled() -> None:
    loud = load_audio(encode_wav(np.array([2.0, -2.0, np.nan, 0.5]), 8000)).samples
    assert loud.tolist() == pytest.approx([1, -1, 0, 0.5], abs=1e-3)
    assert load_audio({"array": np.array([16384, -32768], np.int16), "sampling_rate": 8000}).samples.tolist() == [
        0.5,
        -1,
    ]
    assert load_audio({"array": np.array([192, 0], np.uint8), "sampling_rate": 8000}).samples.tolist() == [0.5, -1]


def test_channels_are_averaged_on_either_axis() -> None:
    left, right = tone(), np.zeros_like(tone())
    for array in (np.stack([left, right]), np.stack([left, right], axis=1)):
        assert np.allclose(load_audio({"array": array, "sampling_rate": 8000}).samples, left / 2)


@for_each("array", [np.zeros(0), np.zeros((2, 2, 2))])
def test_shapes_without_meaning_are_refused(array: np.ndarray) -> None:
    with pytest.raises(MediaError, match="shape"):
        encode_wav(array, 8000)


@for_each(("name", "codec", "kind"), [("a.mp3", "libmp3lame", "mp3"), ("a.flac", "flac", "flac")])
def test_files_of_known_formats_go_out_untouched(name: str, codec: str, kind: str, tmp_path: Path) -> None:
    path = write_sound(tmp_path / name, codec)
    wire = wire_audio(path)
    assert (wire.format, base64.b64decode(wire.base64)) == (kind, path.read_bytes())
    assert wire.to_part() == {"type": "input_audio", "input_audio": {"data": wire.base64, "format": kind}}
    assert wire.data_url.startswith("data:audio/")


def test_other_files_become_wav(tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.m4a", "aac")
    assert sniff(path.read_bytes()) == ""
    wire = wire_audio(path)
    assert wire.format == "wav"
    assert load_audio(base64.b64decode(wire.base64)).duration == pytest.approx(1, abs=0.1)
    flac = write_sound(tmp_path / "a.flac", "flac")
    assert wire_audio(flac, formats=("wav", "mp3")).format == "wav"


def test_arrays_become_wav() -> None:
    wire = wire_audio({"array": tone(), "sampling_rate": 8000})
    assert wire.format == "wav"
    assert np.allclose(load_audio(base64.b64decode(wire.base64)).samples, tone(), atol=1e-3)


@for_each(("name", "codec"), [("a.mp3", "libmp3lame"), ("a.flac", "flac"), ("a.m4a", "aac"), ("", "")])
def test_how_long_a_sound_is_that_goes_out_is_noted(name: str, codec: str, tmp_path: Path) -> None:
    sound = write_sound(tmp_path / name, codec) if name else {"array": tone(), "sampling_rate": 8000}
    with recording() as sent:
        wire = wire_audio(sound)
    assert sent[0].seconds == pytest.approx(load_audio(sound).duration, abs=0.1)
    assert sent[0].nbytes == wire.nbytes


def test_a_header_that_tells_nothing_leaves_the_length_open(tmp_path: Path) -> None:
    path = tmp_path / "a.mp3"
    path.write_bytes(b"ID3" + b"\0" * 200)
    with recording() as sent:
        assert wire_audio(path).nbytes == 203
    assert sent[0].seconds is None


def test_decoding_keeps_the_tone(tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.flac", "flac")
    for rate in (None, 8000):
        sound = load_audio(path, rate)
        assert sound.sampling_rate == (rate or 16000)
        assert sound.duration == pytest.approx(1, abs=0.01)
        spectrum = np.abs(np.fft.rfft(sound.samples))
        assert int(spectrum.argmax()) == pytest.approx(440, abs=2)


def test_a_sound_that_is_longer_than_allowed_is_refused(tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.flac", "flac")
    assert load_audio(path, max_seconds=1.1).duration == pytest.approx(1, abs=0.01)
    with pytest.raises(MediaError, match=r"a\.flac is longer than 0\.5 s"):
        load_audio(path, max_seconds=0.5)


def test_arrays_are_resampled() -> None:
    sound = load_audio({"array": tone(8000, 1.0), "sampling_rate": 8000}, 16000)
    assert sound.sampling_rate == 16000 and len(sound.samples) == pytest.approx(16000, abs=20)


def test_mp3_is_told_from_aac_streams() -> None:
    assert sniff(b"\xff\xfb\x90\x00") == "mp3"
    assert sniff(b"ID3\x04") == "mp3"
    assert sniff(b"\xff\xf1\x50\x80") == ""
    assert sniff(b"\xff\xd8\xff\xe0") == ""


def test_unreadable_and_silent_sources_are_errors(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ogg"
    bad.write_bytes(b"nothing here")
    with pytest.raises(MediaError, match=r"bad\.ogg"):
        wire_audio(bad)
    silent = write_video(tmp_path / "silent.mp4", 5)
    with pytest.raises(MediaError, match="no sound"):
        load_audio(silent)
    with pytest.raises(MediaError, match="not a sound"):
        load_audio(picture())
