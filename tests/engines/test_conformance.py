"""The conformance suite of all back ends, against the real vLLM: its engine in this process, and its server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval.api.request import Response
from lmms_eval.models.offline.prompts import PromptRenderer
from lmms_eval.models.offline.settings import read_settings
from tests.engines.conftest import build
from tests.engines.models import VIDEO_TEMPLATE
from tests.media.draw import write_video
from tests.models.families import conformance
from tests.models.hf.support import answers, ask, converse, picture
from tests.models.whole_texts import rolling

FRAMES = 5
FORMS = ("vllm", "openai")
PICTURES = ("text", "1 image", "several images")


@pytest.fixture(params=FORMS)
def vision(request: pytest.FixtureRequest) -> Any:
    """The embedded model: ``--model vllm``, or ``--model openai`` with vLLM's server."""
    if request.param == "vllm":
        return request.getfixturevalue("vllm_vision")
    return build("openai", model="m", base_url=request.getfixturevalue("vision_server"), max_frames_num=FRAMES)


@pytest.fixture(params=FORMS)
def text(request: pytest.FixtureRequest) -> Any:
    """SmolLM2, whose template expects texts."""
    if request.param == "vllm":
        return request.getfixturevalue("vllm_text")
    return build("openai", model="m", base_url=request.getfixturevalue("text_server"))


@pytest.fixture(scope="module")
def hf(embedded: Path) -> Any:
    return build("hf", pretrained=str(embedded), dtype="float32", device="cpu", batch_size=4)


def told(responses: dict[int, Response]) -> dict[int, tuple[str | None, str | None, Any]]:
    return {number: (found.text, found.finish_reason, found.error) for number, found in responses.items()}


def test_answers_are_those_of_hf_and_of_a_request_alone(vision: Any, hf: Any) -> None:
    requests = [request for column in PICTURES for request in conformance.MIXED[column]()]
    together = told(answers(vision, requests))
    alone = {number: answer for request in requests for number, answer in told(answers(vision, [request])).items()}
    assert together == alone == told(answers(hf, requests))
    assert len({answer[0] for answer in together.values()}) > 3


def films(folder: Path) -> list[Any]:
    """Two requests with videos whose frames differ."""
    made = [write_video(folder / f"{frames}.mp4", frames) for frames in (6, 40)]
    return [
        converse(
            number,
            [
                {
                    "role": "user",
                    "content": [{"type": "video", "url": str(film)}, {"type": "text", "text": "What happens?"}],
                }
            ],
        )
        for number, film in enumerate(made)
    ]


def test_a_video_is_answered_as_by_hf(tmp_path: Path, embedded: Path, vllm_vision: Any, vision_server: str) -> None:
    """The embedded model's template has no place for a video: its frames go as pictures, as ``hf`` sends them."""
    remote = build("openai", model="m", base_url=vision_server, max_frames_num=FRAMES)
    local = build("hf", pretrained=str(embedded), dtype="float32", device="cpu", max_num_frames=FRAMES)
    wanted = told(answers(local, films(tmp_path)))
    assert all(answer[0] for answer in wanted.values())
    assert told(answers(vllm_vision, films(tmp_path))) == wanted
    assert told(answers(remote, films(tmp_path))) == wanted


def test_a_video_goes_whole_where_the_template_has_a_place_for_it(
    tmp_path: Path, embedded: Path, vllm_vision: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM wants rate, length and frame numbers with it, and gives each frame its time."""
    template = (embedded / "chat_template.jinja").read_text()
    place = "{% elif part['type'] == 'video' %}" + VIDEO_TEMPLATE + "{% elif part['type'] == 'text' %}"
    given = template.replace("{% elif part['type'] == 'text' %}", place)
    assert given != template
    # Prompts are rendered here: the same engine serves another template.
    settings = read_settings({"model": str(embedded), "chat_template": given, "max_frames_num": 6}, "vllm")
    monkeypatch.setattr(vllm_vision, "_builder", PromptRenderer(settings, decodes_videos=False))
    found = answers(vllm_vision, films(tmp_path))
    listed = answers(vllm_vision, conformance.PAIRS["video"]())
    assert [found[number].error for number in found] == [None, None]
    assert found[0].usage is not None and found[1].usage is not None
    assert found[0].usage.input_tokens != found[1].usage.input_tokens or found[0].text != found[1].text
    assert [listed[number].error for number in listed] == [None, None]


@pytest.mark.parametrize("until", [["?"], ["the", "\n"]])
def test_stop_strings_end_the_answer(text: Any, smol: Path, until: list[str]) -> None:
    local = build("hf_text", pretrained=str(smol), dtype="float32", device="cpu")
    request = ask(0, "Ask me a question about the sea, then answer it.", max_new_tokens=40, until=until)
    (found,), (wanted,) = answers(text, [request]).values(), answers(local, [request]).values()
    assert (found.text, found.finish_reason) == (wanted.text, wanted.finish_reason)
    assert found.text is not None and not any(stop in found.text for stop in until)


def test_a_seed_decides_a_sampled_answer(text: Any) -> None:
    def sample(seeds: list[int]) -> list[str | None]:
        asked = [
            replace(ask(number, "Tell me a story.", temperature=1.0, do_sample=True, max_new_tokens=12), seed=seed)
            for number, seed in enumerate(seeds)
        ]
        found = answers(text, asked)
        return [found[number].text for number in range(len(seeds))]

    first, again = sample([1, 2, 3]), sample([1, 2, 3])
    assert first == again and len(set(first)) == 3


def test_an_overlong_prompt_is_one_failed_request(text: Any) -> None:
    found = answers(text, [ask(0, "word " * 3000), ask(1, "Say hello.")])
    assert found[0].error is not None and found[0].error.kind == "bad_request" and found[1].text


def test_a_picture_for_a_model_without_eyes_is_one_failed_request(text: Any) -> None:
    found = answers(text, [ask(0, "What?", [picture(20, 20)]), ask(1, "Say hello.")])
    assert found[0].error is not None and found[1].text


def test_likelihoods_are_those_of_hf(vision: Any, hf: Any) -> None:
    asked = [
        ask(number, "What is it?", [picture(50, 40, number % 2)], kind="loglikelihood", continuation=continuation)
        for number, continuation in enumerate((" A", " blue", "?", "a circle", "left"))
    ]
    found, wanted = answers(vision, asked), answers(hf, asked)
    for number in found:
        assert found[number].loglikelihood == pytest.approx(wanted[number].loglikelihood, abs=1e-3)
        assert found[number].is_greedy == wanted[number].is_greedy
    assert len({found[number].loglikelihood for number in found}) == len(asked)


def test_likelihoods_of_a_text_model_are_those_of_hf(text: Any, smol: Path) -> None:
    local = build("hf_text", pretrained=str(smol), dtype="float32", device="cpu", batch_size=4)
    asked = [
        ask(number, "Name the capital of France.", kind="loglikelihood", continuation=continuation)
        for number, continuation in enumerate(("Paris", " Paris", "The capital of France is Paris", "München"))
    ]
    found, wanted = answers(text, asked), answers(local, asked)
    for number in found:
        assert found[number].loglikelihood == pytest.approx(wanted[number].loglikelihood, abs=1e-3)
        assert found[number].is_greedy == wanted[number].is_greedy


LONG = "The capital of France is Paris. It lies on the Seine, and many people live there. " * 150
"""More tokens than a context of 2,048."""


@pytest.mark.parametrize("form", FORMS)
def test_likelihoods_of_whole_texts_are_those_of_hf(form: str, smol: Path, request: pytest.FixtureRequest) -> None:
    if form == "vllm":
        engine = request.getfixturevalue("vllm_text")
    else:
        url, given = request.getfixturevalue("text_server"), {"tokenizer": str(smol), "max_length": 2048}
        engine = build("openai", model="m", base_url=url, api="completions", **given)
    local = build("hf_text", pretrained=str(smol), dtype="float32", device="cpu", max_length=2046)
    asked = [rolling(number, content) for number, content in enumerate(("", "Hello there.", LONG[:500], LONG))]
    found, wanted = answers(engine, asked), answers(local, asked)
    for number in found:
        assert found[number].loglikelihood == pytest.approx(wanted[number].loglikelihood, rel=1e-5, abs=1e-3)
    tokens = wanted[3].usage
    assert tokens is not None and tokens.input_tokens is not None and tokens.input_tokens > 2046
