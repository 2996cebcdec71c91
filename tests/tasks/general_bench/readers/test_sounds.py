import numpy as np
import pytest

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.readers import sounds
from lmms_eval.tasks.general_bench.readers.sounds import predicted_sound, read_sound, reference_sound
from tests.cases import for_each
from tests.tasks.general_bench.measures.kit3d import an_item, write_wav

TASK = "EmotionalSpeechSynthesis"
TONE = 0.5 * np.sin(np.arange(8000) / 10)


def test_sounds_come_at_the_wanted_rate(tmp_path):
    (tmp_path / "audios").mkdir()
    write_wav(tmp_path / "audios" / "r.wav", TONE, 8000)
    write_wav(tmp_path / "p.wav", TONE)
    item = an_item(tmp_path, TASK, "r.wav", "audio")
    reference, predicted = reference_sound(item, 16_000), predicted_sound("p.wav", item)
    assert (reference.sampling_rate, predicted.sampling_rate) == (16_000, 16_000)
    assert reference.duration == pytest.approx(1, abs=0.01)
    assert np.abs(predicted.samples - TONE).max() < 1e-3


@for_each("value", [None, 1, "none.wav", "text.wav", "empty.wav", ".", "/dev/zero"])
def test_what_is_no_sound_counts_as_a_wrong_answer(tmp_path, value):
    (tmp_path / "text.wav").write_text("no sound")
    (tmp_path / "empty.wav").write_bytes(b"")
    with pytest.raises(UnreadableAnswer, match="item 7"):
        predicted_sound(value, an_item(tmp_path, TASK))


def test_a_damaged_reference_is_not_the_models_fault(tmp_path):
    (tmp_path / "r.wav").write_text("no sound")
    with pytest.raises(MediaError):
        reference_sound(an_item(tmp_path, TASK, "r.wav"))


def test_length_and_size_are_bounded(tmp_path, monkeypatch):
    write_wav(tmp_path / "p.wav", TONE)
    monkeypatch.setattr(sounds, "MAX_SECONDS", 0.25)
    with pytest.raises(MediaError, match=r"longer than 0\.25 s"):
        read_sound(tmp_path / "p.wav")
    monkeypatch.setattr(sounds, "MAX_SOUND_BYTES", 100)
    with pytest.raises(DataError, match="more than 100 are not read"):
        read_sound(tmp_path / "p.wav")
