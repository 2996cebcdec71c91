"""What raises, seeds, stop strings: common to all forms."""

import pytest
import torch

from .support import answers, converse, image, make, refusal, reply, text, user


@pytest.fixture(scope="module")
def model(folder_of):
    return make("internvl", folder_of("internvl"), batch_size=4)


def asked(*questions, shown=()):
    return [converse(number, [user(*shown, text(question))]) for number, question in enumerate(questions)]


def test_what_the_checkpoints_code_raises_fails_its_sample(model):
    found = answers(model, asked("FAIL", "fine", "EXIT", "NUMBER", "MEMORY"))
    told = {
        number: response.error and (response.error.kind, response.error.message) for number, response in found.items()
    }
    assert told[0] == ("internal", "chat raised KeyError: 'chat failed'")
    assert told[1] is None
    assert told[2] == ("internal", "chat raised OwnError: an error of its own")
    assert told[3] == ("malformed", "chat gave a int, not a text")
    assert told[4][0] == "out_of_memory"
    assert "does not fit into memory" in told[4][1]


def test_a_batch_that_does_not_fit_is_halved(folder_of):
    model = make("internvl", folder_of("internvl"), batch_size=4)
    found = answers(model, asked("a", "b", "MEMORY", "c", shown=[image("blue")]))
    assert [found[number].text for number in (0, 1, 3)] == ["blue"] * 3
    assert found[2].error.kind == "out_of_memory"
    assert model.describe()["out_of_memory_batches"] == 2
    answers(model, asked("a", "b", shown=[image("blue")]))
    assert model.form.model.batches == [2], "later batches stay below the size that did not fit"
    model = make("internvl", folder_of("internvl"), batch_size=4)
    found = answers(model, asked("a", "FAIL", "c", shown=[image("blue")]))
    assert [found[number].error is None for number in range(3)] == [True, False, True]


def test_a_lost_device_ends_the_run(model, monkeypatch):
    from lmms_eval.errors import ModelError

    def lost(*_, **__):
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(model.form.model, "chat", lost)
    with pytest.raises(ModelError, match="device is lost"):
        reply(model, user(text("?")))


def test_a_sampled_answer_is_that_of_its_own_seed(model):
    state = torch.random.get_rng_state()
    first, second = (answers(model, [converse(n, [user(text("DRAW"))], temperature=1.0) for n in (0, 1)]) for _ in "ab")
    assert first[0].text == second[0].text != first[1].text
    assert torch.equal(state, torch.random.get_rng_state())


def test_an_answer_is_cut_before_the_first_stop_string(model):
    response = reply(model, user(text("one. two! three")), until=["!", "three"])
    assert (response.text, response.finish_reason) == ("no picture: one. two", "stop")
    assert reply(model, user(text("one"))).finish_reason is None


def test_likelihoods_are_none_of_its_kinds(model):
    assert model.kinds == {"generate_until"}


def test_wrong_values_fail_the_request(model):
    assert "max_new_tokens must be at least 1" in refusal(model, user(text("?")), max_new_tokens=0)
