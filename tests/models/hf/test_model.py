import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from lmms_eval.errors import ModelError
from lmms_eval.models.building import BuildOptions, build_model
from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.registry import ModelRegistry

from .support import ListStream, answers, ask, build, converse, picture

ROOT = Path(__file__).parents[3]
FAMILIES = ("idefics3", "qwen2_vl", "llava")


def mixed_requests(count=12, **generation):
    """Prompts of different lengths with 0 to 3 pictures of different sizes."""
    return [
        ask(
            number,
            f"Question {number}: what is left " * (1 + number % 4),
            [
                picture(20 + 37 * ((number + k) % 5), 25 + 29 * ((number * k) % 4), number + k)
                for k in range(number % 4)
            ],
            **generation,
        )
        for number in range(count)
    ]


def content(responses):
    return {
        number: (response.text, response.finish_reason, response.usage, response.error)
        for number, response in responses.items()
    }


@pytest.fixture(scope="module")
def model(tiny):
    return build(tiny, batch_size=8)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("generation", [{}, {"until": ["th", " a", "e"], "max_new_tokens": 24}])
def test_answers_do_not_depend_on_the_batch_size(tiny_folders, family, generation):
    alone = answers(build(tiny_folders[family], batch_size=1), mixed_requests(**generation))
    for size in (3, 8):
        together = answers(build(tiny_folders[family], batch_size=size), mixed_requests(**generation))
        assert content(together) == content(alone)
        assert {response.batch for response in together.values()} == {()}, "float32 greedy: independent of the batch"
    assert all(response.error is None and response.latency > 0 for response in alone.values())
    assert len({response.text for response in alone.values()}) > 6, "answers depend on the question"


@pytest.mark.parametrize("family", FAMILIES)
def test_pictures_and_their_order_matter(tiny_folders, family):
    first, second = picture(60, 60, 1), picture(60, 60, 2)
    got = answers(
        build(tiny_folders[family], batch_size=4),
        [ask(0, "What?", [first]), ask(1, "What?", [second]), ask(2, "What?", [first, second]),
         ask(3, "What?", [second, first]), ask(4, "What?")],
    )  # fmt: skip
    assert len({response.text for response in got.values()}) == 5


def test_usage_and_finish_reason(model):
    got = answers(
        model, [ask(0, "What?", max_new_tokens=5), ask(1, "A far longer question than that?", max_new_tokens=5)]
    )
    assert got[0].finish_reason == "length"
    assert got[0].usage.output_tokens == 5
    expected = []
    for text in ("What?", "A far longer question than that?"):
        prompt = model.prepare(ask(0, text)).payload.text
        expected.append(len(model.loaded.tokenizer(prompt, add_special_tokens=False).input_ids))
    assert [got[number].usage.input_tokens for number in (0, 1)] == expected


def test_an_end_token_stops(model):
    got = answers(model, mixed_requests(24, max_new_tokens=64))
    stopped = [response for response in got.values() if response.finish_reason == "stop"]
    assert stopped, "the tiny model ends some of its answers by itself"
    assert all("<end>" not in response.text and response.usage.output_tokens <= 64 for response in stopped)
    assert any(response.usage.output_tokens < 64 for response in stopped)


def test_stop_strings_cut_and_save_tokens(model):
    whole = answers(model, [ask(0, "What?", max_new_tokens=30)])[0].text
    stop = whole[10:13]
    got = answers(model, [ask(0, "What?", max_new_tokens=30, until=[stop, "never in it"])])[0]
    assert got.text == whole[: whole.index(stop)]
    assert got.finish_reason == "stop"
    assert got.usage.output_tokens < 30


def test_beam_search_cuts_stop_strings_too(model):
    whole = answers(model, [ask(0, "What?", num_beams=3)])[0].text
    got = answers(model, [ask(0, "What?", num_beams=3, until=[whole[4:6]])])[0]
    assert got.text == whole[: whole.index(whole[4:6])]


def test_system_prompt_changes_the_answer(tiny, model):
    other = build(tiny, system_prompt="Answer with one letter.")
    assert answers(other, [ask(0, "What?")])[0].text != answers(model, [ask(0, "What?")])[0].text


def test_video_frames_are_answered(model):
    part = {"type": "video", "url": [picture(40, 30, number) for number in range(6)]}
    message = {"role": "user", "content": [part, {"type": "text", "text": "What happens?"}]}
    got = answers(model, [converse(0, [message]), ask(1, "What happens?")])
    assert got[0].error is None
    assert got[0].usage.input_tokens > got[1].usage.input_tokens + 6 * 4


def test_literal_placeholders_leave_the_batch_whole(model):
    got = answers(
        model, [ask(0, "The text <image> stands here.", [picture(30, 30)]), ask(1, "<image><image>"), ask(2, "Hi")]
    )
    assert [response.error for response in got.values()] == [None, None, None]


def test_sampling_depends_on_the_seed_alone(tiny):
    requests = mixed_requests(6, temperature=1.5, do_sample=True)
    torch.manual_seed(1)
    alone = answers(build(tiny, batch_size=1), requests)
    torch.manual_seed(2)
    state = torch.random.get_rng_state()
    together = answers(build(tiny, batch_size=6), requests)
    assert torch.equal(torch.random.get_rng_state(), state), "the caller's generator is left alone"
    assert content(together) == content(alone)
    greedy = answers(build(tiny), mixed_requests(6))
    assert content(greedy) != content(alone)
    other = [ask(number, "What?", temperature=1.5) for number in (0, 1, 2)]
    assert len({response.text for response in answers(build(tiny, batch_size=3), other).values()}) == 3


def test_greedy_answers_do_not_follow_the_sampling_defaults_of_a_checkpoint(tiny, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny, folder)
    file = folder / "generation_config.json"
    sampling = {"do_sample": True, "temperature": 3.0, "top_p": 0.9, "top_k": 50}
    file.write_text(json.dumps({**json.loads(file.read_text()), **sampling}))
    model = build(folder, batch_size=4)
    assert content(answers(model, mixed_requests(8))) == content(answers(build(tiny), mixed_requests(8)))
    assert model.describe()["generation_config"]["top_k"] == 50
    sampled = [ask(0, "What?", do_sample=True), ask(0, "What?", do_sample=True, top_k=1)]
    hot, cold = (answers(model, [request])[0].text for request in sampled)
    assert cold == answers(build(tiny), [ask(0, "What?")])[0].text != hot
    file.write_text(json.dumps({**json.loads(file.read_text()), "repetition_penalty": 9.0}))
    assert answers(build(folder), [ask(0, "What?")])[0].text != cold, "penalties hold for greedy answers too"


def test_preparation_in_threads_while_answering(model):
    requests = mixed_requests(40)

    class Threaded:
        def __init__(self, pool):
            self.futures = [pool.submit(model.prepare, request) for request in requests]

        def take(self, max_n):
            taken, self.futures = self.futures[:max_n], self.futures[max_n:]
            return [future.result() for future in taken]

        take_full = take

    with ThreadPoolExecutor(6) as pool:
        got = {int(response.request_id.split("/")[1]): response for response in model.respond(Threaded(pool))}
    assert content(got) == content(answers(model, requests))


def test_it_is_built_by_name(tiny):
    model = build_model(
        ModelRegistry().resolve("huggingface"),
        f"pretrained={tiny},max_num_frames=4",
        BuildOptions(batch_size="2", device="cpu"),
    )
    assert isinstance(model, HuggingFace)
    assert (model.options.batch_size, model.options.max_num_frames) == (2, 4)
    with pytest.raises(ModelError, match="pretrained"):
        build_model(ModelRegistry().resolve("hf"), "dtype=auto", BuildOptions())


def test_nothing_heavy_is_imported_before_a_model_is_built():
    heavy = "{'torch', 'transformers', 'PIL', 'jinja2', 'av'}"
    code = f"import sys, lmms_eval.models.hf.model as m; sys.exit(' '.join({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=ROOT
    )
    assert (done.stderr.strip(), done.returncode) == ("", 1)


def test_low_precision_names_the_batch(tiny):
    got = answers(build(tiny, dtype="bfloat16", batch_size=4), [ask(number, "What?") for number in range(3)])
    assert {response.batch for response in got.values()} == {("task/0", "task/1", "task/2")}
    assert answers(build(tiny, dtype="bfloat16"), [ask(0, "What?")])[0].batch == ()


class Small(HuggingFace):
    """Memory for ``rows`` rows."""

    rows = 2

    def generate(self, **arguments):
        if arguments["input_ids"].shape[0] > self.rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return super().generate(**arguments)


class Full(Small):
    rows = 0


def test_out_of_memory_splits_the_batch(tiny):
    small = build(tiny, Small, batch_size=8)
    got = answers(small, mixed_requests())
    assert content(got) == content(answers(build(tiny, batch_size=8), mixed_requests()))
    facts = small.describe()
    assert facts["out_of_memory_batches"] > 0
    before, limit = facts["out_of_memory_batches"], facts["max_batch_tokens"]
    assert limit is not None
    answers(small, mixed_requests())
    assert small.describe()["out_of_memory_batches"] < 2 * before, "it has learned how much fits"


def test_what_never_fits_fails_and_says_so(tiny):
    got = answers(build(tiny, Full, batch_size=4), [ask(number, "What?") for number in range(3)])
    assert [response.error.kind for response in got.values()] == ["out_of_memory"] * 3
    assert "20.00 GiB" in got[0].error.message


class Picky(HuggingFace):
    def generate(self, **arguments):
        for row in arguments["input_ids"]:
            if "poison" in self.loaded.tokenizer.decode(row):
                raise IndexError("index out of range in self")
        return super().generate(**arguments)


def test_a_request_that_raises_fails_alone(tiny):
    got = answers(build(tiny, Picky, batch_size=8), [ask(n, "poison" if n == 3 else "water") for n in range(8)])
    assert {number: response.error.kind for number, response in got.items() if response.error} == {3: "internal"}
    assert "IndexError: index out of range" in got[3].error.message


def test_a_request_that_the_processor_refuses_fails_alone(tiny, tmp_path):
    """The template writes one picture placeholder too many for texts that say so."""
    template = (tiny / "chat_template.jinja").read_text()
    broken = template.replace(" {{ part['text'] }}", " {{ part['text'] | replace('TWICE', bos_token + '<image>') }}")
    assert broken != template
    model = build(tiny, batch_size=4, chat_template=broken)
    got = answers(model, [ask(n, "TWICE" if n == 1 else "once", [picture(30, 30)]) for n in range(4)])
    assert {number: response.error.kind for number, response in got.items() if response.error} == {1: "bad_request"}
    assert "the processor refuses the request" in got[1].error.message


def test_long_prompts(model):
    fitting, beyond = "water " * 1000, "water " * 40_000
    got = answers(model, [ask(0, fitting), ask(1, beyond), ask(2, "short")])
    assert got[0].error is None
    assert got[0].usage.input_tokens > 1000
    assert got[1].error.kind == "bad_request"
    assert "the model takes 32768 at most" in got[1].error.message
    assert content(answers(model, [ask(0, fitting)]))[0] == content(got)[0]


def test_different_generation_options_do_not_mix(model):
    requests = [ask(number, "What?", max_new_tokens=4 + number % 2) for number in range(6)]
    requests.append(ask(6, "What?", num_return_sequences=2))
    got = answers(model, requests)
    assert [got[number].usage.output_tokens for number in range(6)] == [4, 5, 4, 5, 4, 5]
    assert got[6].error.kind == "bad_request"
    assert "--repeats" in got[6].error.message


def test_max_batch_tokens_bounds_the_batch(tiny):
    sizes = []

    class Watched(HuggingFace):
        def generate(self, **arguments):
            sizes.append(arguments["input_ids"].shape[0])
            return super().generate(**arguments)

    answers(
        build(tiny, Watched, batch_size=6, max_batch_tokens=60), [ask(number, "water " * 10) for number in range(6)]
    )
    assert sizes == [2, 2, 2]


def test_it_waits_only_while_it_holds_nothing(model):
    stream = ListStream([model.prepare(ask(number, "What?")) for number in range(33)])
    assert model.concurrency == 8
    responses = model.respond(stream)
    got = [next(responses) for _ in range(33)]
    assert stream.asked == []
    got += list(responses)
    assert stream.asked == [32]
    assert len({response.request_id for response in got}) == 33


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [1, 8])
def test_likelihood_is_that_of_the_tokens(tiny_folders, family, size):
    requests = [
        ask(number, "What is left " * (1 + number % 3), [picture(50, 40, number)] * (number % 3),
            kind="loglikelihood", continuation=(" yes", " the red one", " A")[number % 3])
        for number in range(9)
    ]  # fmt: skip
    model = build(tiny_folders[family], batch_size=size)
    got = answers(model, requests)
    for number in (0, 4, 5):
        request = model.prepare(requests[number])
        images = [list(request.payload.images)] if request.payload.images else None
        arguments = {"images": images, "return_tensors": "pt", "add_special_tokens": False}
        prompt = model.loaded.processor(text=[request.payload.text], **arguments)
        inputs = model.loaded.processor(text=[request.payload.text + request.continuation], **arguments)
        with torch.inference_mode():
            scores = model.loaded.model(**inputs).logits[0].log_softmax(-1)
        start, ids = prompt["input_ids"].shape[1], inputs["input_ids"][0]
        expected = sum(float(scores[place - 1, ids[place]]) for place in range(start, len(ids)))
        assert got[number].loglikelihood == pytest.approx(expected, abs=1e-4)
        assert got[number].is_greedy is False
        assert got[number].is_loss is False


def test_the_greedy_answer_is_greedy(model):
    text = answers(model, [ask(0, "What?", max_new_tokens=1)])[0].text
    got = answers(model, [ask(0, "What?", kind="loglikelihood", continuation=text),
                          ask(1, "What?", kind="loglikelihood", continuation="")])  # fmt: skip
    assert got[0].is_greedy is True
    assert got[1].error.kind == "bad_request"


def test_identity_follows_what_fixes_answers(tiny, tmp_path):
    first = build(tiny).identity()
    assert json.loads(json.dumps(first)) == first
    assert first == build(tiny, batch_size=4).identity()
    assert first != build(tiny, dtype="bfloat16").identity()
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("one")
    one = build(tiny, system_prompt=str(prompt)).identity()
    prompt.write_text("two")
    assert one != build(tiny, system_prompt=str(prompt)).identity()


def test_describe_is_json_and_tells_the_setting(model):
    facts = model.describe()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["model_class"] == "Idefics3ForConditionalGeneration"
    assert facts["dtype"] == "float32"
    assert facts["device"] == "cpu"
    assert facts["parameters"] > 10_000
    assert facts["peak_memory_bytes"] > 2**20


def test_unknown_arguments_and_folders(tmp_path):
    with pytest.raises(ModelError, match="did you mean 'batch_size'"):
        HuggingFace(pretrained="x", batchsize=2)
    with pytest.raises(ModelError, match=str(tmp_path)):
        HuggingFace(pretrained=str(tmp_path))


def test_an_unprepared_request_is_a_programming_error(model):
    with pytest.raises(TypeError, match="was not prepared"):
        list(model.respond(ListStream([ask(0, "What?")])))


def test_close_frees_the_model(tiny):
    import weakref

    model = build(tiny)
    weights = weakref.ref(model.loaded.model)
    model.close()
    assert weights() is None


def test_a_prompt_longer_than_max_length_is_refused(tiny):
    model = build(tiny, max_length=24)
    found = answers(model, [ask(0, "Hi"), ask(1, "A question of very many words that goes on and on and on and on")])
    assert found[0].error is None
    assert found[1].error.kind == "bad_request" and "takes 24 at most" in found[1].error.message
