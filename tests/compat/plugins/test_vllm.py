"""Plugins over the family's classes for vLLM, with a module of its public signatures in its place."""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.instance import Instance
from lmms_eval.errors import ModelError
from lmms_eval.models.chat.vllm import VLLM as ChatVLLM
from lmms_eval.models.legacy import LegacyAdapter
from lmms_eval.models.simple.vllm import VLLM
from tests.compat.plugins.kit import DOCUMENTS, Plugins
from tests.media.draw import write_video
from tests.models.offline.conftest import folder as folder
from tests.models.offline.conftest import seen as seen
from tests.models.offline.engines import Recorder

SIMPLE = """\
from lmms_eval.models.simple.vllm import VLLM


class Own(VLLM):
    def _build_sampling_params_dict(self, gen_kwargs):
        return {**super()._build_sampling_params_dict(gen_kwargs), "max_tokens": 9, "top_k": 4}
"""
CHAT = """\
from lmms_eval.models.chat.vllm import VLLM


class Own(VLLM):
    def make_one_request(self, request):
        messages, sampling = super().make_one_request(request)
        messages[0]["content"].append({"type": "text", "text": "Be brief."})
        return messages, {**sampling, "temperature": 0.5}
"""
WITH_CLIENT = """\
from lmms_eval.models.simple.vllm import VLLM


class Own(VLLM):
    def generate_until(self, requests):
        texts = self.flatten([[request.args[0]] for request in requests])
        return self._run_tp_synced(texts, lambda inputs: [self.client.say(text) for text in inputs])
"""


MARKS = ("<s>", "<unk>", "<image>", "<video>", "<audio>")


class LLM:
    """The synchronous engine, as far as the plugin of this test uses it."""

    started: dict[str, Any]

    def __init__(self, **arguments: Any) -> None:
        type(self).started = arguments

    def say(self, text: str) -> str:
        return text.partition("ANSWER=")[2]


def prompts(seen: Recorder) -> list[str]:
    """The texts that the engine was given: marks, then a token for each character."""
    tokens = [*MARKS, *map(chr, range(32, 127))]
    return ["".join(tokens[token] for token in call["prompt"]["prompt_token_ids"]) for call in seen.calls]


def ask(model: VLLM, visuals: list[Any], **generation: Any) -> list[Any]:
    model.task_dict = {"t": {"test": [{}]}}
    parts = [{"type": "image", "url": visual} for visual in visuals]
    turns = [{"role": "user", "content": [*parts, {"type": "text", "text": "why?"}]}]
    if model.is_simple:
        arguments: tuple[Any, ...] = ("why?", generation, lambda doc: visuals, 0, "t", "test")
    else:
        arguments = ("why?", lambda doc: turns, generation, 0, "t", "test")
    return model.generate_until([Instance("generate_until", arguments, 0, {"task": "t", "doc_id": 0})])


def test_a_simple_plugin_is_scored(plugins: Plugins, folder: str, seen: Recorder) -> None:
    plugins.write(SIMPLE)
    done = plugins.run(f'model={folder},max_model_len=99,limit_mm_per_prompt={{"image": 8}}')
    assert (done.code, done.score, len(seen.calls)) == (0, 0.0, DOCUMENTS)
    assert all(answer.startswith("answer to bench_text/") for answer in done.answers)
    assert seen.started["max_model_len"] == 99 and seen.started["limit_mm_per_prompt"] == {"image": 8}
    assert seen.started["trust_remote_code"] is True and seen.started["disable_log_stats"] is False
    sampling = seen.calls[0]["sampling"]
    assert (sampling["max_tokens"], sampling["top_k"], sampling["temperature"]) == (9, 4, 0)
    assert seen.closed


def test_a_chat_plugin_is_scored(plugins: Plugins, folder: str, seen: Recorder) -> None:
    plugins.write(CHAT, chat=True)
    done = plugins.run(f"model={folder}")
    assert (done.code, done.score, len(seen.calls)) == (0, 0.0, DOCUMENTS)
    assert all("Be brief.[assistant]" in prompt for prompt in prompts(seen))
    sampling = seen.calls[0]["sampling"]
    assert (sampling["max_tokens"], sampling["temperature"], sampling["top_p"]) == (16, 0.5, 0.95)


def test_a_plugin_that_asks_the_client_itself_is_scored(
    plugins: Plugins, folder: str, seen: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["vllm"], "LLM", LLM, raising=False)
    plugins.write(WITH_CLIENT)
    done = plugins.run(f"model={folder},max_model_len=99,num_concurrent=7,seed=3")
    assert (done.code, done.score, seen.started) == (0, 1.0, {})
    assert LLM.started == {
        "model": folder,
        "tensor_parallel_size": 1,
        "data_parallel_size": 1,
        "gpu_memory_utilization": 0.8,
        "trust_remote_code": True,
        "disable_log_stats": False,
        "max_model_len": 99,
        "seed": 3,
    }


def test_a_refused_request_fails_its_sample(plugins: Plugins, folder: str, seen: Recorder) -> None:
    seen.error = ValueError("too long")
    plugins.write(SIMPLE)
    done = plugins.run(f"model={folder}")
    assert (done.code, done.score) == (3, None)
    assert {sample["error"] for sample in done.samples} == {"bad_request: vllm: too long"}


@pytest.fixture
def simple(folder: str, seen: Recorder) -> Iterator[VLLM]:
    model = VLLM(folder)
    yield model
    model.clean()


def test_pictures_stand_behind_the_text_and_are_large_enough(simple: VLLM, seen: Recorder) -> None:
    ask(simple, [Image.new("RGB", (14, 7))])
    simple.image_first = True
    ask(simple, [Image.new("RGB", (50, 60))])
    assert prompts(seen) == ["<s>[user]why?<image>[assistant]", "<s>[user]<image>why?[assistant]"]
    sizes = [call["prompt"]["multi_modal_data"]["image"][0].size for call in seen.calls]
    assert sizes == [(56, 28), (50, 60)]


def test_many_requests_are_open(simple: VLLM, folder: str) -> None:
    assert simple.num_concurrent == simple._model().concurrency == LegacyAdapter(simple).concurrency // 8 == 256
    few = VLLM(folder, num_concurrent=5)
    assert few.num_concurrent == few._model().concurrency == 5
    few.clean()


def test_sampling_arguments(simple: VLLM) -> None:
    assert simple._build_sampling_params_dict({}) == {"max_tokens": 1024, "temperature": 0, "top_p": 0.95}
    given = {"max_new_tokens": 5, "temperature": 0.5, "top_p": 0}
    assert simple._build_sampling_params_dict(given) == {"max_tokens": 5, "temperature": 0.5, "top_p": 1.0}
    assert [simple._select_max_new_tokens(length) for length in ("7", None, "many", -1)] == [7, 1024, 1024, 1024]
    assert simple._generation({"until": ["\n"]})["until"] == ["\n"]


def test_metrics_count_the_tokens(simple: VLLM) -> None:
    assert math.isnan(simple.get_format_metrics()["tpot"])
    ask(simple, [])
    told = simple.get_format_metrics()
    assert told["generation_tokens"] == 3 and told["tpot"] > 0 and math.isnan(told["ttft"])


def test_attributes_that_subclasses_read(folder: str, seen: Recorder) -> None:
    given = (folder, 1, 2, 0.5, 3, 4, False, None)
    model = VLLM(*given, 7, True, True, 9)
    assert (model.model, model.tensor_parallel_size, model.data_parallel_size) == (folder, 1, 2)
    assert (model.min_image_pixels, model.disable_log_stats, model.image_first, model.max_new_tokens) == (
        7,
        True,
        True,
        9,
    )
    model.clean()
    chat = ChatVLLM(*given, 555, 7, 1.5, 8, 9, disable_log_stats=True)
    assert (chat.max_pixels, chat.min_image_pixels, chat.fps, chat.nframes, chat.max_new_tokens) == (555, 7, 1.5, 8, 9)
    assert (chat.max_frame_num, chat.disable_log_stats, chat.image_first) == (4, True, False)
    assert seen.started["disable_log_stats"] is True and seen.started["data_parallel_size"] == 2
    chat.clean()


def test_media_as_base64(simple: VLLM, tmp_path: Path) -> None:
    film = write_video(tmp_path / "film.mp4", 40)
    frames = simple.encode_video(str(film))
    assert len(frames) == 32
    picture = Image.open(BytesIO(base64.b64decode(simple.encode_image(Image.new("RGB", (10, 20))))))
    assert picture.size == (28, 56)


def test_pictures_and_films_of_the_chat_form(folder: str, seen: Recorder, tmp_path: Path) -> None:
    model = ChatVLLM(folder, nframes=3)
    ask(model, [Image.new("RGB", (50, 60), "red")])
    (shown,) = seen.calls[0]["prompt"]["multi_modal_data"]["image"]
    assert shown.size == (50, 60) and shown.getpixel((0, 0)) == (255, 0, 0)
    film = write_video(tmp_path / "film.mp4", 12)
    model._messages = lambda _: SimpleNamespace(  # type: ignore[method-assign]
        messages=[{"role": "user", "content": [{"type": "video", "url": str(film)}]}]
    )
    ask(model, [])
    assert len(seen.calls[1]["prompt"]["multi_modal_data"]["image"]) == 3
    model.clean()


def test_a_part_that_nobody_knows_is_refused(folder: str, seen: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ChatVLLM(folder)
    messages = [{"role": "user", "content": [{"type": "smell"}]}]
    monkeypatch.setattr(model, "make_one_request", lambda _: (messages, {}))
    with pytest.raises(ModelError, match="part of type 'smell'"):
        ask(model, [])
    model.clean()
