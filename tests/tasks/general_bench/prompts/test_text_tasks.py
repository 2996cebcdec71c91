from lmms_eval.tasks.general_bench.facts import find_task, tasks
from lmms_eval.tasks.general_bench.prompts.forms import (
    MAX_CANDIDATES,
    candidate_answers,
    chooses,
    is_cut_at_tag,
    listed,
    text_demand,
    text_tokens,
)
from tests.cases import for_each
from tests.tasks.general_bench.prompts.media_kit import an_item


def answers(task, *references, form="text"):
    return candidate_answers(find_task(task), [an_item(task, form, reference=reference) for reference in references])


def test_candidates_are_the_sorted_set_of_references():
    assert answers("Accent Classification", "Welsh ", "Irish", "Welsh", ["Scots", "Irish"]) == (
        "Irish",
        "Scots",
        "Welsh",
    )


def test_candidates_are_lower_cased_where_the_reference_is_compared_so():
    assert answers("Animal Sound Detection", "Dog", "cat", "dog") == ("cat", "dog")
    assert answers("Music Genre Classification", "Rock", "jazz") == ("Rock", "jazz")


def test_fixed_candidates_need_no_references():
    assert answers("Accent Sex Classification", None) == ("female", "male")
    assert answers("Bird Sound Detection") == ("No", "Yes")


def test_open_answers_have_no_candidates():
    assert answers("Audio Question Answering", "yes", "no") == ()
    assert answers("Video Sports Recognition", "golf", "judo") == ()
    assert answers("Multimodal Named Entity Recognition", "a", "b") == ()


def test_a_closed_set_of_a_task_may_be_unknown_or_too_large():
    assert answers("Accent Classification", None, None) == ()
    assert answers("Speaker Identification", *map(str, range(MAX_CANDIDATES))) == tuple(
        sorted(map(str, range(MAX_CANDIDATES)))
    )
    assert answers("Speaker Identification", *map(str, range(MAX_CANDIDATES + 1))) == ()


def test_labels_of_boxes_are_candidates():
    assert answers("Bee Detection", [[0, 0, 1, 1, "queen"], [0, 0, 1, 1, "bee"]], [], None, form="boxes") == (
        "bee",
        "queen",
    )


def test_labels_of_other_objects_and_numbers_as_labels():
    assert answers(
        "Vehicle Instance Segmentation", [{"mask": "a.png", "label": "car"}, {"box": []}], form="instances"
    ) == ("car",)
    assert answers("Bee Detection", [[0, 0, 1, 1, 3], [0, 0, 1, 1, True]], "x.json", form="boxes") == ("3",)


def test_most_sound_tasks_choose():
    chosen = [task.name for task in tasks() if task.modality == "Audio" and chooses(task)]
    assert len(chosen) == 19
    assert "Long Audio Captioning" not in chosen


def test_object_matching_on_videos_is_cut_at_tags():
    cut = [task for task in tasks() if is_cut_at_tag(task)]
    assert [task.number for task in cut] == list(range(87, 95))
    assert not is_cut_at_tag(find_task("Car Model Matching"))


@for_each(
    ("task", "wanted"),
    [
        ("Video Action Counting", "digits"),
        ("Video Action Ordering", "2->1->4->3"),
        ("Gymnastics Video Question Answering", "answer alone"),
        ("Handwriting OCR", "answer alone"),
        ("Sketch-to-HTML Code Generation", "without ```"),
        ("Comedy Video Question Answering", "briefly"),
        ("Sporting-related VQA", "briefly"),
        ("3D Spatial Scene Question Answering", "briefly"),
        ("Video Object Counting", "briefly"),
    ],
)
def test_demands(task, wanted):
    assert wanted in text_demand(find_task(task), (), "What?")


def test_captions_may_be_anything():
    for task in ("COCO Image Captioning", "Wild Audio Captioning", "Humor Video Captioning"):
        assert text_demand(find_task(task), (), "") == ""


def test_candidates_are_named_unless_the_prompt_does():
    facts = find_task("Accent Classification")
    assert "Irish, Welsh" in text_demand(facts, ("Irish", "Welsh"), "Which accent is it? Irishman?")
    assert "Irish, Welsh" not in text_demand(facts, ("Irish", "Welsh"), "Is it Irish or welsh?")


def test_lists_are_parted_by_a_free_sign():
    assert listed(["a", "b"]) == "a, b"
    assert listed(["a, c", "b"]) == "a, c; b"
    assert listed(["a, c", "b; d"]) == "a, c | b; d"
    assert listed(["a, c", "b; d", "|"]).split("\n")[1:-1] == ["a, c", "b; d", "|"]


def test_bounds_of_replies():
    assert text_tokens(find_task("COCO Image Captioning"), ()) == 256
    assert text_tokens(find_task("Comedy Video Question Answering"), ()) == 128
    assert text_tokens(find_task("Weather Recognition"), ("rain", "sun")) == 64
    assert text_tokens(find_task("Latex Code Recognition"), ()) == 1024
