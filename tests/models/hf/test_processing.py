import json
import os
import signal

import pytest
import torch
from loguru import logger

from lmms_eval.models.hf import processing
from lmms_eval.models.hf.options import GENERAL, HFOptions, Profile
from lmms_eval.models.hf.processing import PictureProcess, SharedFile, begin
from lmms_eval.processes import ChildError

from ...cases import for_each
from .support import answers, build, picture
from .test_model import content, mixed_requests
from .test_pictures import processor_of

MARKS = {"qwen2_vl": "<|vision_start|><|image_pad|><|vision_end|>", "idefics3": "<image>", "llava": "<image>"}


class SameProcess:
    """A child whose side runs in this process."""

    def __init__(self, module, **_):
        self.server, self.replies = None, []

    def send(self, line):
        given = json.loads(line)
        if self.server is None:
            self.server = processing._Server(given)
        else:
            self.replies.append(processing.reply_to(self.server, line))

    def receive(self, timeout_s):
        if not self.replies:
            raise ChildError("no answer within 0 s")
        return self.replies.pop()

    def kill(self):
        self.server = None

    def close(self):
        self.replies = []


@pytest.fixture
def same_process(monkeypatch):
    monkeypatch.setattr(processing, "Child", SameProcess)


@pytest.fixture
def warnings():
    said = []
    sink = logger.add(lambda line: said.append(str(line)), level="WARNING")
    yield said
    logger.remove(sink)


def called(folder, **options):
    """A processor in a child around one of this process, and that one."""
    local = processor_of(folder)
    (process,) = begin(HFOptions(str(folder), device="cpu", preprocess_processes=True, **options), GENERAL)
    return process.around(local), local


def prompts(family, flat=False):
    pictures = [picture(60 + 9 * number, 40 + 7 * number, number) for number in range(3)]
    rows = [pictures[:1], pictures[1:]]
    return {
        "text": [MARKS[family] * len(row) + " What is it?" for row in rows],
        "images": pictures if flat else rows,
        "return_tensors": "pt",
        "padding": True,
    }


def same(found, expected):
    assert list(found) == list(expected)
    return all(torch.equal(found[name], expected[name]) and found[name].dtype == expected[name].dtype for name in found)


@for_each("family", list(MARKS))
def test_tensors_are_those_of_the_processor(tiny_folders, same_process, family):
    process, local = called(tiny_folders[family])
    for flat in (False, True) if family == "qwen2_vl" else (False,):
        given = prompts(family, flat)
        assert same(process(**given), local(**given))
    assert process.tokenizer is local.tokenizer
    process.close()


def test_pictures_that_come_again_are_counted(tiny_folders, same_process):
    process, local = called(tiny_folders["qwen2_vl"])
    given = prompts("qwen2_vl")
    for _ in range(3):
        assert same(process(**given), local(**given))
    assert process.hits == 3


def test_what_the_child_does_not_do(tiny_folders, same_process, warnings):
    process, local = called(tiny_folders["qwen2_vl"])
    text = {"text": ["What is it?"], "return_tensors": "pt"}
    assert same(process(**text), local(**text))
    grey = prompts("qwen2_vl")
    grey["images"] = [[one.convert("L") for one in row] for row in grey["images"]]
    assert same(process(**grey), local(**grey))
    with pytest.raises(Exception) as remote:
        process(**{**prompts("qwen2_vl"), "padding": "sideways"})
    with pytest.raises(type(remote.value)):
        local(**{**prompts("qwen2_vl"), "padding": "sideways"})
    assert process._child is not None and not warnings


@pytest.mark.parametrize("what", ["silence", "no room"])
def test_a_child_that_cannot_go_on(tiny_folders, same_process, warnings, monkeypatch, what):
    process, local = called(tiny_folders["qwen2_vl"])
    given = prompts("qwen2_vl")
    if what == "silence":
        monkeypatch.setattr(process._child, "receive", SameProcess("").receive)
    else:
        monkeypatch.setattr(process._shared, "memory", lambda size: os.truncate("/", size))  # raises OSError
    path = process._shared.path
    assert same(process(**given), local(**given))
    assert process._child is None and not path.exists()
    assert len(warnings) == 1 and "pictures are processed in threads from now on" in warnings[0]


def test_a_region_is_shared_and_leaves_no_file():
    own = SharedFile()
    other = SharedFile(own.path)
    own.memory(10)[:4] = b"abcd"
    assert other.memory(4)[:4] == b"abcd"
    large = other.memory(3 << 20)
    large[(3 << 20) - 1] = 7
    assert own.memory(3 << 20)[(3 << 20) - 1] == 7 and own.memory(4)[:4] == b"abcd"
    own.unlink()
    assert not own.path.exists()
    own.close()
    path = SharedFile().path  # dropped
    assert not path.exists()


def test_processes_are_for_pictures():
    assert begin(HFOptions("x", preprocess_processes=False), GENERAL) == []
    assert begin(HFOptions("x", preprocess_processes=True), Profile(parts=("tokenizer",))) == []


def test_a_run_with_a_process_that_dies(tiny_folders, warnings):
    folder = tiny_folders["qwen2_vl"]
    requests = mixed_requests(6, max_new_tokens=4)
    expected = content(answers(build(folder, batch_size=3), requests))
    model = build(folder, batch_size=3, preprocess_processes=True)
    (process,) = model._processes
    assert content(answers(model, requests)) == expected
    assert model.describe()["pictures_processed_once"] is not None and not warnings
    os.kill(process._child.pid, signal.SIGKILL)
    assert content(answers(model, requests)) == expected
    assert len(warnings) == 1 and "the process of the processor ended with code -9" in warnings[0]
    model.close()
    assert isinstance(process, PictureProcess) and process._child is None
