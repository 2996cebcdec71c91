from __future__ import annotations

import fnmatch
import functools
from pathlib import Path

import pytest

from lmms_eval.recipes.recipe import names, read
from lmms_eval.recipes.showing import CHOICE, RecipeDifference, differences, problems, sample_of, shown, without_source
from lmms_eval.tasks.catalogue import Catalogue

SOUND = """
models: ["acme/Lens-*"]
source: {repository: acme/lens}
tasks:
  mmstar: {layout: {parts: "{{ question }}", answer_start: "So: "}, gen_kwargs: {temperature: 0}, seed: 1, stated: run.sh}
"""  # noqa: E501


def recipe(tmp_path: Path, text: str, name: str = "lens.yaml") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_recipe_in_words() -> None:
    task = read("qwen3-vl-instruct@qwen-evaluation").task("realworldqa")
    assert task is not None and task.layout is not None
    found = shown("realworldqa", task)
    assert found["layout"] == (
        "[image]Hint: {hint}\nQuestion: {question}\nOptions:\nA. {first}\nB. {second}\n"
        "Please select the correct answer from the options above. \n"
    )
    assert (found["system_prompt"], found["gen_kwargs.presence_penalty"]) == ("none", "1.5")
    assert found["media.max_pixels"] == str(5120 * 28 * 28) and found["gen_kwargs.do_sample"] == "yes"
    video = read("qwen3-vl-instruct@qwen-evaluation").task("videomme")
    assert video is not None and "[video]This video's subtitles" in shown("videomme", video)["layout"]


def test_what_two_recipes_differ_in(tmp_path: Path) -> None:
    one = read(recipe(tmp_path, SOUND))
    changed = SOUND.replace("So: ", "").replace("seed: 1, ", "").replace("temperature: 0", "temperature: 0.7")
    other = read(recipe(tmp_path, changed + "  mme: {}\n", "other.yaml"))
    found = differences(one, other)
    assert found == {
        "mmstar": (
            RecipeDifference("seed", "1", "not stated"),
            RecipeDifference("layout", "[image]{question} → So: ", "[image]{question}"),
            RecipeDifference("gen_kwargs.temperature", "0", "0.7"),
        ),
        "mme": (RecipeDifference("covered", "no", "yes"),),
    }
    assert differences(one, one) == {}


def test_a_difference_of_open_questions_is_shown(tmp_path: Path) -> None:
    open_one = SOUND.replace("{{ question }}", "{{ question }}{% if not options %}!{% endif %}")
    pair = read(recipe(tmp_path, SOUND)), read(recipe(tmp_path, open_one, "other.yaml"))
    ((difference,),) = differences(*pair).values()
    assert difference.key == "layout" and difference.other.startswith("[image]{question}!")
    marked = SOUND.replace("answer_start:", "pictures: marked, answer_start:")
    ((difference,),) = differences(pair[0], read(recipe(tmp_path, marked, "other.yaml"))).values()
    assert difference == RecipeDifference("layout.pictures", "first", "marked")


def test_problems_are_lines_with_file_and_key(tmp_path: Path) -> None:
    known = {"mmstar", "mme"}
    assert list(problems(recipe(tmp_path, SOUND), known.__contains__)) == []
    bad = recipe(
        tmp_path,
        'models: ["*", " a/b"]\nsource: {repository: a}\n'
        "tasks: {mmstra: {extract: letters}, mme: {layout: {parts: '{{ options[5] }}'}}}\n"
        "variants: {long: {tasks: {mme: {seed: early}}}}\n",
    )
    lines = list(problems(bad, known.__contains__))
    assert [line for line in lines if "\n" in line] == []
    wanted = (
        "lens: models: '*' fits every model", "lens: models: ' a/b' fits every model, or begins or ends",
        "lens: tasks.mmstra: there is no such task", "lens: tasks.mmstra.extract: unknown extraction rule 'letters'",
        "lens: tasks.mme.layout: template '{{ options[5] }}'", "lens.yaml: tasks.mme: Expected `int | null`",
    )  # fmt: skip
    for text in wanted:
        assert sum(text in line for line in lines) == 1, (text, lines)
    assert len(lines) == len(wanted)


def test_a_recipe_for_nobody(tmp_path: Path) -> None:
    lines = list(problems(recipe(tmp_path, "tasks: {mme: {}}"), bool))
    assert lines == ["lens: models: no pattern of models' names, so nobody finds it"]


def test_values_without_a_source(tmp_path: Path) -> None:
    text = SOUND.replace("stated: run.sh", "stated: {seed: run.sh}")
    assert without_source(read(recipe(tmp_path, text))) == {"mmstar": ("layout", "gen_kwargs.temperature")}


def test_shipped_recipes_are_sound() -> None:
    known = list(Catalogue().tasks)
    is_task = functools.cache(lambda pattern: bool(fnmatch.filter(known, pattern)))
    for name in names():
        assert list(problems(name, is_task)) == []


def test_a_layout_without_a_turn_for_a_document_fails() -> None:
    task = read("internvl3@vlmevalkit:cot").task("mmmu_val")
    assert task is not None and task.layout is not None
    text = sample_of(task.layout, CHOICE)
    assert text.startswith("[image]{hint}\n{question}\nA. {first}\nB. {second}\nAnswer the preceding multiple choice")
    assert r"\boxed{$LETTER}" in text
    with pytest.raises(KeyError):
        read("plain@vlmevalkit").tasks["nothing"]
