import json
import shutil

import numpy as np
import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.networks.sounds import MAX_TOKENS, SPEECH_RATE, SPEECH_SECONDS, speech
from tests.tasks.general_bench.networks.kit import item
from tests.tasks.general_bench.networks.sound_kit import save_whisper, tone

KEY = "whisper-large-v3-turbo"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    save_whisper(folder / KEY)
    return folder


@pytest.fixture
def network(weights, tmp_path):
    return speech(Context(weights=weights), item(tmp_path, "TextToSpeech"))


def of_transformers(network, samples):
    """Greedy decoding by ``generate``, with every token that is no text barred."""
    import torch

    settings = network.model.generation_config
    made = network.features(samples, sampling_rate=SPEECH_RATE, return_tensors="pt")
    first = settings.decoder_start_token_id
    barred = [*settings.suppress_tokens, *range(first, network.model.config.vocab_size)]
    languages = {"task": "transcribe"} if settings.is_multilingual else {}
    with torch.no_grad():
        tokens = network.model.generate(
            made["input_features"], suppress_tokens=barred, return_timestamps=False, do_sample=False, num_beams=1,
            max_new_tokens=20 if languages else 22, attention_mask=torch.ones(1, 3000, dtype=torch.long), **languages,
        )  # fmt: skip
    return network.tokenizer.decode(tokens[0], skip_special_tokens=True).strip()


@pytest.mark.parametrize("pitch", [300.0, 900.0])
def test_the_transcript_is_that_of_transformers(network, pitch):
    said = network.transcript(tone(2, pitch))
    assert said
    assert said == of_transformers(network, tone(2, pitch))


def test_a_network_of_one_language(tmp_path):
    save_whisper(tmp_path / KEY, multilingual=False, seed=5)
    network = speech(Context(weights=tmp_path), item(tmp_path, "TextToSpeech"))
    assert network.transcript(tone(2)) == of_transformers(network, tone(2))


def test_what_follows_30_seconds_is_not_heard(network):
    whole = tone(31, 500)
    assert network.transcript(whole) == network.transcript(whole[: SPEECH_SECONDS * SPEECH_RATE])
    assert network.transcript(np.zeros(1, np.float32)) == network.transcript(np.zeros(16_000, np.float32))


def test_silence_at_the_end_changes_nothing(network):
    assert network.transcript(tone(1)) == network.transcript(np.concatenate([tone(1), np.zeros(8000, np.float32)]))


def test_tokens_are_bounded_by_the_network(network):
    prompt = 4
    assert len(network.transcript(tone(3, 700)).encode("utf-8", "replace")) <= 3 * (24 - prompt)
    assert MAX_TOKENS == 224


def test_absent_and_unusable_weights(weights, tmp_path):
    with pytest.raises(NotEvaluated, match="wer of 'TextToSpeech' needs the weights openai/whisper-large-v3-turbo"):
        speech(Context(weights=tmp_path), item(tmp_path, "TextToSpeech"))
    shutil.copytree(weights / KEY, tmp_path / KEY)
    settings = json.loads((tmp_path / KEY / "generation_config.json").read_text())
    settings.pop("no_timestamps_token_id")
    (tmp_path / KEY / "generation_config.json").write_text(json.dumps(settings))
    with pytest.raises(NotEvaluated, match="no time stamps"):
        speech(Context(weights=tmp_path), item(tmp_path, "TextToSpeech"))
