import pytest
from transformers.utils import is_torchvision_available

from lmms_eval.errors import MediaError

from ..hf.support import answers, ask, converse, picture
from .conformance import hear, make_model, sound


@pytest.fixture(scope="module")
def whisper(folder_of):
    return make_model("whisper", folder_of("whisper"), batch_size=4, language="en")


def test_language_and_task_of_whisper(folder_of, whisper):
    request = [hear(0, "Say it.", [sound(0)])]
    texts = {answers(whisper, request)[0].text}
    for more in ({"language": "de"}, {"language": "en", "task": "translate"}):
        texts.add(answers(make_model("whisper", folder_of("whisper"), **more), request)[0].text)
    assert len(texts) == 3


def test_whisper_does_not_read_the_text(whisper):
    got = answers(whisper, [hear(0, "Say it.", [sound(0)]), hear(1, "Anything else", [sound(0)])])
    assert got[0].text == got[1].text != ""


def test_finish_reason_and_limits_of_whisper(folder_of, whisper):
    got = answers(whisper, [hear(n, "", [sound(n)], max_new_tokens=limit) for n, limit in enumerate((3, 500))])
    assert (got[0].finish_reason, got[0].usage.output_tokens) == ("length", 3)
    assert got[1].error is None, "more tokens than the model can write are not an error"
    assert 3 < got[1].usage.output_tokens <= 60
    german = make_model("whisper", folder_of("whisper"), language="de", batch_size=2)
    short = answers(german, [hear(0, "", [sound(0)]), hear(1, "", [sound(3)])])
    assert "stop" in {response.finish_reason for response in short.values()}


def test_a_long_sound_is_heard_to_its_end(whisper):
    whole = sound(1, 65)
    cut = {**whole, "array": whole["array"][: 30 * 16000]}
    got = answers(whisper, [hear(0, "", [whole]), hear(1, "", [cut]), hear(2, "", [sound(5)])])
    assert {response.error for response in got.values()} == {None}
    assert got[0].text != got[1].text
    alone = answers(whisper, [hear(0, "", [whole])])
    assert alone[0].text == got[0].text


@pytest.mark.parametrize("limit", [4, 500])
def test_a_long_sound_does_not_tell_whether_a_piece_of_it_was_cut_off(whisper, limit):
    """Its tokens are those of several pieces: more than the limit of one, though no piece has reached it."""
    (got,) = answers(whisper, [hear(0, "", [sound(1, 65)], max_new_tokens=limit)]).values()
    assert (got.error, got.finish_reason) == (None, None)
    assert got.usage.output_tokens > limit or limit == 500


@pytest.mark.parametrize("count", [0, 2])
def test_whisper_takes_one_sound(whisper, count):
    got = answers(whisper, [hear(0, "Hi", [sound(n) for n in range(count)])])[0]
    assert got.error.kind == "bad_request"
    assert got.error.message == f"whisper takes exactly one sound in a request, not {count}"


def test_other_rates_and_files_are_resampled(folder_of, tmp_path):
    from lmms_eval.media.audio import encode_wav

    path = tmp_path / "sound.wav"
    item = sound(2, 1.0, rate=8000)
    path.write_bytes(encode_wav(item["array"], 8000))
    model = make_model("qwen2_audio", folder_of("qwen2_audio"))
    got = answers(model, [hear(0, "What?", [str(path)]), hear(1, "What?", [sound(2, 1.0, rate=8000)])])
    assert {response.error for response in got.values()} == {None}
    assert got[0].usage == got[1].usage
    prepared = model.prepare(hear(0, "What?", [str(path)]))
    assert len(prepared.payload.audios[0]) == pytest.approx(16000, abs=64)
    assert prepared.payload_bytes >= prepared.payload.audios[0].nbytes
    with pytest.raises(MediaError):
        model.prepare(hear(0, "What?", [str(tmp_path / "absent.wav")]))


def test_sounds_and_their_order_matter(folder_of):
    model = make_model("qwen2_audio", folder_of("qwen2_audio"), batch_size=4)
    one, two = sound(1), sound(2)
    got = answers(model, [hear(n, "What?", sounds) for n, sounds in enumerate(([one], [two], [one, two], [two, one]))])
    assert len({response.text for response in got.values()}) == 4
    assert got[2].usage.input_tokens > got[0].usage.input_tokens


def test_a_literal_sound_placeholder_is_no_sound(folder_of):
    model = make_model("qwen2_audio", folder_of("qwen2_audio"))
    assert answers(model, [hear(0, "Say <|AUDIO|> now", [sound(0)])])[0].error is None


@pytest.mark.skipif(is_torchvision_available(), reason="torchvision is installed: pictures are answered")
def test_pictures_for_phi4_need_torchvision(folder_of):
    model = make_model("phi4_multimodal", folder_of("phi4_multimodal"))
    got = answers(model, [ask(0, "What?", [picture(30, 30)]), ask(1, "What?"), hear(2, "What?", [sound(0)])])
    assert got[0].error.message == "phi4_multimodal needs torchvision for pictures, and it is not installed"
    assert got[1].error is None and got[2].error is None
    assert model.describe()["processor_without"] == ["image_processor"]


def test_text_models_get_plain_contents(folder_of):
    model = make_model("hf_text", folder_of("hf_text"))
    parts = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    messages = [{"role": "system", "content": parts[:1]}, {"role": "user", "content": parts}]
    assert (
        model.prepare(converse(0, messages)).payload.text == "<s>System: One.<end>\nUser: One.\nTwo.<end>\nAssistant:"
    )
