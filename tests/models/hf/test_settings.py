import pytest
from transformers import GenerationConfig

from lmms_eval.models.hf.settings import DEFAULT_MAX_NEW_TOKENS, option_names, options_taken, read_settings
from tests.cases import for_each

VALID = frozenset(GenerationConfig().to_dict())


@for_each(
    ("generation", "sampled"),
    [
        ({}, False),
        ({"temperature": 0}, False),
        ({"temperature": 0.0, "do_sample": True}, False),
        ({"temperature": 0.7}, True),
        ({"temperature": 0.7, "do_sample": False}, False),
        ({"do_sample": True}, True),
        ({"do_sample": None, "temperature": None}, False),
    ],
)
def test_sampling_only_when_asked_for(generation, sampled):
    assert read_settings(generation, VALID).sampled is sampled


def test_greedy_drops_the_sampling_options_of_task_and_model():
    arguments = read_settings({"temperature": 0, "top_p": 0.5, "repetition_penalty": 1.1}, VALID).arguments
    assert arguments["do_sample"] is False
    assert [arguments[name] for name in ("temperature", "top_p", "top_k", "min_p")] == [None] * 4
    assert arguments["repetition_penalty"] == 1.1


def test_sampled_options_are_passed_on():
    arguments = read_settings({"temperature": 0.5, "top_k": 7}, VALID).arguments
    assert arguments == {"temperature": 0.5, "top_k": 7, "do_sample": True, "max_new_tokens": DEFAULT_MAX_NEW_TOKENS}


def test_length_and_stop_strings():
    assert read_settings({}, VALID).arguments["max_new_tokens"] == DEFAULT_MAX_NEW_TOKENS
    settings = read_settings({"max_gen_toks": "7", "until": ["\n\n", ""], "max_agentic_steps": 3}, VALID)
    assert settings.arguments["max_new_tokens"] == 7
    assert settings.until == ("\n\n",)
    assert read_settings({"stop_sequences": "END"}, VALID).until == ("END",)


def test_equal_options_have_equal_keys():
    first = read_settings({"max_new_tokens": 8, "until": ["a"], "num_beams": 2, "visual_cot": True}, VALID)
    second = read_settings({"num_beams": 2, "until": "a", "max_new_tokens": 8}, VALID)
    assert first.key == second.key
    assert first.key != read_settings({"num_beams": 2, "until": "b", "max_new_tokens": 8}, VALID).key


@for_each(
    ("generation", "message"),
    [
        ({"max_new_tokens": 0}, "at least 1"),
        ({"num_return_sequences": 2}, "--repeats"),
        ({"until": 3}, "until must be a text"),
        ({"until": [3]}, "until must be a text"),
    ],
)
def test_what_is_refused(generation, message):
    with pytest.raises(ValueError, match=message):
        read_settings(generation, VALID)


def test_options_without_a_place_are_named_and_not_passed():
    settings = read_settings({"temperature": 0, "image_aspect_ratio": "pad", "seed": 3}, VALID)
    assert settings.ignored == ("image_aspect_ratio",) and "image_aspect_ratio" not in settings.arguments
    assert settings.seed == 3 and settings.key != read_settings({"temperature": 0, "seed": 4}, VALID).key
    assert settings.as_sent() == {"do_sample": False, "max_new_tokens": DEFAULT_MAX_NEW_TOKENS}


def test_what_a_local_model_takes():
    taken = options_taken(option_names(), frozenset({"enable_thinking"}))
    assert taken.objection("enable_thinking", True) == "" and taken.objection("repetition_penalty", 1.1) == ""
    assert taken.objection("chat_template_kwargs", {"enable_thinking": False}) == ""
    assert "knows no thinking" in taken.objection("chat_template_kwargs", {"thinking": False})
    assert taken.objection("logprobs", True) and taken.objection("n", 2) and taken.objection("output_scores", True)
    assert options_taken(option_names()).objection("enable_thinking", True)
