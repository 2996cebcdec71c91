import av
import numpy as np
import pytest
from msgspec.structs import replace

from lmms_eval.api.generation import RequestLimits
from lmms_eval.errors import FunctionError, MediaError, ModelError
from lmms_eval.models.hf.inputs import InputBuilder, placeholder_tokens
from lmms_eval.models.hf.load import load
from lmms_eval.models.hf.options import HFOptions

from .support import ask, converse, picture


@pytest.fixture(scope="module")
def loaded(tiny):
    return load(HFOptions(str(tiny), device="cpu"))


def builder(loaded, tiny, **arguments):
    return InputBuilder(loaded, HFOptions(str(tiny), **arguments))


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """Two seconds of 10 frames, growing brighter."""
    path = tmp_path_factory.mktemp("video") / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(20):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), number * 12, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def show(part):
    return [{"role": "user", "content": [part, {"type": "text", "text": "What?"}]}]


def test_template_pictures_and_size(loaded, tiny):
    request = builder(loaded, tiny).prepare(ask(0, "What?", [picture(30, 20), picture(40, 40)]))
    assert request.payload.text == "<s>User:<image><image> What?<end>\nAssistant:"
    assert [image.size for image in request.payload.images] == [(30, 20), (40, 40)]
    assert request.payload_bytes == len(request.payload.text) + 4 * (30 * 20 + 40 * 40)


def test_limits_of_a_request_take_the_place_of_the_arguments(loaded, tiny, video):
    limits = RequestLimits(max_pixels=100, max_frames=2)
    build = builder(loaded, tiny, max_pixels=400, max_num_frames=5)
    request = ask(0, "What?", [picture(30, 20)])
    assert [image.size for image in build.prepare(request).payload.images] == [(24, 16)]
    assert [image.size for image in build.prepare(replace(request, media=limits)).payload.images] == [(12, 8)]
    shown = converse(0, show({"type": "video", "url": str(video)}))
    assert [len(build.prepare(one).payload.images) for one in (shown, replace(shown, media=limits))] == [5, 2]


def test_literal_placeholders_are_neutralised(loaded, tiny):
    request = builder(loaded, tiny).prepare(ask(0, "Say <image> and <fake_token_around_image>.", [picture(30, 20)]))
    assert request.payload.text.count("<image>") == 1
    assert "Say < image> and < fake_token_around_image>." in request.payload.text


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("idefics3", ("<fake_token_around_image>", "<image>")),
        ("qwen2_vl", ("<|image_pad|>", "<|video_pad|>")),
        ("llava", ("<image>",)),
    ],
)
def test_placeholder_tokens(tiny_folders, name, tokens):
    loaded = load(HFOptions(str(tiny_folders[name]), device="cpu"))
    assert placeholder_tokens(loaded.processor, loaded.tokenizer, loaded.model.config) == tokens


def test_system_prompt_is_put_first_and_replaces(loaded, tiny, tmp_path):
    file = tmp_path / "system.txt"
    file.write_text("Be brief.")
    build = builder(loaded, tiny, system_prompt=str(file))
    assert build.prepare(ask(0, "Hi")).payload.text.startswith("<s>System: Be brief.<end>\nUser: Hi")
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "Be long."}]},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    ]
    text = build.prepare(converse(0, messages)).payload.text
    assert text.count("System:") == 1
    assert "Be long" not in text


def test_a_prefilled_answer_is_continued(loaded, tiny):
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "The answer is"}]},
    ]
    text = builder(loaded, tiny).prepare(converse(0, messages)).payload.text
    assert text == "<s>User: Hi<end>\nAssistant: The answer is"


def test_chat_template_from_a_file(loaded, tiny, tmp_path):
    file = tmp_path / "template.jinja"
    file.write_text("{% for m in messages %}[{{ m.role }}]{% endfor %}>")
    assert builder(loaded, tiny, chat_template=str(file)).prepare(ask(0, "Hi")).payload.text == "[user]>"


@pytest.mark.parametrize(
    "template", ["{{ messages | nothing }}", "{{ messages + 'text' }}", "{{ raise_exception('no') }}"]
)
def test_a_failing_template_fails_the_request_only(loaded, tiny, template):
    request = builder(loaded, tiny, chat_template=template).prepare(ask(0, "Hi"))
    assert request.payload.error.kind == "bad_request"
    assert "chat template" in request.payload.error.message


def test_sound_is_refused(loaded, tiny):
    payload = builder(loaded, tiny).prepare(converse(0, show({"type": "audio", "url": "x.wav"}))).payload
    assert payload.error.kind == "bad_request"
    assert "not sound" in payload.error.message


def test_unreadable_media_is_a_media_error(loaded, tiny, tmp_path):
    with pytest.raises(MediaError, match=r"nowhere\.png"):
        builder(loaded, tiny).prepare(ask(0, "Hi", [str(tmp_path / "nowhere.png")]))


def test_pictures_become_rgb_within_the_pixel_limit(loaded, tiny):
    payload = builder(loaded, tiny, max_pixels=400).prepare(ask(0, "Hi", [picture(80, 60).convert("RGBA")])).payload
    assert payload.images[0].mode == "RGB"
    assert 300 < payload.images[0].width * payload.images[0].height <= 400


@pytest.mark.parametrize(
    ("arguments", "times", "brightness"),
    [
        ({"max_num_frames": 4}, {}, [0, 72, 144, 228]),
        ({"max_num_frames": 32, "fps": 2.0}, {}, [0, 72, 144, 228]),
        ({"max_num_frames": 2}, {"start_time": 1.0}, [120, 228]),
        ({"max_num_frames": 32}, {}, [number * 12 for number in range(20)]),
    ],
)
def test_video_becomes_frames(loaded, tiny, video, arguments, times, brightness):
    request = converse(0, show({"type": "video", "url": str(video), **times}))
    payload = builder(loaded, tiny, **arguments).prepare(request).payload
    assert payload.text.count("<image>") == len(payload.images) == len(brightness)
    assert [np.asarray(image).mean() for image in payload.images] == pytest.approx(brightness, abs=6)


def test_part_of_a_video_given_as_mapping(loaded, tiny, video):
    mapping = {"url": str(video), "video_start": 1.0, "video_end": 1.5}
    payload = (
        builder(loaded, tiny, max_num_frames=2).prepare(converse(0, show({"type": "video", "url": mapping}))).payload
    )
    assert [np.asarray(image).mean() for image in payload.images] == pytest.approx([120, 180], abs=6)


def test_a_list_of_pictures_is_a_video(loaded, tiny):
    frames = [picture(8 + number, 8) for number in range(10)]
    payload = (
        builder(loaded, tiny, max_num_frames=4).prepare(converse(0, show({"type": "video", "url": frames}))).payload
    )
    assert [image.width for image in payload.images] == [8, 11, 14, 17]


def test_what_the_task_raises_is_not_laid_at_the_template(loaded, tiny):
    def build():
        raise FunctionError("doc_to_visual raised KeyError: 'image' (utils.py:2)")

    with pytest.raises(FunctionError, match="doc_to_visual"):
        builder(loaded, tiny).prepare(replace(ask(0, "What?"), build_messages=build))


SYSTEM = [
    {"role": "system", "content": [{"type": "text", "text": "Be long."}]},
    {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
]


def test_the_usual_system_message_where_there_is_none(loaded, tiny):
    build = builder(loaded, tiny, add_system_prompt=True)
    text = build.prepare(ask(0, "Hi")).payload.text
    assert text.startswith("<s>System: You are a helpful assistant.<end>\nUser: Hi")
    text = build.prepare(converse(0, SYSTEM)).payload.text
    assert "Be long." in text and "helpful" not in text
    both = builder(loaded, tiny, add_system_prompt=True, system_prompt="Be brief.")
    assert both.prepare(ask(0, "Hi")).payload.text.startswith("<s>System: Be brief.<end>")


def test_the_prompt_may_end_without_the_beginning_of_an_answer(loaded, tiny):
    payload = builder(loaded, tiny, add_generation_prompt=False).prepare(ask(0, "Hi")).payload
    assert payload.text == "<s>User: Hi<end>\n" and not payload.has_template
    payload = builder(loaded, tiny).prepare(ask(0, "Hi")).payload
    assert payload.text.endswith("Assistant:") and payload.has_template


@pytest.mark.parametrize(("value", "told"), [(True, "thinks"), (False, "answers"), (None, "unsaid")])
def test_thinking_is_a_variable_of_the_template(loaded, tiny, value, told):
    template = (
        "{% if enable_thinking is not defined %}unsaid{% elif enable_thinking %}thinks{% else %}answers{% endif %}"
    )
    build = builder(loaded, tiny, chat_template=template, enable_thinking=value)
    assert build.prepare(ask(0, "Hi")).payload.text == told


def sizes(loaded, tiny, message, **arguments):
    return [image.size for image in builder(loaded, tiny, **arguments).prepare(message).payload.images]


def test_sizes_of_pictures(loaded, tiny):
    message = ask(0, "Hi", [picture(80, 40), picture(8, 4)])
    assert sizes(loaded, tiny, message, max_image_size=20) == [(20, 10), (8, 4)]
    assert sizes(loaded, tiny, message, min_pixels=128) == [(80, 40), (16, 8)]
    assert sizes(loaded, tiny, message, min_pixels=128, max_pixels=800) == [(40, 20), (16, 8)]


def test_frames_share_the_pixels_of_a_video(loaded, tiny, video):
    request = converse(0, show({"type": "video", "url": str(video)}))
    four = sizes(loaded, tiny, request, max_num_frames=4, total_pixels=4 * 32 * 24)
    assert four == [(32, 24)] * 4
    listed = converse(0, show({"type": "video", "url": [picture(64, 48)] * 2}))
    assert sizes(loaded, tiny, listed, total_pixels=2 * 16 * 12) == [(16, 12)] * 2
    assert sizes(loaded, tiny, ask(0, "Hi", [picture(64, 48)]), total_pixels=10) == [(64, 48)]


def test_frames_by_a_rule(loaded, tiny, video):
    """Twenty frames of two seconds: two frames a second, at least six, the first and the last among them."""
    asked = converse(0, show({"type": "video", "url": str(video)}))
    limits = {"fps": 2.0, "min_frames": 6, "max_num_frames": 64}
    by_rule = builder(loaded, tiny, frame_rule="qwen-vl-utils", **limits).prepare(asked).payload.images
    assert len(by_rule) == 6 and len(builder(loaded, tiny, **limits).prepare(asked).payload.images) == 6
    assert len(builder(loaded, tiny, fps=2.0).prepare(asked).payload.images) == 4
    with pytest.raises(ModelError, match="frame_rule='even' is not valid: use one of qwen-vl-utils, inner"):
        HFOptions.from_arguments({"pretrained": str(tiny), "frame_rule": "even"})


def test_choices_share_the_rendering_of_their_prompt(loaded, tiny, monkeypatch):
    build, rendered = builder(loaded, tiny), []
    template = build.template_text
    monkeypatch.setattr(build, "template_text", lambda *given: rendered.append(given) or template(*given))
    first, second, third = (build.prepare(ask(number, text)).payload for number, text in enumerate(["A", "A", "B"]))
    assert second is first and third.text == first.text.replace("A<", "B<") and len(rendered) == 2
    for number in range(2):
        build.prepare(ask(number, "A", [picture(30, 20)]))
    assert len(rendered) == 4
