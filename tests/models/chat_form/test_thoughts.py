"""What a checkpoint's ``chat`` does not tell, by its ``generate``: ends, tokens, opened thoughts."""

import pytest
from msgspec.structs import replace

from tests.models.hf.support import answers, converse
from tests.models.scripted import save_tokenizer

from .folders import COMMON, write
from .support import image, make, reply, text, user

WRITES = (
    COMMON
    + """
class Writer(nn.Module):
    \"\"\"Writes what it is given, as a language model does that gets embeddings.\"\"\"

    def generate(self, inputs_embeds=None, max_new_tokens=None, eos_token_id=None, do_sample=None, **kwargs):
        width = min(max_new_tokens, max(len(row) for row in inputs_embeds))
        rows = [(row + [0] * width)[:width] for row in inputs_embeds]
        return torch.tensor(rows)


class Model(Stub):
    def __init__(self, config, use_flash_attn=True):
        super().__init__(config)
        self.language_model = Writer()

    def generate(self, input_ids=None, rows=None, **options):
        return self.language_model.generate(inputs_embeds=rows, **options)

    def batch_chat(self, tokenizer, pixel_values, questions, generation_config, num_patches_list=None, history=None):
        told = [question.split("WRITE ")[1] for question in questions]
        end = tokenizer.eos_token_id
        prompts = ["<think>\\\\n" if "OPEN" in question else "so:" for question in questions]
        width = max(len(tokenizer(prompt)["input_ids"]) for prompt in prompts)
        prompts = [[0] * width + tokenizer(prompt)["input_ids"] for prompt in prompts]
        ids = self.generate(
            input_ids=torch.tensor([prompt[-width:] for prompt in prompts]),
            rows=[tokenizer(one, add_special_tokens=False)["input_ids"] + [end] for one in told],
            eos_token_id=end,
            **generation_config,
        )
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [one.strip() for one in texts]

    def chat(self, tokenizer, pixel_values, question, generation_config, history=None, num_patches_list=None):
        return self.batch_chat(tokenizer, None, [question], generation_config)[0]
"""
).replace("\\\\n", "\\n")
THOUGHT = "First, A?\n\nNo. B\nis right."


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make("internvl", write(tmp_path_factory.mktemp("writer") / "m", "internvl", WRITES), batch_size=4)


def said(model, words, opened=False, **options):
    return reply(model, user(text(f"{'OPEN ' if opened else ''}WRITE {words}")), **{"max_new_tokens": 200, **options})


def test_it_is_told_how_an_answer_ended_and_by_how_many_tokens(model):
    whole = said(model, "0123456789")
    assert (whole.text, whole.finish_reason, whole.usage.output_tokens) == ("0123456789", "stop", 11)
    for limit, finish in ((8, "length"), (10, "length"), (11, "stop")):
        got = said(model, "0123456789", max_new_tokens=limit)
        assert (limit, got.finish_reason, got.usage.output_tokens) == (limit, finish, limit)
    assert "generate" not in vars(model.form.model) and "generate" not in vars(model.form.model.language_model)


def test_rows_of_one_call_end_by_themselves(model):
    words = ["0123", "0123456789", "012"]
    requests = [converse(n, [user(image(), text(f"WRITE {word}"))], max_new_tokens=6) for n, word in enumerate(words)]
    got = answers(model, requests)
    assert [got[number].finish_reason for number in range(3)] == ["stop", "length", "stop"]
    assert [got[number].usage.output_tokens for number in range(3)] == [5, 6, 4]
    assert len(got[0].batch) == 3


@pytest.mark.parametrize(
    ("words", "opened"), [(f"<think>{THOUGHT}</think>\n\nB\n\nC", False), (f"{THOUGHT}</think>\n\nB\n\nC", True)]
)
def test_thoughts_are_apart_and_stop_strings_hold_behind_them(model, words, opened):
    got = said(model, words, opened, until=["\n\n"])
    assert (got.text.strip(), got.finish_reason, got.ended_by) == ("B", "stop", "\n\n")
    assert got.thoughts.text == THOUGHT
    assert 10 < got.usage.reasoning_tokens < got.usage.output_tokens
    cut = said(model, words, opened, max_new_tokens=12)
    assert (cut.text, cut.finish_reason, cut.thoughts.is_finished) == ("", "length", False)
    assert cut.usage.reasoning_tokens == 12


def test_the_delimiter_of_examples_is_no_stop_of_a_chat(model):
    asked = replace(converse(0, [user(text("WRITE One.\n\nTwo."))], max_new_tokens=50), implied_stop="\n\n")
    assert answers(model, [asked])[0].text == "One.\n\nTwo."


def test_tags_that_chat_leaves_out_with_the_special_tokens_are_seen(tmp_path):
    folder = write(tmp_path / "m", "internvl", WRITES)
    save_tokenizer(folder, special=("[THINK]", "[/THINK]"))
    got = said(make("internvl", folder), f"[THINK]{THOUGHT}[/THINK]B")
    assert (got.text, got.thoughts.text) == ("B", THOUGHT)
