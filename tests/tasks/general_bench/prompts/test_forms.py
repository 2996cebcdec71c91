import typing

from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Form
from lmms_eval.tasks.general_bench.prompts.forms import max_new_tokens, needs_file


def test_arrays_and_media_need_files():
    said = {form for form in typing.get_args(Form) if not needs_file(form)}
    assert said == {"text", "number", "boxes", "tube", "mask", "masks", "instances", "triplets"}
    assert needs_file("instances", find_task("3D Indoor Instance Segmentation"))
    assert not needs_file("instances", find_task("Vehicle Instance Segmentation"))


def test_long_answers_may_be_long():
    assert max_new_tokens("text") == 128
    assert max_new_tokens("boxes") == 1024
    assert max_new_tokens("tube") == 2048
