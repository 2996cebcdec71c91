import typing

from lmms_eval.tasks.general_bench.facts import find_task
from lmms_eval.tasks.general_bench.items import Form
from lmms_eval.tasks.general_bench.prompts.forms import FORMS, describe, needs_file


def test_every_form_is_described_in_a_line():
    assert set(FORMS) == set(typing.get_args(Form))
    for form in FORMS:
        assert describe(form)
        assert "\n" not in describe(form)


def test_arrays_and_media_need_files():
    said = {form for form in FORMS if not needs_file(form)}
    assert said == {"text", "number", "boxes", "tube", "mask", "masks", "instances", "triplets"}
    assert needs_file("instances", find_task("3D Indoor Instance Segmentation"))
    assert not needs_file("instances", find_task("Vehicle Instance Segmentation"))


def test_long_answers_may_be_long():
    assert FORMS["text"].max_new_tokens == 128
    assert FORMS["boxes"].max_new_tokens == 1024
    assert FORMS["tube"].max_new_tokens == 2048
