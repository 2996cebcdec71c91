import pytest

from lmms_eval.errors import ModelError

from .support import answers, ask, build
from .test_model import Small, content, mixed_requests


@pytest.mark.parametrize(
    "arguments",
    [
        {"static_cache": True},
        pytest.param({"torch_compile": "eager"}, marks=pytest.mark.slow),
        {"preprocess_workers": 0},
        {"preprocess_workers": 2},
    ],
)
def test_options_for_speed_leave_the_answers_alone(tiny_folders, arguments):
    folder = tiny_folders["qwen2_vl"]
    requests = mixed_requests(3, max_new_tokens=4)
    expected = answers(build(folder, batch_size=3), requests)
    assert content(answers(build(folder, batch_size=3, **arguments), requests)) == content(expected)


def test_an_unknown_backend_of_torch_compile(tiny):
    with pytest.raises(ModelError, match="torch_compile=nonsense is not possible"):
        build(tiny, torch_compile="nonsense")


def test_automatic_batches(tiny, monkeypatch):
    """Doubled while the device has room, until a batch does not fit."""
    import lmms_eval.models.hf.model as module

    monkeypatch.setattr(module, "memory_share", lambda device: 0.1)

    class Sixteen(Small):
        rows = 16

    model = build(tiny, Sixteen, batch_size="auto")
    requests = [ask(number, "What is it?", max_new_tokens=2) for number in range(120)]
    got = answers(model, requests)
    assert len(got) == 120 and not any(response.error for response in got.values())
    assert model.describe()["out_of_memory_batches"] == 1
    assert model.describe()["rows_of_a_batch"] == 32
