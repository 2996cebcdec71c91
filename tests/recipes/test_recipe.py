from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lmms_eval.errors import ConfigError, UnknownNameError
from lmms_eval.recipes.layouts import Fields, Layout, MediaReference, render
from lmms_eval.recipes.recipe import (
    FOLDER,
    JudgeChoice,
    MediaLimits,
    RecipeSource,
    TaskRecipe,
    Thinking,
    fitting,
    names,
    read,
)
from tests.cases import for_each

SIMPLE = """
models: ["acme/Lens-*"]
about: Lens as its makers run it
source: {repository: acme/lens, path: eval/, date: "2026-01-01"}
texts: {directly: Answer directly.}
layouts:
  choice: {parts: "{{ question }} {{ directly }}"}
defaults:
  gen_kwargs: {temperature: 0.5, top_p: 0.9}
  stated: run.sh:3
tasks:
  mmstar, ai2d:
    layout: choice
    gen_kwargs: {top_p: 0.8}
    media: {max_pixels: 16*28*28}
    stated: {"*": run.sh:9, media: run.sh:10}
  mme: {}
variant: plain
variants:
  long:
    about: with more tokens
    texts: {directly: Think first.}
    defaults: {gen_kwargs: {max_new_tokens: 99}, stated: long.sh}
  fast:
    tasks:
      mmstar: {gen_kwargs: {top_p: null}, layout: {suffix: "!"}}
      mme: null
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lens.yaml"
    path.write_text(SIMPLE, encoding="utf-8")
    return path


def test_a_task_has_its_own_values_over_the_defaults(file: Path) -> None:
    recipe = read(str(file))
    assert (recipe.name, recipe.variant, list(recipe.tasks)) == ("lens", "plain", ["mmstar", "ai2d", "mme"])
    assert recipe.digest == hashlib.sha256(file.read_bytes()).hexdigest()
    task = recipe.task("ai2d")
    assert task is not None and task.layout is not None
    assert task.gen_kwargs == {"temperature": 0.5, "top_p": 0.8} and task.media == MediaLimits(max_pixels=12544)
    assert task.stated["gen_kwargs.temperature"] == "run.sh:3"
    assert (task.stated["gen_kwargs.top_p"], task.stated["media.max_pixels"]) == ("run.sh:9", "run.sh:10")
    assert render(task.layout, Fields(question="Which?", images=1)) == [
        MediaReference("image", 0),
        "Which? Answer directly.",
    ]
    assert recipe.task("mmmu_val") is None
    mme = recipe.task("mme")
    assert mme is not None and mme.layout is None and mme.gen_kwargs["top_p"] == 0.9


def test_what_is_not_stated_is_named(file: Path) -> None:
    task = read(str(file)).task("mmstar")
    assert task is not None
    assert task.not_stated == (
        "gen_kwargs.max_new_tokens", "seed", "repeats", "system_prompt", "thinking.removal", "extract", "judge",
        "metric",
    )  # fmt: skip
    assert set(task.values) == {"layout", "gen_kwargs.temperature", "gen_kwargs.top_p", "media.max_pixels"}


def test_variants_are_laid_over_the_recipe_and_each_other(file: Path) -> None:
    long, both = read(f"{file}:long"), read(str(file), "long+fast")
    assert (long.variant, both.variant) == ("long", "long+fast")
    assert dict(long.variants) == {"plain": "", "long": "with more tokens", "fast": ""}
    one, two = long.task("mmstar"), both.task("mmstar")
    assert one is not None and two is not None and one.layout is not None and two.layout is not None
    assert one.gen_kwargs == {"temperature": 0.5, "top_p": 0.8, "max_new_tokens": 99}
    assert render(one.layout, Fields(question="Which?")) == ["Which? Think first."]
    assert render(two.layout, Fields(question="Which?")) == ["Which? Think first.!"]
    assert two.gen_kwargs["top_p"] == 0.9, "null takes the task's own value away, so the default counts"
    assert both.task("mme") is None
    assert one.stated["layout"] == "eval/, variant long", "the text that the layout shows is the variant's"
    assert read(f"{file}:plain").variant == "plain"


def test_a_recipe_builds_on_another(file: Path, tmp_path: Path) -> None:
    upper = tmp_path / "more.yml"
    upper.write_text(
        "base: lens.yaml\nmodels: ['acme/Wide-*']\nsource: {repository: acme/wide, path: wide.py}\n"
        "layouts: {choice: {parts: 'Q. {{ question }}'}}\ntasks: {ai2d: null, mmmu_val: {layout: choice}}\n"
        "variants: {fast: null}\n",
        encoding="utf-8",
    )
    recipe = read(str(upper))
    assert (recipe.models, list(recipe.tasks)) == (("acme/Wide-*",), ["mmstar", "mme", "mmmu_val"])
    assert list(recipe.variants) == ["plain", "long"]
    task = recipe.task("mmstar")
    assert task is not None and task.layout is not None and task.stated["layout"] == "wide.py"
    assert render(task.layout, Fields(question="Which?")) == ["Q. Which?"]
    before = recipe.digest
    file.write_text(SIMPLE.replace("0.5", "0.6"), encoding="utf-8")
    assert read(str(upper)).digest != before, "the file below is part of it"


def test_a_layout_for_all_tasks(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(
        "models: [a/b]\nlayouts: {choice: {parts: '{{ question }}'}}\n"
        "defaults: {layout: choice, stated: x.py:1}\ntasks: {mme: {}, mmstar: {layout: {suffix: '!', rstrip: true}}}\n",
        encoding="utf-8",
    )
    shown = {}
    for name, task in read(str(path)).tasks.items():
        assert task.layout is not None
        shown[name] = render(task.layout, Fields(question="Which? "))
    assert shown == {"mme": ["Which? "], "mmstar": ["Which?!"]}


def test_patterns_of_tasks(tmp_path: Path) -> None:
    path = tmp_path / "any.yaml"
    path.write_text("models: [a/b]\ntasks: {'mmbench_*': {seed: 1}, mmbench_cn_dev: {seed: 2}}", encoding="utf-8")
    recipe = read(str(path))
    found = [recipe.task(name) for name in ("mmbench_en_dev", "mmbench_cn_dev")]
    assert [task and task.seed for task in found] == [1, 2]


MISTAKES = {
    "an unknown key": ("extra: 1", "unknown key 'extra'; there are about, base,"),
    "an unknown key of a task": ("tasks: {mme: {promt: x}}", "tasks.mme: unknown key 'promt'"),
    "an unknown limit": ("tasks: {mme: {media: {max_pixel: 1}}}", "tasks.mme.media: Object contains unknown field"),
    "a limit that is no number": ("tasks: {mme: {media: {fps: fast}}}", "tasks.mme.media: Expected `float | null`"),
    "an unknown option": ("tasks: {mme: {gen_kwargs: {temprature: 1}}}", "did you mean 'temperature'?"),
    "an option of a model that nobody has": ("tasks: {mme: {gen_kwargs: {zeal: 1}}}", "generation option 'zeal'"),
    "an unknown field": (
        "layouts: {x: {parts: '{{ ask }}'}}\ntasks: {mme: {layout: x}}",
        "tasks.mme.layout.parts[1]: template '{{ ask }}': unknown field 'ask'; there are frames, hint,",
    ),
    "an unknown layout": ("tasks: {mme: {layout: y}}", "tasks.mme.layout: unknown layout 'y'; there are none"),
    "a layout that is like itself": (
        "layouts: {x: y, y: x}\ntasks: {mme: {layout: x}}", "tasks.mme.layout: layout 'x' is like itself",
    ),
    "a layout with no template": ("layouts: {x: {parts: []}}", "layouts.x.parts: must hold at least one template"),
    "a name that is no text": ("layouts: {x: {like: [y]}}", "layouts.x.like: must be the name of a layout, not ['y']"),
    "a variant that is a list": ("variants: {x: []}", "variants.x: must be a mapping with names, not []"),
    "a source in words": ("source: acme", "source: must be a mapping with names, not 'acme'"),
    "a layout without parts": ("tasks: {mme: {layout: {rstrip: true}}}", "tasks.mme.layout: Object missing"),
    "an unknown place of pictures": (
        "tasks: {mme: {layout: {parts: x, pictures: left}}}", "tasks.mme.layout: Invalid enum value 'left'",
    ),
    "a source of nothing": ("tasks: {mme: {seed: 1, stated: {sed: f}}}", "stated.sed: the source of a value that"),
    "a system prompt with an unknown text": ("tasks: {mme: {system_prompt: '{{ x }}'}}", "tasks.mme.system_prompt:"),
    "a text with the name of a field": ("texts: {question: x}", "texts.question: the name of a field"),
    "models that are no list": ("models: a", "models: must be a list of texts"),
    "a judge without a model": ("tasks: {mme: {judge: {tries: 3}}}", "tasks.mme.judge: Object missing required"),
    "no mapping": ("- a", "must be a mapping with names, not ['a']"),
    "no YAML": ("tasks: [", "line "),
    "an unknown base": ("base: nobody", "base: there is no recipe 'nobody'"),
    "a variant with a key of files": ("variants: {x: {models: [a]}}", "variants.x: unknown key 'models'"),
}  # fmt: skip


@for_each("text, wanted", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_one_line_with_file_and_key(text: str, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read(str(path))
    message = str(caught.value)
    assert "bad.yaml" in message and wanted in message and "\n" not in message, message


def test_names_that_nobody_has(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown recipe 'gemma@vlmevalkit'; did you mean gemma-3@vlmevalkit"):
        read("gemma@vlmevalkit")
    with pytest.raises(UnknownNameError, match=r"unknown variant 'logn'; did you mean long\?.*has plain, long, fast"):
        read(f"{file}:logn")
    with pytest.raises(ConfigError, match="there is no such file"):
        read(str(tmp_path / "gone.yaml"))
    loop = tmp_path / "loop.yaml"
    loop.write_text("base: loop.yaml", encoding="utf-8")
    with pytest.raises(ConfigError, match="builds on itself"):
        read(str(loop))


def test_the_recipes_of_a_model() -> None:
    assert fitting("Qwen/Qwen3-VL-8B-Instruct") == ("qwen3-vl-instruct@qwen-evaluation", "qwen3-vl-instruct@vlmevalkit")
    assert fitting("/data/models/qwen3-vl-8b-instruct/") == fitting("Qwen/Qwen3-VL-8B-Instruct")
    cached = "/root/hub/models--Qwen--Qwen3-VL-8B-Instruct/snapshots/0c351dd01ed87e9c1b53cbc748cba10e6187ff3b"
    assert fitting(cached) == fitting("Qwen/Qwen3-VL-8B-Instruct")
    assert fitting("gpt-4o") == () and fitting("") == ()
    for name in names():
        recipe = read(name)
        assert recipe.models, name
        example = recipe.models[0].replace("*", "x")
        assert name in fitting(example) and recipe.fits(example), name


def test_shipped_recipes_say_where_each_value_is_stated() -> None:
    for name in names():
        for variant in read(name).variants:
            recipe = read(name, variant)
            assert recipe.source.repository and recipe.source.revision and recipe.source.date, name
            for task, stated in recipe.tasks.items():
                unsourced = set(stated.values) - set(stated.stated)
                assert not unsourced, (name, variant, task, unsourced)


def test_the_page_names_every_key() -> None:
    page = (FOLDER.parents[1] / "docs" / "recipe_files.md").read_text(encoding="utf-8")
    for record in (TaskRecipe, MediaLimits, JudgeChoice, Thinking, RecipeSource, Layout, Fields):
        missing = [name for name in record.__struct_fields__ if f"`{name}`" not in page]
        assert not missing, (record.__name__, missing)


def test_files_are_part_of_the_package() -> None:
    assert {f"{name}.yaml" for name in names()} == {file.name for file in FOLDER.iterdir() if file.suffix == ".yaml"}
    assert len(names()) >= 25
