"""Plugins over the family's classes for local models, with random weights of the smallest size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lmms_eval.api.instance import Instance
from lmms_eval.api.messages import ChatMessages
from lmms_eval.errors import ModelError
from lmms_eval.models.chat.qwen3_5 import Qwen3_5 as ChatQwen35
from lmms_eval.models.chat.qwen3_vl import Qwen3_VL as ChatQwen3VL
from lmms_eval.models.simple.llava_hf import LlavaHf
from lmms_eval.models.simple.qwen2_5_vl import Qwen2_5_VL
from lmms_eval.models.simple.qwen3_5 import Qwen3_5
from lmms_eval.models.simple.qwen3_vl import Qwen3_VL
from tests.cases import for_each
from tests.compat.plugins.kit import DOCUMENTS, Plugins

PLUGIN = """\
from lmms_eval.models.{module} import {name}


class Own({name}):
    def __init__(self, pretrained, mark="", **kwargs):
        super().__init__(pretrained=pretrained, **kwargs)
        self.mark = mark
        assert self.model is not None and self.flatten([[1], [2]]) == [1, 2]
"""
HOOKS = """
    def _build_generate_kwargs(self, gen_kwargs):
        return {**super()._build_generate_kwargs(gen_kwargs), "max_new_tokens": 3}

    def _apply_chat_template(self, batched_messages, **kwargs):
        texts = super()._apply_chat_template(batched_messages, **kwargs)
        assert len(texts) == len(batched_messages) and all(turns[-1]["role"] == "user" for turns in batched_messages)
        return [text + "the answer is" for text in texts]

    def _strip_thinking(self, answer):
        return self.mark + super()._strip_thinking(answer)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Folders of models by family, built once."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    from tests.models.families import build, named

    made: dict[str, str] = {}

    def find(name: str) -> str:
        if name not in made:
            place = tmp_path_factory.mktemp(name) / "m"
            made[name] = str(getattr(build, name)(place) if hasattr(build, name) else named.build_named(name, place))
        return made[name]

    return find


@pytest.fixture(scope="module")
def qwen3(folder: Callable[[str], str]) -> ChatQwen3VL:
    return ChatQwen3VL(folder("qwen3_vl"), device="cpu", max_num_frames=4, min_pixels=1024, max_pixels=4096)


PLUGINS = [
    ("simple.qwen2_5_vl", "Qwen2_5_VL", "qwen2_5_vl"),
    ("simple.llava_hf", "LlavaHf", "llava_hf"),
    ("simple.qwen3_vl", "Qwen3_VL", "qwen3_vl"),
    ("chat.qwen3_vl", "Qwen3_VL", "qwen3_vl"),
    ("simple.qwen3_5", "Qwen3_5", "qwen3_5"),
    ("chat.qwen3_5", "Qwen3_5", "qwen3_5"),
]


@pytest.mark.parametrize(("module", "name", "family"), PLUGINS, ids=[module for module, *_ in PLUGINS])
def test_a_plugin_is_scored(
    module: str, name: str, family: str, folder: Callable[[str], str], plugins: Plugins
) -> None:
    is_hooked = "qwen3" in module
    plugins.write(PLUGIN.format(module=module, name=name) + (HOOKS if is_hooked else ""), module.startswith("chat"))
    done = plugins.run(f"pretrained={folder(family)},device=cpu,mark=said:", "--allow_blank")
    assert (done.code, done.score) == (0, 0.0)
    assert len(done.answers) == DOCUMENTS
    if is_hooked:
        assert all(answer.startswith("said:") for answer in done.answers)
        assert all(counts["output_tokens"] <= 3 for sample in done.samples for counts in sample["token_counts"])


def test_what_a_plugin_knows_of_an_unfinished_thought(folder: Callable[[str], str], plugins: Plugins) -> None:
    """Its prompt opens the thought, so its text alone would be taken for an answer."""
    hooks = HOOKS.replace("the answer is", "<think>\\n").replace("self.mark + ", "")
    plugins.write(PLUGIN.format(module="chat.qwen3_vl", name="Qwen3_VL") + hooks, chat=True)
    done = plugins.run(f"pretrained={folder('qwen3_vl')},device=cpu,mark=none", "--allow_blank")
    assert (done.code, done.answers) == (0, [""] * DOCUMENTS)
    told = {(sample["finish_reason"], sample["blank"], bool(sample["thoughts"])) for sample in done.samples}
    assert told == {("length", "truncated in thought", True)}


def request(model: Any, *content: dict[str, Any], **generation: Any) -> list[Any]:
    """Put one question as the adapter does."""
    model.task_dict = {"t": {"test": [{}]}}
    turns = [{"role": "user", "content": list(content)}]
    arguments = ("why?", lambda doc: turns, generation, 0, "t", "test")
    return model.generate_until([Instance("generate_until", arguments, 0, {"task": "t", "doc_id": 0})])


def test_a_picture_and_a_film_of_the_chat_form(qwen3: ChatQwen3VL, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[list[dict[str, Any]]] = []
    own = type(qwen3)._apply_chat_template

    def remembered(self: ChatQwen3VL, batched_messages: list[list[dict[str, Any]]], **kwargs: Any) -> list[str]:
        rendered.extend(batched_messages)
        return own(self, batched_messages, **kwargs)

    monkeypatch.setattr(ChatQwen3VL, "_apply_chat_template", remembered)
    picture = {"type": "image", "url": Image.new("RGB", (40, 40), "red")}
    (answer,) = request(qwen3, picture, {"type": "text", "text": "what?"}, max_new_tokens=2)
    assert isinstance(answer, str)
    (system, user) = rendered[0]
    assert system["content"] == [{"type": "text", "text": "You are a helpful assistant."}]
    assert [part["type"] for part in user["content"]] == ["image", "text"]


def test_frames_as_the_plugin_says(qwen3: ChatQwen3VL, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [Image.fromarray(np.zeros((64, 64, 3), np.uint8)) for _ in range(9)]
    film = ChatMessages(messages=[{"role": "user", "content": [{"type": "video", "url": frames}]}])
    for given, sizes in (
        ({"min_pixels": 1024, "nframes": 4, "max_pixels": 4096}, [(64, 64)] * 4),
        ({"min_pixels": 1024, "max_frames": 2, "total_pixels": 2048}, [(32, 32)] * 2),
        ({"nframes": 3, "max_pixels": 1024}, [(32, 32)] * 3),
    ):
        monkeypatch.setattr(ChatQwen3VL, "_build_video_kwargs", lambda _, given=given: given)
        prepared = qwen3._open_model()._inputs.render(film)  # type: ignore[attr-defined]
        assert [image.size for image in prepared.images] == sizes


def test_arguments_of_videos(qwen3: ChatQwen3VL, monkeypatch: pytest.MonkeyPatch) -> None:
    assert qwen3._build_video_kwargs() == {"min_pixels": 1024, "nframes": 4, "max_pixels": 4096}
    monkeypatch.setattr(qwen3, "total_pixels", 9)
    assert qwen3._build_video_kwargs() == {"min_pixels": 1024, "max_frames": 4, "total_pixels": 9}
    monkeypatch.setattr(qwen3, "fps", 2)
    assert qwen3._build_video_kwargs() == {"min_pixels": 1024, "fps": 2, "max_frames": 4, "total_pixels": 9}
    monkeypatch.setattr(qwen3, "total_pixels", None)
    assert qwen3._build_video_kwargs() == {"min_pixels": 1024, "fps": 2, "max_frames": 4, "max_pixels": 4096}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {"do_sample": False, "max_new_tokens": 128, "num_beams": 1}),
        ({"temperature": 0, "top_p": 0.5, "top_k": 3}, {"do_sample": False, "max_new_tokens": 128, "num_beams": 1}),
        (
            {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "max_new_tokens": 7, "visual_cot": True},
            {"do_sample": True, "max_new_tokens": 7, "temperature": 0.5, "top_p": 0.9, "top_k": 3, "num_beams": 1},
        ),
    ],
)
def test_arguments_of_generation(given: dict[str, Any], wanted: dict[str, Any], qwen3: ChatQwen3VL) -> None:
    assert qwen3._build_generate_kwargs(given) == wanted
    assert qwen3._generation({**given, "until": ["x"]}) == {**wanted, "until": ["x"]}


@pytest.mark.parametrize(
    ("thinking", "answer", "wanted"),
    [
        (True, "well</think> yes </think>!", "yes </think>!"),
        (True, "no mark ", "no mark "),
        (False, "well</think> yes", "well</think> yes"),
        (None, "well</think> yes", "well</think> yes"),
    ],
)
def test_thoughts_are_left_out(
    thinking: bool | None, answer: str, wanted: str, qwen3: ChatQwen3VL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qwen3, "enable_thinking", thinking)
    assert qwen3._strip_thinking(answer) == wanted


def test_thinking_reaches_the_template(qwen3: ChatQwen3VL, monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{% if enable_thinking is defined %}{{ enable_thinking }}{% else %}unset{% endif %}"
    monkeypatch.setattr(qwen3.processor, "chat_template", template)
    seen = []
    for value in (None, True, False):
        monkeypatch.setattr(qwen3, "enable_thinking", value)
        seen.extend(qwen3._apply_chat_template([[{"role": "user", "content": []}]]))
    assert seen == ["unset", "True", "False"]


def test_a_template_gets_a_batch_and_further_arguments(qwen3: ChatQwen3VL, monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{{ messages[0].content[0].text }}{{ add_generation_prompt }}{{ mark }}"
    monkeypatch.setattr(qwen3.processor, "chat_template", template)
    batch = [[{"role": "user", "content": [{"type": "text", "text": text}]}] for text in ("one", "two")]
    assert qwen3._apply_chat_template(batch, mark="!") == ["oneTrue!", "twoTrue!"]
    assert qwen3._apply_chat_template(batch[:1], add_generation_prompt=False) == ["oneFalse"]


@for_each(
    ("given", "wanted"),
    [
        ({}, {"do_sample": True, "max_new_tokens": 1024, "temperature": 0.7, "top_p": 0.8, "top_k": 20}),
        ({"temperature": 0}, {"do_sample": False, "max_new_tokens": 1024}),
        (
            {"temperature": 0, "max_new_tokens": 5, "num_beams": 3},
            {"do_sample": False, "max_new_tokens": 5, "num_beams": 3},
        ),
        (
            {"temperature": 1.0, "top_p": 0.3},
            {"do_sample": True, "max_new_tokens": 1024, "temperature": 1.0, "top_p": 0.3, "top_k": 20},
        ),
    ],
)
def test_arguments_of_generation_of_the_later_family(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert Qwen3_5._build_generate_kwargs(Qwen3_5.__new__(Qwen3_5), given) == wanted


def test_defaults_of_generation_may_lack_any_key(qwen3: ChatQwen3VL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChatQwen3VL, "DEFAULT_GEN_KWARGS", {})
    assert qwen3._build_generate_kwargs({}) == {"do_sample": False}


def test_frames_of_the_later_family_have_two_names(folder: Callable[[str], str]) -> None:
    model = ChatQwen35(folder("qwen3_5"), 1024, 4096, None, 9, 5, False, device="cpu")
    told = (model.min_pixels, model.max_pixels, model.total_pixels, model.max_num_frames, model.enable_thinking)
    assert told == (1024, 4096, None, 5, False)
    assert model._build_video_kwargs() == {"min_pixels": 1024, "nframes": 5, "max_pixels": 4096}
    (answer,) = request(model, {"type": "text", "text": "what?"}, max_new_tokens=2, temperature=0)
    assert isinstance(answer, str)
    model.clean()


@for_each("kind", [Qwen2_5_VL, Qwen3_VL, Qwen3_5, LlavaHf])
def test_other_keywords_are_refused(kind: Any) -> None:
    with pytest.raises(AssertionError, match="unexpected keyword arguments: continual_mode"):
        kind("folder", continual_mode=True)


def test_an_attention_that_nobody_has_is_refused() -> None:
    with pytest.raises(ModelError, match="not one of flash_attention_2, sdpa, eager"):
        Qwen3_VL("folder", attn_implementation="flash")


def test_attributes_of_llava(folder: Callable[[str], str]) -> None:
    model = LlavaHf(folder("llava_hf"), device="cpu", max_frames_num=3, batch_size=2)
    assert model._image_processor is model.processor and model.tokenizer is model.processor.tokenizer
    assert (model.eot_token_id, str(model._device), model.batch_size) == (model.tokenizer.eos_token_id, "cpu", 2)
    assert model.accelerator.num_processes == 1
    model.clean()
    assert model.model is None
