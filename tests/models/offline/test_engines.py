"""The back ends ``vllm`` and ``sglang``: contracts with the engines' public signatures and with their servers."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lmms_eval.api.messages import ChatMessages
from lmms_eval.errors import EngineDiedError, MediaError, ModelError
from tests.cases import for_each
from tests.media.draw import tone, write_talkie, write_video
from tests.models.offline.engines import TEXTS_TEMPLATE, EngineDeadError, Recorder, RequestError, write_tokenizer
from tests.models.offline.support import FAKES, build
from tests.models.openai.support import MemoryStream, ask, make_request
from tests.servers.stub import StubServer


@pytest.mark.parametrize("name", FAKES)
def test_hundreds_in_flight(name: str, folder: str, seen: Recorder) -> None:
    seen.delay = 0.05
    model = build(name, folder, num_concurrent=300)
    found = ask(model, [make_request(number) for number in range(700)])
    assert len({response.text for response in found.values()}) == 700 == len(seen.calls)
    assert 250 <= seen.peak <= 300
    one = found["7"]
    assert one.finish_reason == "stop" and one.usage is not None and one.usage.output_tokens == 3
    assert model.describe()["version"] == "0.0-fake"
    model.close()
    assert seen.closed


def test_vllm_arguments(folder: str, seen: Recorder) -> None:
    build(
        "vllm",
        folder,
        tensor_parallel_size=2,
        pipeline_parallel_size=3,
        data_parallel_size=4,
        max_model_len=99,
        limit_mm_per_prompt='{"image": 8}',
        dtype="float16",
    )
    assert seen.started == {
        "model": folder,
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 3,
        "data_parallel_size": 4,
        "gpu_memory_utilization": 0.8,
        "max_model_len": 99,
        "trust_remote_code": False,
        "enable_prefix_caching": True,
        "disable_log_stats": True,
        "limit_mm_per_prompt": {"image": 8},
        "dtype": "float16",
        "reasoning_parser": "",
        "usage_context": "LLM class",
    }


def test_sglang_arguments(folder: str, seen: Recorder) -> None:
    build(
        "sglang", folder, tensor_parallel_size=2, gpu_memory_utilization=0.5, max_model_len=99, chunked_prefill_size=8
    )
    wanted = {"tp_size": 2, "pp_size": 1, "dp_size": 1, "mem_fraction_static": 0.5, "context_length": 99}
    assert seen.started == {"model_path": folder, "trust_remote_code": False, "chunked_prefill_size": 8, **wanted}


def test_vllm_media_are_passed_as_they_are(tmp_path: Path, folder: str, seen: Recorder) -> None:
    film = write_video(tmp_path / "film.mp4", 12)
    sound = {"array": tone(), "sampling_rate": 8000}
    model = build("vllm", folder, max_frames_num=4, mm_processor_kwargs='{"fps": 1}', max_pixels=100)
    ask(model, [make_request("one", visuals=[Image.new("RGB", (40, 40)), str(film), sound]), make_request("two")])
    calls = {call["id"]: call["prompt"] for call in seen.calls}
    media = calls["one"]["multi_modal_data"]
    assert media["image"][0].mode == "RGB" and media["image"][0].width <= 10
    frames, facts = media["video"][0]
    assert isinstance(frames, np.ndarray) and frames.shape[0] == 4
    assert facts["total_num_frames"] == 12 and facts["frames_indices"] == [0, 3, 7, 11]
    assert facts["duration"] == pytest.approx(12 / facts["fps"]) and not facts["do_sample_frames"]
    assert media["audio"][0][1] == 8000 and len(media["audio"][0][0]) == 4000
    assert calls["one"]["mm_processor_kwargs"] == {"fps": 1}
    assert set(calls["two"]) == {"prompt_token_ids"}


def test_vllm_frames_by_a_rule(tmp_path: Path, folder: str, seen: Recorder) -> None:
    film = write_video(tmp_path / "film.mp4", 61, fps=30)
    limits = {"fps": 2, "min_frames": 4, "max_frames_num": 512, "frame_rule": "qwen-vl-utils"}
    ask(build("vllm", folder, **limits), [make_request("one", visuals=[str(film)])])
    _, facts = seen.calls[0]["prompt"]["multi_modal_data"]["video"][0]
    assert facts["frames_indices"] == [0, 20, 40, 60]
    with pytest.raises(ModelError, match="sglang opens videos itself: leave frame_rule, min_frames out"):
        build("sglang", folder, **limits)


def test_vllm_hears_the_sound_of_videos(tmp_path: Path, folder: str, seen: Recorder) -> None:
    loud, silent = write_talkie(tmp_path / "loud.mkv"), write_video(tmp_path / "silent.mp4", 12)
    sound = {"array": tone(), "sampling_rate": 8000}
    model = build("vllm", folder, use_audio_in_video="true", mm_processor_kwargs='{"fps": 1}')
    asked = {"loud": [loud], "silent": [silent], "mixed": [loud, silent], "further": [loud, sound], "alone": [sound]}
    found = ask(model, [make_request(name, visuals=list(map(_visual, media))) for name, media in asked.items()])
    calls = {call["id"]: call["prompt"] for call in seen.calls}
    assert [round(len(array) / rate, 2) for array, rate in calls["loud"]["multi_modal_data"]["audio"]] == [2.0]
    assert calls["loud"]["mm_processor_kwargs"] == {"fps": 1, "use_audio_in_video": True}
    assert calls["silent"]["mm_processor_kwargs"] == calls["alone"]["mm_processor_kwargs"] == {"fps": 1}
    for name in ("mixed", "further"):
        error = found[name].error
        assert error is not None and error.kind == "bad_request" and "use_audio_in_video" in error.message


def _visual(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def test_the_sound_of_videos_that_cannot_be_added(tmp_path: Path, folder: str, seen: Recorder) -> None:
    with pytest.raises(ModelError, match="the back end sglang opens videos itself"):
        build("sglang", folder, use_audio_in_video="true")
    texts = write_tokenizer(tmp_path / "texts", template=TEXTS_TEMPLATE)
    with pytest.raises(ModelError, match="needs a chat template with videos"):
        build("vllm", texts, use_audio_in_video="true")


def test_sglang_media(tmp_path: Path, folder: str, seen: Recorder) -> None:
    film = write_video(tmp_path / "film.mp4", 12)
    sound = {"array": tone(), "sampling_rate": 8000}
    model = build("sglang", folder)
    ask(model, [make_request("one", visuals=[Image.new("RGB", (4, 4)), str(film), sound])])
    images, videos, sounds = seen.calls[0]["media"]
    assert images[0].size == (4, 4) and videos == [str(film)] and sounds[0].startswith("data:audio/wav;base64,")
    part = {"type": "video", "url": str(film), "start_time": 0.1}
    messages = ChatMessages.model_validate({"messages": [{"role": "user", "content": [part]}]})
    with pytest.raises(MediaError, match="whole videos"):
        model.prepare(make_request("two", messages=messages))


def test_generation_options(folder: str, seen: Recorder) -> None:
    options = {"max_new_tokens": 5, "temperature": 0.5, "top_p": 0.9, "until": ["END"], "top_k": 3, "odd_option": 1}
    model = build("vllm", folder, max_new_tokens=4096)
    requests = [
        make_request("warm", generation=options, seed=11),
        make_request("cold", generation={"do_sample": False}, seed=12),
    ]
    ask(model, requests)
    sampling = {call["id"]: call["sampling"] for call in seen.calls}
    assert sampling["warm"]["max_tokens"] == 5, "the task's value wins"
    assert sampling["warm"] == {**sampling["warm"], "temperature": 0.5, "top_p": 0.9, "seed": 11, "stop": ["END"]}
    assert sampling["warm"]["top_k"] == 3
    assert sampling["cold"] == {**sampling["cold"], "max_tokens": 4096, "temperature": 0, "seed": 12}
    assert model.describe()["ignored_generation_options"] == ["odd_option"]
    seen.calls.clear()
    ask(build("sglang", folder), requests)
    warm = {"top_k": 3, "max_new_tokens": 5, "temperature": 0.5, "top_p": 0.9, "sampling_seed": 11, "stop": ["END"]}
    assert [call["sampling"] for call in seen.calls] == [warm, {"max_new_tokens": 1024, "temperature": 0}]


def test_parameters_of_the_engine_and_variables_of_the_template(folder: str, seen: Recorder) -> None:
    """The engine's own parameters go to it, variables that the template reads are set there, nothing else is taken."""
    model = build("vllm", folder)
    options = {"thinking_token_budget": 512, "chat_template_kwargs": {"thinking": True}, "image_aspect_ratio": "pad"}
    ask(model, [make_request("thinks", "Q?", generation=options), make_request("plain", "Q?")])
    calls = {call["id"]: call for call in seen.calls}
    assert calls["thinks"]["sampling"]["thinking_token_budget"] == 512
    lengths = {name: len(call["prompt"]["prompt_token_ids"]) for name, call in calls.items()}
    assert lengths["thinks"] - lengths["plain"] == len("[thinking]")
    assert model.describe()["ignored_generation_options"] == ["image_aspect_ratio"]
    taken = model.generation_options()
    assert taken is not None
    assert not any(taken.objection(*one) for one in (*list(options.items())[:2], ("thinking", True), ("top_k", 3)))
    assert "knows no mood" in taken.objection("chat_template_kwargs", {"mood": 1})
    assert taken.objection("logprob", 1) and taken.objection("n", 2) and taken.objection("extra_body", {"a": 1})
    sent = model.sent_with(make_request("thinks", generation=options))
    assert sent["options"]["thinking_token_budget"] == 512 and "seed" not in sent["options"]
    assert sent["chat_template_kwargs"] == {"thinking": True} and len(sent["chat_template"]) == 64


@pytest.mark.parametrize("name", FAKES)
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("the prompt is longer than the model's length"), "bad_request"),
        (RuntimeError("CUDA out of memory"), "out_of_memory"),
        (RuntimeError("engine is dead"), "internal"),
    ],
)
def test_errors_of_the_engine(name: str, error: Exception, kind: str, folder: str, seen: Recorder) -> None:
    seen.error = error
    response = ask(build(name, folder), [make_request("one")])["one"]
    assert response.error is not None and response.error.kind == kind and str(error) in response.error.message


def test_an_error_of_vllms_own_is_one_failed_request(folder: str, seen: Recorder) -> None:
    seen.error = RequestError()
    seen.error.__cause__ = ValueError("a picture too many")
    response = ask(build("vllm", folder), [make_request("one")])["one"]
    assert response.error is not None and response.error.kind == "bad_request"
    assert "a picture too many" in response.error.message


def test_the_death_of_the_engine_is_no_answer_to_a_request(folder: str, seen: Recorder) -> None:
    seen.error = EngineDeadError("EngineCore encountered an issue")
    with pytest.raises(EngineDiedError, match=r"EngineCore encountered an issue; .* start the same command again"):
        ask(build("vllm", folder), [make_request("one")])


@pytest.mark.parametrize("name", FAKES)
def test_an_aborted_request_is_no_answer(name: str, folder: str, seen: Recorder) -> None:
    seen.finish = "abort"
    response = ask(build(name, folder), [make_request("one")])["one"]
    assert response.error is not None and "aborted" in response.error.message


@pytest.mark.parametrize("name", FAKES)
def test_closing_cancels_what_is_open(name: str, folder: str, seen: Recorder) -> None:
    async def run() -> None:
        model = build(name, folder, num_concurrent=4)
        stream = MemoryStream([model.prepare(make_request(number)) for number in range(8)], closed=False)
        async with aclosing(model.respond(stream)) as responses:
            waiting = asyncio.create_task(anext(responses))
            while seen.open < 4:
                await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert asyncio.all_tasks() == {asyncio.current_task()}

    seen.delay = 30
    asyncio.run(run())
    assert seen.aborted == 4 and seen.open == 0


def test_an_engine_is_called_in_one_loop_however_many_streams_ask_it(folder: str, seen: Recorder) -> None:
    """What an engine ties to the loop of its first call is gone with that loop."""
    model = build("vllm", folder)
    assert [ask(model, [make_request(name)])[name].text for name in ("one", "two")] == [
        "answer to one",
        "answer to two",
    ]
    assert len(seen.loops) == 1
    model.close()


def test_an_argument_that_the_engine_does_not_know(folder: str, seen: Recorder) -> None:
    with pytest.raises(ModelError, match="no_such_argument"):
        build("vllm", folder, no_such_argument=1)


def test_wrong_arguments(folder: str, seen: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="gpu_memory_utilization"):
        build("vllm", folder, gpu_memory_utilization=2)
    with pytest.raises(ModelError, match="not valid JSON: "):
        build("vllm", folder, limit_mm_per_prompt="{image: 8}")


TORCHRUN = {
    "WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True",
}  # fmt: skip


@pytest.mark.parametrize(("devices", "own"), [({}, "5"), ({"tensor_parallel_size": 2}, "6,7")])
@pytest.mark.parametrize("name", FAKES)
def test_in_a_launch_each_engine_has_gpus_of_its_own_and_sees_no_launch(
    name: str, devices: dict[str, int], own: str, folder: str, seen: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in {**TORCHRUN, "CUDA_VISIBLE_DEVICES": "4,5,6,7"}.items():
        monkeypatch.setenv(variable, value)
    build(name, folder, **devices)
    assert seen.environment["CUDA_VISIBLE_DEVICES"] == own
    assert not set(TORCHRUN) & set(seen.environment)
    assert {name: os.environ.get(name) for name in TORCHRUN} == TORCHRUN


@pytest.mark.parametrize("name", FAKES)
def test_more_parallel_parts_than_gpus_in_a_launch(
    name: str, folder: str, seen: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in {**TORCHRUN, "CUDA_VISIBLE_DEVICES": "4,5,6"}.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(ModelError, match=r"takes 2 GPU.* without accelerate or torchrun"):
        build(name, folder, pipeline_parallel_size=2)


def test_alone_the_environment_is_left_as_it_is(folder: str, seen: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    build("vllm", folder, data_parallel_size=2)
    assert seen.environment["CUDA_VISIBLE_DEVICES"] == "4,5"


def test_identity_has_what_changes_answers(folder: str, seen: Recorder) -> None:
    first, second = build("vllm", folder, num_concurrent=3), build("vllm", folder)
    third = build("vllm", folder, dtype="float16")
    assert first.identity() == second.identity() != third.identity()


@for_each("name", FAKES)
def test_the_engines_server(name: str) -> None:
    """No engine package is needed: the server speaks chat completions and takes the engine's extra fields."""
    extras = {"mm_processor_kwargs": '{"fps": 2}', "chat_template_kwargs": '{"enable_thinking": false}'}
    with StubServer(delay=0.01) as server:
        model = build(name, "served", base_url=server.url, num_concurrent=16, extra_body='{"top_k": 1}', **extras)
        found = ask(model, [make_request(number, visuals=[Image.new("RGB", (3, 3))]) for number in range(60)])
        stats, body = server.stats(), server.bodies()[0]
    assert {key: response.text for key, response in found.items()} == {str(n): str(n) for n in range(60)}
    assert stats["max_in_flight"] == 16 and body["model"] == "served" and body["top_k"] == 1
    assert body["mm_processor_kwargs"] == {"fps": 2} and body["chat_template_kwargs"] == {"enable_thinking": False}
    with pytest.raises(ModelError, match="tensor_parallel_size: with base_url"):
        build(name, "served", base_url="http://127.0.0.1:1/v1", tensor_parallel_size=2)


@for_each("name", FAKES)
def test_without_the_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(ModelError, match=f"pip install 'lmms_eval.{name}.'"):
        build(name, "anything")


def test_the_signatures_of_the_real_vllm() -> None:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed")
    import inspect

    vllm: Any = importlib.import_module("vllm")
    assert {"prompt", "sampling_params", "request_id"} <= set(
        inspect.signature(vllm.AsyncLLMEngine.generate).parameters
    )
    wanted = {"enable_prefix_caching", "data_parallel_size", "disable_log_stats"}
    assert wanted <= set(inspect.signature(vllm.AsyncEngineArgs).parameters)
    assert "usage_context" in inspect.signature(vllm.AsyncLLMEngine.from_engine_args).parameters
    assert importlib.import_module("vllm.usage.usage_lib").UsageContext.LLM_CLASS


def test_the_signatures_of_the_real_sglang() -> None:
    if importlib.util.find_spec("sglang") is None:
        pytest.skip("sglang is not installed")
    import inspect

    sglang: Any = importlib.import_module("sglang")
    wanted = {"input_ids", "sampling_params", "image_data", "video_data", "audio_data"}
    assert wanted <= set(inspect.signature(sglang.Engine.async_generate).parameters)
