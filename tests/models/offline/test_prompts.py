"""Prompts of the engines: templates, plain texts, places of videos, continuations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from lmms_eval.api.generation import RequestLimits
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Sight
from lmms_eval.errors import ModelError
from lmms_eval.models.offline.prompts import EnginePrompt
from tests.cases import for_each
from tests.media.draw import write_video
from tests.models.offline.engines import TEMPLATE, TEXTS_TEMPLATE, Recorder, write_tokenizer
from tests.models.offline.support import FAKES, build
from tests.models.openai.support import ask, make_request


def text_of(folder: str, tokens: list[int]) -> str:
    from transformers import AutoTokenizer

    return "".join(AutoTokenizer.from_pretrained(folder).convert_ids_to_tokens(tokens))


@pytest.mark.parametrize("name", FAKES)
def test_the_prompt_is_the_models_template_with_one_beginning(name: str, folder: str, seen: Recorder) -> None:
    model = build(name, folder, system_prompt="Hi", chat_template_kwargs='{"thinking": true}')
    ask(model, [make_request("one", "Q?", visuals=[Image.new("RGB", (2, 2))])])
    prompt = seen.calls[0]["prompt"]
    tokens = prompt["prompt_token_ids"] if name == "vllm" else prompt
    assert text_of(folder, tokens).startswith("<s>[system]Hi[user]<image>Q?") and tokens.count(0) == 1
    assert text_of(folder, tokens).endswith("[thinking][assistant]")


def test_limits_of_a_request_take_the_place_of_the_arguments(folder: str, seen: Recorder, tmp_path: Path) -> None:
    request = make_request("one", "Q?", visuals=[Image.new("RGB", (30, 20)), str(write_video(tmp_path / "a.mp4", 12))])
    model = build("vllm", folder, max_pixels=400, max_frames_num=5)
    ask(model, [request, replace(request, id="two", media=RequestLimits(max_pixels=100, max_frames=2))])
    media = [call["prompt"]["multi_modal_data"] for call in seen.calls]
    assert [one["image"][0].size for one in media] == [(24, 16), (12, 8)]
    assert [len(one["video"][0][0]) for one in media] == [5, 2]
    assert model.media_limits >= {"max_pixels", "fps"} and "tiles" not in model.media_limits


def test_a_list_of_pictures_is_a_video(folder: str, seen: Recorder) -> None:
    pictures = [Image.new("RGB", (6 + number, 4), (number, 0, 0)) for number in range(9)]
    part = {"type": "video", "url": pictures}
    messages = ChatMessages.model_validate({"messages": [{"role": "user", "content": [part]}]})
    ask(build("vllm", folder, max_frames_num=3, fps=2), [make_request("one", messages=messages)])
    frames, facts = seen.calls[0]["prompt"]["multi_modal_data"]["video"][0]
    assert frames.shape == (3, 4, 6, 3) and [int(frame[0, 0, 0]) for frame in frames] == facts["frames_indices"]
    assert facts["fps"] == 2 and facts["total_num_frames"] == 9


@pytest.mark.parametrize("name", FAKES)
def test_frames_are_pictures_where_the_template_has_no_place_for_a_video(
    name: str, tmp_path: Path, seen: Recorder
) -> None:
    film = write_video(tmp_path / "film.mp4", 12)
    template = TEMPLATE.replace("{% else %}<{{ p.type }}>", "{% elif p.type == 'image' %}<image>")
    folder = write_tokenizer(tmp_path / "pictures", template=template)
    ask(build(name, folder, max_frames_num=3), [make_request("one", "Q?", visuals=[str(film)])])
    call = seen.calls[0]
    tokens, images = (
        (call["prompt"]["prompt_token_ids"], call["prompt"]["multi_modal_data"]["image"])
        if name == "vllm"
        else (call["prompt"], call["media"][0])
    )
    assert len(images) == 3 and text_of(folder, tokens) == "<s>[user]<image><image><image>Q?[assistant]"


def score(model: Any, continuations: dict[str, str], text: str = "Q?") -> Any:
    asked = [
        replace(make_request(name, text), kind="loglikelihood", continuation=continuation)
        for name, continuation in continuations.items()
    ]
    return ask(model, asked)


@pytest.mark.parametrize("name", FAKES)
def test_likelihoods_are_of_the_continuations_tokens(name: str, folder: str, seen: Recorder) -> None:
    seen.logprobs = [(-1.0, -0.5), (-0.25, -0.25)]
    model = build(name, folder)
    assert model.kinds == {"generate_until", "loglikelihood", "loglikelihood_rolling"}
    found = score(model, {"two": "AB", "one": "B"})
    assert (found["two"].loglikelihood, found["two"].is_greedy) == (-1.25, False)
    assert (found["one"].loglikelihood, found["one"].is_greedy) == (-0.25, True)
    tokens = [call["prompt"]["prompt_token_ids"] if name == "vllm" else call["prompt"] for call in seen.calls]
    assert [text_of(folder, prompt) for prompt in tokens] == ["<s>[user]Q?[assistant]AB", "<s>[user]Q?[assistant]B"]
    empty = score(model, {"nothing": ""})["nothing"].error
    assert empty is not None and empty.kind == "bad_request" and "adds no token" in empty.message


@pytest.mark.parametrize(("template", "text"), [(None, "<s>[user]Q?[assistant]A"), ("none", "<s>Q? A")])
def test_an_implied_delimiter_is_dropped_after_a_template(
    template: str | None, text: str, folder: str, seen: Recorder
) -> None:
    seen.logprobs = [(-1.0, -0.5)]
    asked = replace(make_request("one", "Q?"), kind="loglikelihood", continuation=" A", implied_delimiter=" ")
    ask(build("vllm", folder, chat_template=template), [asked])
    assert text_of(folder, seen.calls[0]["prompt"]["prompt_token_ids"]) == text


@pytest.mark.parametrize("name", FAKES)
def test_a_template_that_expects_texts_gets_texts(name: str, tmp_path: Path, seen: Recorder) -> None:
    texts = write_tokenizer(tmp_path / "texts", template=TEXTS_TEMPLATE)
    model = build(name, texts, system_prompt="Hi")
    found = ask(model, [make_request("one", "Q?"), make_request("two", "Q?", visuals=[Image.new("RGB", (2, 2))])])
    prompt = seen.calls[0]["prompt"]
    assert (
        text_of(texts, prompt["prompt_token_ids"] if name == "vllm" else prompt) == "<s>[system]Hi[user]Q?[assistant]"
    )
    refused = found["two"].error
    assert refused is not None and refused.kind == "bad_request" and "takes texts alone" in refused.message


def test_a_base_model_reads_the_plain_context(tmp_path: Path, seen: Recorder) -> None:
    base = write_tokenizer(tmp_path / "base", template=None)
    model = build("vllm", base, chat_template="none")
    seen.logprobs = [(-1.0, -1.0)]
    found = score(model, {"one": "A"}, "Q:")
    assert text_of(base, seen.calls[0]["prompt"]["prompt_token_ids"]) == "<s>Q:A"
    assert found["one"].loglikelihood == -1.0
    assert model.identity()["chat_template"] == "none"


@pytest.mark.usefixtures("seen")
@for_each("template", [TEMPLATE, TEXTS_TEMPLATE])
def test_a_plain_text_gets_no_template(tmp_path: Path, template: str) -> None:
    folder = write_tokenizer(tmp_path / "chat", template=template)
    model = build("vllm", folder)
    content = [{"type": "text", "text": "Q:"}]
    messages = ChatMessages.model_validate({"messages": [{"role": "user", "content": content}], "is_plain": True})
    request = make_request("one", messages=messages)
    assert text_of(folder, model.prepare(request).payload.prompt.token_ids) == "<s>Q:"
    asked = replace(request, kind="loglikelihood", continuation="A", implied_delimiter="A", generation={})
    assert text_of(folder, model.prepare(asked).payload.token_ids) == "<s>Q:A"


def test_a_model_without_template(tmp_path: Path, seen: Recorder) -> None:
    bare = write_tokenizer(tmp_path / "bare", template=None)
    with pytest.raises(ModelError, match=r"chat_template=|cannot be loaded"):
        build("vllm", bare)
    given = build("vllm", bare, chat_template="{{ 'x' }}")
    assert given.prepare(make_request("one")).payload.prompt.token_ids


PROMPTED = "{% for m in messages %}{{ m.content[0].text }}{% endfor %}{% if enable_thinking %}[think]{% endif %}"
PROMPTED += "{% if add_generation_prompt %}[assistant]{% endif %}"


@pytest.mark.parametrize("name", FAKES)
def test_variables_of_the_template(name: str, folder: str, seen: Recorder) -> None:
    for arguments in ({"enable_thinking": True}, {"add_generation_prompt": False}):
        ask(build(name, folder, chat_template=PROMPTED, **arguments), [make_request("one", "Q?")])
    prompts = [call["prompt"]["prompt_token_ids"] if name == "vllm" else call["prompt"] for call in seen.calls]
    assert [text_of(folder, prompt) for prompt in prompts] == ["Q?[think][assistant]", "Q?"]


def test_frames_share_the_pixels_of_a_video(tmp_path: Path, folder: str, seen: Recorder) -> None:
    film = str(write_video(tmp_path / "film.mp4", 12))
    model = build("vllm", folder, num_frames=3, total_pixels=3 * 200, max_length=9000)
    ask(model, [make_request("one", "Q?", visuals=[film])])
    frames, _ = seen.calls[0]["prompt"]["multi_modal_data"]["video"][0]
    count, height, width, _ = frames.shape
    assert count == 3 and 150 < height * width <= 200
    assert seen.started["max_model_len"] == 9000


def test_tokens_of_pictures_are_those_that_the_engine_adds() -> None:
    prompt = EnginePrompt([1, 2, 3, 4], images=[object(), object()])
    assert prompt.sight(42) == Sight(tokens=40), "two placeholders became 40 tokens"
    assert prompt.sight(None) is None and prompt.sight(4) is None, "an engine that does not count, or not those"
    assert EnginePrompt([1, 2]).sight(2) is None
    assert EnginePrompt([1, 2], images=[object()], sounds=[object()]).sight(9) is None
