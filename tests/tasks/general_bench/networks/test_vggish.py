import numpy as np
import pytest
import torch

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks.sounds import examples, forward, mel_bands, tensors, vggish
from tests.tasks.general_bench.networks.kit import item
from tests.tasks.general_bench.networks.sound_kit import save_vggish, tone, vggish_weights

RECORDED = (
    (0, 0, 1.2018),
    (0, 5, 1.38042),
    (10, 7, -0.68099),
    (48, 30, 2.84289),
    (95, 40, -1.66289),
    (95, 63, -4.59828),
)
"""Window, band, value."""
RECORDED_SUM = -23162.56


def test_spectrogram_of_a_sweep():
    """Numbers that the package torchvggish 0.2 gives for the same sound."""
    time = np.arange(16_000) / 16_000
    found = examples(0.4 * np.sin(2 * np.pi * (200 * time + 1500 * time * time)))
    assert found.shape == (1, 96, 64)
    for window, band, value in RECORDED:
        assert found[0, window, band] == pytest.approx(value, abs=2e-5)
    assert found.sum() == pytest.approx(RECORDED_SUM, abs=0.1)


def test_vectors_are_of_whole_096_seconds():
    assert len(examples(tone(0.2))) == 1
    assert len(examples(tone(0.975))) == 1
    assert len(examples(tone(1.93))) == 1
    assert len(examples(tone(1.94))) == 2
    assert len(examples(tone(50))) == 52


def test_silence_is_the_offset():
    assert examples(np.zeros(10, np.float32)) == pytest.approx(np.full((1, 96, 64), np.log(0.01)))


def test_bands_are_triangles_without_the_constant_part():
    bands = mel_bands()
    assert bands.shape == (257, 64)
    assert not bands[0].any()
    assert not bands[: int(125 / 31.25) + 1].any()
    assert not bands[int(7500 / 31.25) + 1 :].any()
    assert 0.5 < bands.max() <= 1


def test_the_network_is_its_layers_one_after_another():
    weights = vggish_weights()
    nn = torch.nn
    layers, pooled = [], {0: True, 3: True, 6: False, 8: True, 11: False, 13: True}
    for number in pooled:
        weight = weights[f"features.{number}.weight"]
        layer = nn.Conv2d(weight.shape[1], weight.shape[0], 3, padding=1)
        layer.load_state_dict({part: weights[f"features.{number}.{part}"] for part in ("weight", "bias")})
        layers += [layer, nn.ReLU(), *([nn.MaxPool2d(2, 2)] if pooled[number] else [])]
    x = torch.randn(2, 1, 96, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        seen = nn.Sequential(*layers)(x).numpy()
        assert seen.shape == (2, 2, 6, 4)
        rows = seen.transpose(0, 2, 3, 1).reshape(2, -1)
        for number in (0, 2, 4):
            rows = (
                rows @ weights[f"embeddings.{number}.weight"].numpy().T + weights[f"embeddings.{number}.bias"].numpy()
            )
            rows = rows if number == 4 else np.maximum(rows, 0)
        assert forward(x, weights).numpy() == pytest.approx(rows, abs=1e-4)
    assert rows.min() < 0  # the last layer is not rectified


def test_names_of_torchaudio_are_known(tmp_path):
    network = vggish(Context(weights=save_vggish(tmp_path / "first" / "vggish.pth").parent), item(tmp_path))
    names = {"features.": "features_network.", "embeddings.": "embedding_network."}
    renamed = {next(names[p] + n[len(p) :] for p in names if n.startswith(p)): t for n, t in vggish_weights().items()}
    (tmp_path / "second").mkdir()
    torch.save(renamed, tmp_path / "second" / "vggish.pt")
    other = vggish(Context(weights=tmp_path / "second"), item(tmp_path))
    sound = tone(2.5)
    assert other.rows(sound).tolist() == network.rows(sound).tolist()
    assert network.rows(sound).shape == (2, 128)


def test_tensors_are_named():
    assert sorted(tensors()) == sorted(vggish_weights())


def test_absent_and_foreign_weights(tmp_path):
    with pytest.raises(NotEvaluated, match=r"fad of 'VideoToAudio' needs the weights vggish"):
        vggish(Context(weights=tmp_path), item(tmp_path, "VideoToAudio"))
    torch.save({"features.0.weight": torch.zeros(1)}, tmp_path / "vggish.pth")
    with pytest.raises(NotEvaluated, match="tensors are missing"):
        vggish(Context(weights=tmp_path), item(tmp_path, "VideoToAudio"))
