"""The mixin that asks chat requests one by one."""

from __future__ import annotations

import json

import pytest

from lmms_eval.api.instance import FailedGeneration
from lmms_eval.models.chat._chat_base import IMAGE_KWARGS, VIDEO_KWARGS, ChatMixin
from tests.compat.plugins.kit import DOCUMENTS, NAME, Plugins
from tests.parity.adapters.family_plugins import CHAT_MIXIN, chat_mixin, judge_chat_mixin
from tests.parity.vectors import GOLDEN_DIR, Vector

ROWS = GOLDEN_DIR / "family_functions" / "visual_cot.jsonl"
PLUGIN = """\
from lmms_eval.api.model import lmms
from lmms_eval.models.chat._chat_base import ChatMixin


class Simple(lmms):
    def __init__(self, batch_size=1):
        super().__init__()
        self.batch_size = batch_size

    def generate_until(self, requests):
        raise AssertionError("the mixin stands before it")

    loglikelihood = generate_until_multi_round = generate_until


class Own(ChatMixin, Simple):
    def _infer_one(self, chat_messages, gen_kwargs):
        text = chat_messages.messages[-1].content[-1].text
        if "Question 1" in text:
            raise ValueError("too long")
        assert gen_kwargs.pop("max_new_tokens") == 16
        return text.partition("ANSWER=")[2]
"""


def test_a_plugin_of_the_mixin_is_scored(plugins: Plugins) -> None:
    plugins.write(PLUGIN, chat=True)
    done = plugins.run("", "--error_budget", "0.5")
    assert (done.code, done.score) == (0, 1.0)
    assert done.results["outcomes"][NAME]["failed"] == 1
    assert done.samples[1]["error"] == "internal: _infer_one raised ValueError: too long"
    assert len(done.samples) == DOCUMENTS


def test_failed_requests_stand_at_their_places() -> None:
    answers, reported = chat_mixin(3, fail=["q1"], batch=2)
    assert answers[::2] == ["q0:5", "q2:5"]
    assert answers[1] == FailedGeneration("_infer_one raised RuntimeError: q1")
    assert reported == [["generate_until", "c1", "q2:5"], ["generate_until", "c3", "q0:5"]]


def test_constants_and_the_missing_answer() -> None:
    assert ChatMixin.video_kwargs is VIDEO_KWARGS and VIDEO_KWARGS == {"fps": 2, "max_frames": 16, "max_pixels": 147456}
    assert ChatMixin.image_kwargs is IMAGE_KWARGS and IMAGE_KWARGS == {"max_pixels": 262144}
    assert ChatMixin.is_simple is False
    with pytest.raises(NotImplementedError, match="ChatMixin must define _infer_one"):
        ChatMixin()._infer_one(None, {})  # type: ignore[arg-type]


@pytest.mark.skipif(not ROWS.is_file(), reason=f"recorded vectors are not at {GOLDEN_DIR}")
def test_recorded_calls() -> None:
    lines = enumerate(ROWS.read_text().splitlines())
    rows = [
        Vector(ROWS.name, number, record)
        for number, line in lines
        if (record := json.loads(line))["function"] == CHAT_MIXIN
    ]
    states = [judge_chat_mixin(row).state for row in rows]
    assert states == ["passed", "passed", "deviates", "passed", "deviates"]
