import numpy as np
import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks.sounds import CLAP_RATE, CLAP_SECONDS, clap, cut
from tests.tasks.general_bench.networks.kit import item
from tests.tasks.general_bench.networks.sound_kit import save_clap, tone


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    save_clap(folder / "clap-htsat-unfused")
    return folder


@pytest.fixture
def network(weights, tmp_path):
    return clap(Context(weights=weights), item(tmp_path, "AudioEdit"))


def sound(seconds, pitch=440.0):
    return tone(seconds, pitch, CLAP_RATE)


def test_vectors_are_those_of_transformers(network, weights):
    import torch
    from transformers import AutoTokenizer, ClapFeatureExtractor, ClapModel

    source = weights / "clap-htsat-unfused"
    model = ClapModel.from_pretrained(source).eval()
    tokens = AutoTokenizer.from_pretrained(source)(["a dog barks", "rain"], padding=True, return_tensors="pt")
    made = ClapFeatureExtractor.from_pretrained(source)(
        sound(10), truncation="rand_trunc", sampling_rate=CLAP_RATE, return_tensors="pt"
    )
    with torch.no_grad():
        found = model(**tokens, input_features=made["input_features"].float(), is_longer=made["is_longer"])
    assert network.texts(["a dog barks", "rain"]) == pytest.approx(found.text_embeds.numpy(), abs=1e-5)
    assert network.sound(sound(10)) == pytest.approx(found.audio_embeds.numpy(), abs=1e-5)


def test_sounds_and_texts_are_told_apart(network):
    rows = network.texts(["a dog barks", "rain"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert abs(rows[0] - rows[1]).max() > 1e-3
    assert abs(network.sound(sound(2, 300)) - network.sound(sound(2, 3000))).max() > 1e-3


def test_the_same_sound_gives_the_same_numbers(network):
    long = sound(23)
    assert network.sound(long).tolist() == network.sound(long).tolist()


def test_a_long_sound_is_the_mean_of_its_parts(network):
    first, second = sound(10, 300), sound(10, 2000)
    whole = np.concatenate([first, second, sound(0.5)])
    assert network.parts(whole) == pytest.approx(
        np.concatenate([network.parts(first), network.parts(second)]), abs=1e-5
    )
    assert network.sound(whole) == pytest.approx(network.parts(whole).mean(axis=0, keepdims=True), abs=1e-6)


def test_parts():
    length = CLAP_SECONDS * CLAP_RATE
    assert [len(part) for part in cut(np.zeros(2 * length + CLAP_RATE), length)] == [length, length, CLAP_RATE]
    assert [len(part) for part in cut(np.zeros(length + CLAP_RATE - 1), length)] == [length]
    assert [len(part) for part in cut(np.zeros(5), length)] == [5]


def test_long_texts_are_cut(network):
    assert network.texts(["a dog barks " * 50]).shape == (1, 8)


def test_the_checkpoint_with_fusion_gives_no_random_numbers(tmp_path):
    save_clap(tmp_path / "clap-htsat-unfused", fused=True)
    network = clap(Context(weights=tmp_path), item(tmp_path, "AudioEdit"))
    first, second = sound(2, 300), sound(2, 2000)
    found = []
    for seed in range(4):
        np.random.seed(seed)  # by which the processing draws the sound that it takes for a longer one
        found.append(network.parts(np.concatenate([np.resize(first, 10 * CLAP_RATE), second])).tolist())
    assert found[0] == found[1] == found[2] == found[3]


def test_absent_and_foreign_weights(tmp_path):
    with pytest.raises(NotEvaluated, match="clap of 'AudioEdit' needs the weights laion/clap-htsat-unfused"):
        clap(Context(), item(tmp_path, "AudioEdit"))
    (tmp_path / "clap-htsat-unfused").mkdir()
    with pytest.raises(NotEvaluated, match="cannot be loaded"):
        clap(Context(weights=tmp_path), item(tmp_path, "AudioEdit"))
