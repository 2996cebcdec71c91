import numpy as np
import pytest

from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.sounds import MEASURES, mel_cepstral_distortion
from tests.tasks.general_bench.measures.kit3d import CONTEXT, END, an_item, midi_bytes, midi_note, write_wav

BY_NAME = {measure.name: measure for measure in MEASURES}


def test_distortion_of_two_files(tmp_path):
    source = np.random.default_rng(0)
    first, second = source.normal(0, 0.1, (2, 8000))
    write_wav(tmp_path / "r.wav", first)
    write_wav(tmp_path / "p.wav", second)
    item = an_item(tmp_path, "EmotionalSpeechSynthesis", "r.wav", "audio")
    found = BY_NAME["mcd"].state("p.wav", item, CONTEXT)
    assert found == pytest.approx(mel_cepstral_distortion(second, first), rel=1e-2)
    assert BY_NAME["mcd"].state({"path": "r.wav", "text": "beside it"}, item, CONTEXT) == 0
    assert BY_NAME["mcd"].value([found, 0]) == found / 2


def test_consistency_of_notes_and_midi_in_percent(tmp_path):
    (tmp_path / "p.mid").write_bytes(midi_bytes(*(midi_note(60, 96) * 4 + midi_note(p, 96) + END for p in (60, 61))))
    item, measure = an_item(tmp_path, "PopMusicGeneration", form="notes"), BY_NAME["pitch_class_consistency"]
    assert measure.state([[0, 1, 60], [1, 2, 62], [4, 5, 60]], item, CONTEXT) == 50
    # bars of 384 ticks: ons at 96, 288, 480, 672, 864 in both tracks
    assert measure.state("p.mid", item, CONTEXT) == pytest.approx((100 + 50) / 2)
    assert measure.value([50, 100]) == 75
    with pytest.raises(UnreadableAnswer, match="one bar only"):
        measure.state([[0, 1, 60]], item, CONTEXT)
