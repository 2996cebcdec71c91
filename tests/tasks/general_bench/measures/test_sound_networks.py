import json
import shutil

import numpy as np
import pytest
import torch

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import ConfigError, DataError, MediaError
from lmms_eval.tasks.general_bench.items import UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.measures.embeddings import frechet_from_embeddings
from lmms_eval.tasks.general_bench.measures.registry import measure_for
from lmms_eval.tasks.general_bench.measures.sounds import MEASURES, spoken_words
from lmms_eval.tasks.general_bench.networks.sounds import clap, speech, vggish
from tests.cases import for_each
from tests.tasks.general_bench.networks.kit import array, item
from tests.tasks.general_bench.networks.sound_kit import a_sound, save_clap, save_vggish, save_whisper

BY_NAME = {measure.name: measure for measure in MEASURES if measure.needs}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    save_clap(folder / "clap-htsat-unfused")
    save_whisper(folder / "whisper-large-v3-turbo")
    save_vggish(folder / "vggish.pth")
    return Context(weights=folder)


def cosine(first, second):
    return 100 * float(first[0] @ second[0] / np.linalg.norm(first[0]) / np.linalg.norm(second[0]))


def an_item(folder, task, **more):
    return item(folder, task, "audio", **more)


def options(**chosen):
    return Context(options=chosen)


def test_every_task_of_these_metrics_has_its_measure(tmp_path):
    tasks = {
        "AudioEdit": "clap",
        "MusicStyleTransfer": "style_clap",
        "VideoToAudio": "fad",
        "TextToSpeech": "wer",
        "ImageToSpeech": "cider/speech",
    }
    for task, name in tasks.items():
        assert measure_for(an_item(tmp_path, task).facts, "audio") is BY_NAME[name]
    assert len(BY_NAME) == 5 and all(measure.checked for measure in BY_NAME.values())


@for_each("name", list(BY_NAME))
def test_without_weights_nothing_is_evaluated(tmp_path, name):
    task = {"clap": "AudioEdit", "style_clap": "MusicStyleTransfer", "fad": "SongGeneration", "wer": "VoiceConversion"}
    it = an_item(tmp_path, task.get(name, "ImageToSpeech"), reference="x.wav")
    a_sound(tmp_path / "data" / "x.wav")
    a_sound(tmp_path / "out" / "x.wav")
    with pytest.raises(NotEvaluated, match=r"needs the weights .* `weights`"):
        BY_NAME[name].state("x.wav", it, Context())


class TestClap:
    state = staticmethod(BY_NAME["clap"].state)

    def test_the_cosine_of_sound_and_text(self, tmp_path, weights):
        it = an_item(tmp_path, "AudioEdit", prompt="a dog barks")
        name = a_sound(tmp_path / "out" / "a.wav", 3, rate=48_000)
        network = clap(weights, it)
        from lmms_eval.media import load_audio

        sound = load_audio(str(tmp_path / "out" / "a.wav")).samples
        wanted = cosine(network.sound(sound), network.texts(["a dog barks"]))
        assert self.state(name, it, weights) == pytest.approx(wanted, abs=1e-3)
        assert self.state({"path": name}, it, weights) == self.state(name, it, weights)

    def test_the_caption_of_the_output_beats_the_prompt(self, tmp_path, weights):
        name = a_sound(tmp_path / "out" / "a.wav")
        captioned = an_item(tmp_path, "AudioEdit", prompt="jazz", raw={"output": {"text": "rain"}})
        plain = an_item(tmp_path, "AudioEdit", prompt="rain")
        assert self.state(name, captioned, weights) == self.state(name, plain, weights)

    def test_vectors_made_elsewhere(self, tmp_path):
        it = an_item(tmp_path, "AudioEdit", id=3)
        array(tmp_path / "out" / "s.npy", [3.0, 4.0])
        array(tmp_path / "texts" / "data" / "3.npy", [1.0, 0.0])
        context = options(reference_features=str(tmp_path / "texts"))
        assert self.state({"features": "s.npy"}, it, context) == pytest.approx(60)

    @pytest.mark.parametrize(
        "prediction", [None, 5, "", "gone.wav", "note.txt", {"path": None}, ["a.wav"], "/dev/zero"]
    )
    def test_what_is_no_sound(self, tmp_path, weights, prediction):
        it = an_item(tmp_path, "AudioEdit")
        (tmp_path / "out" / "note.txt").write_text("no sound")
        with pytest.raises(UnreadableAnswer):
            self.state(prediction, it, weights)

    def test_the_value_is_the_mean(self):
        assert BY_NAME["clap"].value([10.0, -20.0]) == -5


class TestStyle:
    state = staticmethod(BY_NAME["style_clap"].state)

    def test_a_style_in_words_then_a_sound_then_the_prompt(self, tmp_path, weights):
        name = a_sound(tmp_path / "out" / "a.wav", 2, rate=48_000)
        a_sound(tmp_path / "data" / "ref.wav", 2, 2000, 48_000)
        it = an_item(tmp_path, "MusicStyleTransfer", prompt="make it rain", reference="ref.wav")
        network = clap(weights, it)
        from lmms_eval.media import load_audio

        made = network.sound(load_audio(str(tmp_path / "out" / "a.wav")).samples)
        reference = network.sound(load_audio(str(tmp_path / "data" / "ref.wav")).samples)
        assert self.state(name, it, weights) == pytest.approx(cosine(made, reference), abs=1e-3)
        named = an_item(tmp_path, "MusicStyleTransfer", reference="ref.wav", raw={"input": {"style": "jazz"}})
        assert self.state(name, named, weights) == pytest.approx(cosine(made, network.texts(["jazz"])), abs=1e-3)
        plain = an_item(tmp_path, "MusicStyleTransfer", prompt="make it rain")
        assert self.state(name, plain, weights) == pytest.approx(
            cosine(made, network.texts(["make it rain"])), abs=1e-3
        )

    def test_an_item_without_a_style_is_faulty(self, tmp_path, weights):
        name = a_sound(tmp_path / "out" / "a.wav")
        with pytest.raises(DataError, match="no style"):
            self.state(name, an_item(tmp_path, "MusicStyleTransfer", prompt=" "), weights)

    def test_a_missing_reference_is_not_the_answers_fault(self, tmp_path, weights):
        name = a_sound(tmp_path / "out" / "a.wav")
        with pytest.raises(MediaError):
            self.state(name, an_item(tmp_path, "MusicStyleTransfer", reference="gone.wav"), weights)


class TestFrechet:
    measure = BY_NAME["fad"]

    def test_vectors_of_all_sounds_together(self, tmp_path, weights):
        it = an_item(tmp_path, "VideoToAudio", reference="ref.wav")
        a_sound(tmp_path / "data" / "ref.wav", 3, 900)
        states = [
            self.measure.state(a_sound(tmp_path / "out" / f"{pitch}.wav", 2, pitch), it, weights)
            for pitch in (300, 1000)
        ]
        assert [[len(rows) for rows in state] for state in states] == [[2, 3], [2, 3]]
        json.dumps(states, allow_nan=False)
        network = vggish(weights, it)
        made = np.concatenate([network.rows(self.read(tmp_path / "out" / f"{pitch}.wav")) for pitch in (300, 1000)])
        given = np.concatenate([network.rows(self.read(tmp_path / "data" / "ref.wav"))] * 2)
        assert self.measure.value(states) == pytest.approx(frechet_from_embeddings(made, given), rel=1e-6)

    def test_equal_sounds_are_not_apart(self, tmp_path, weights):
        it = an_item(tmp_path, "VideoToAudio", reference="a.wav")
        a_sound(tmp_path / "data" / "a.wav", 4)
        state = self.measure.state(a_sound(tmp_path / "out" / "a.wav", 4), it, weights)
        assert self.measure.value([state]) == pytest.approx(0, abs=1e-6)

    def test_the_other_network(self, tmp_path, weights):
        it = an_item(tmp_path, "VideoToAudio", reference="a.wav")
        a_sound(tmp_path / "data" / "a.wav")
        context = Context(weights=weights.weights, options={"fad_network": "clap"})
        state = self.measure.state(a_sound(tmp_path / "out" / "a.wav", 12), it, context)
        assert [[len(row) for row in rows] for rows in state] == [[8, 8], [8]]
        with pytest.raises(ConfigError, match="fad_network"):
            self.measure.state("a.wav", it, options(fad_network="encodec"))

    def test_vectors_made_elsewhere(self, tmp_path):
        it = an_item(tmp_path, "VideoToAudio", id=3)
        rng = np.random.default_rng(0)
        made, given = rng.normal(size=(9, 4)).astype("f"), rng.normal(1, 2, size=(7, 4)).astype("f")
        array(tmp_path / "out" / "s.npy", made)
        array(tmp_path / "refs" / "data" / "3.npy", given)
        context = options(reference_features=str(tmp_path / "refs"))
        state = self.measure.state({"features": "s.npy"}, it, context)
        assert self.measure.value([state]) == pytest.approx(frechet_from_embeddings(made, given))
        array(tmp_path / "out" / "t.npy", made[:, :3])
        with pytest.raises(UnreadableAnswer, match="3 and 4 dimensions"):
            self.measure.state({"features": "t.npy"}, it, context)
        array(tmp_path / "out" / "u.npy", np.zeros((5000, 4)))
        with pytest.raises(UnreadableAnswer, match="5000 vectors"):
            self.measure.state({"features": "u.npy"}, it, context)

    def test_without_reference_sounds_nothing_is_evaluated(self, tmp_path, weights):
        name = a_sound(tmp_path / "out" / "a.wav")
        with pytest.raises(NotEvaluated, match="reference_features"):
            self.measure.state(name, an_item(tmp_path, "VideoToAudio"), weights)

    def test_a_null_prediction_is_not_the_reference(self, tmp_path, weights):
        a_sound(tmp_path / "data" / "a.wav")
        with pytest.raises(UnreadableAnswer):
            self.measure.state(None, an_item(tmp_path, "VideoToAudio", reference="a.wav"), weights)

    def test_states_of_different_networks_have_no_distance(self):
        with pytest.raises(DataError, match="different lengths"):
            self.measure.value([[[[1.0, 2.0]], [[1.0, 2.0]]], [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]]]])

    @staticmethod
    def read(path):
        from lmms_eval.media import load_audio

        return load_audio(str(path)).samples


class TestWords:
    measure = BY_NAME["wer"]

    def score(self, folder, said, reference, **chosen):
        it = an_item(folder, "TextToSpeech", reference=reference)
        return self.measure.state({"transcript": said}, it, options(**chosen))

    def test_a_transcript_made_elsewhere(self, tmp_path):
        assert self.score(tmp_path, "the cat sat", "the cat sat down") == 0.25
        assert self.score(tmp_path, "The cat, sat down!", "the cat sat down") == 0
        assert self.score(tmp_path, "a b c", ["x", "a b d"]) == pytest.approx(1 / 3)

    def test_words_as_they_are_written(self, tmp_path):
        assert self.score(tmp_path, "The cat.", "the cat", wer_words="written") == 1
        with pytest.raises(ConfigError, match="wer_words"):
            self.score(tmp_path, "a", "a", wer_words="spelt")

    def test_chinese_counts_by_character(self, tmp_path):
        assert self.score(tmp_path, "你好吗", "你好，妈。") == pytest.approx(1 / 3)

    def test_what_whisper_hears(self, tmp_path, weights):
        name = a_sound(tmp_path / "out" / "a.wav", 2)
        it = an_item(tmp_path, "TextToSpeech", reference="no")
        heard = speech(weights, it).transcript(TestFrechet.read(tmp_path / "out" / "a.wav"))
        assert heard
        told = self.measure.state({"transcript": heard}, it, Context())
        assert self.measure.state(name, it, weights) == told

    def test_an_unanswered_item_said_nothing(self, tmp_path):
        it = an_item(tmp_path, "TextToSpeech", reference="two words")
        assert self.measure.unanswered(it, Context()) == 1
        assert self.measure.value([0.5, 1.0]) == 0.75

    @pytest.mark.parametrize("said", [None, 5.5, ["a"], True, "a" * 6000, {}])
    def test_a_transcript_that_is_none(self, tmp_path, said):
        if said == 5.5:
            assert self.score(tmp_path, said, "5 5") == 0
            return
        with pytest.raises(UnreadableAnswer):
            self.score(tmp_path, said, "a")

    @pytest.mark.parametrize("reference", [None, "", "...", ["a", "!"], {}])
    def test_a_reference_without_words_is_faulty(self, tmp_path, reference):
        with pytest.raises(DataError, match="reference"):
            self.score(tmp_path, "a", reference)


@pytest.mark.skipif(shutil.which("java") is None, reason="the caption toolkit's tokenizer needs Java")
class TestSpeechCaptions:
    measure = BY_NAME["cider/speech"]

    def test_the_captions_own_words_are_best(self, tmp_path):
        captions = ["a dog barks loudly at the rain", "two people play jazz in a bar", "the train leaves the station"]
        items = [an_item(tmp_path, "ImageToSpeech", reference=[caption]) for caption in captions]
        states = [
            self.measure.state({"transcript": caption.title() + "."}, it, Context())
            for caption, it in zip(captions, items, strict=True)
        ]
        assert self.measure.value(states) == pytest.approx(1000)
        nothing = [self.measure.unanswered(it, Context()) for it in items]
        assert self.measure.value(nothing) == 0
        assert self.measure.value([states[0], *nothing[1:]]) == pytest.approx(1000 / 3)

    def test_what_whisper_hears(self, tmp_path, weights):
        name = a_sound(tmp_path / "out" / "a.wav", 2)
        it = an_item(tmp_path, "ImageToSpeech", reference="a dog")
        state = self.measure.state(name, it, weights)
        assert state[1] == ["a dog"]
        heard = speech(weights, it).transcript(TestFrechet.read(tmp_path / "out" / "a.wav"))
        assert state == self.measure.state({"transcript": heard}, it, Context())


@for_each(
    ("text", "words"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("don't 'stop' it’s", ["don't", "stop", "it's"]),
        ("你好 world", ["你", "好", "world"]),
        ("Сайн байна уу?", ["сайн", "байна", "уу"]),
        ("ＡＢＣ １２", ["abc", "12"]),
        ("well-known", ["well", "known"]),
        (" ... ", []),
    ],
)
def test_spoken_words(text, words):
    assert spoken_words(text) == words


def test_the_same_sound_gives_the_same_state(tmp_path, weights):
    it = an_item(tmp_path, "AudioEdit", prompt="rain")
    name = a_sound(tmp_path / "out" / "a.wav", 12)
    torch.manual_seed(0)
    first = BY_NAME["clap"].state(name, it, weights)
    torch.manual_seed(9)
    assert BY_NAME["clap"].state(name, it, weights) == first
