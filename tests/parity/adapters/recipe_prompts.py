"""Vectors of the recipes: the messages, options and limits that the sources' own functions make."""

from __future__ import annotations

import ast
import functools
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from lmms_eval.recipes import recipe as recipes
from lmms_eval.recipes.layouts import MEDIUM, TEXT, Fields, Layout, MediaReference, Part, answer_start, lettered, render
from lmms_eval.recipes.recipe import Recipe, TaskRecipe
from tests.parity.adapters.recipe_frames import OF_KIND
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter

WITHOUT_OPTIONS = "recipe_mmmu_pro_has_options"
EMPTY_TEXT = "recipe_empty_text_is_not_sent"
ROLES = ("system", "assistant")
QUERIES = frozenset({"mathvista_testmini", "mathvision_test"})
"""Benchmarks whose column ``question`` holds the whole text that is asked."""
VARIANTS = {
    "internvl3-cot@vlmevalkit": "internvl3@vlmevalkit:cot",
    "internvl3.5-thinking@vlmevalkit": "internvl3.5-thinking@vlmevalkit:cot",
    "*@vlmevalkit": "plain@vlmevalkit",
}
"""Recipes that the vectors name in another way."""
RENAMED = {"max_tokens": "max_new_tokens", "sampling": "do_sample", "enable_thinking": "thinking.enabled",
           "thinking_budget": "thinking.budget", "max_inp_length": "engine.max_inp_length"}  # fmt: skip
_LETTER = re.compile(r"^[A-Z]$")
_PICTURE = re.compile(r"<image:(.+?)>|<frame:(\d+)>")


@functools.cache
def recipe_of(name: str, variant: str = "") -> Recipe:
    """The recipe and variant that a vector names."""
    base, _, added = name.partition("+")
    return recipes.read(VARIANTS.get(base, base), variant or added)


def _literal(value: Any) -> list[str]:
    found = ast.literal_eval(value) if isinstance(value, str) else value
    return [str(item) for item in found or ()]


def _options(document: Mapping[str, Any]) -> list[str]:
    """The texts of a document's options, from whichever columns its table has."""
    for column in ("options", "candidates", "choices"):
        if isinstance(document.get(column), list) or (column != "choices" and document.get(column)):
            return _literal(document[column])
    lettered_columns = {key: _text(value) for key, value in document.items() if _LETTER.match(key)}
    last = max((key for key, text in lettered_columns.items() if text), default="")
    return [lettered_columns.get(letter, "") for letter in string.ascii_uppercase if letter <= last]


def _text(value: Any) -> str:
    """A cell of a table as text; empty cells may be no numbers."""
    return "" if value is None or value != value else str(value)


def pictures_of(document: Mapping[str, Any]) -> list[str]:
    """The names of a document's pictures."""
    numbered = [document[f"image_{number}"] for number in range(1, 8) if document.get(f"image_{number}")]
    own = document.get("images") or ([document["image"]] if document.get("image") else numbered)
    return [str(name) for name in own]


def fields_of(record: Mapping[str, Any], **media: int) -> Fields:
    """A document's columns as the fields that layouts name."""
    document = record["document"]
    question, benchmark = _text(document.get("question")), record["benchmark"]
    lines = _options(document)
    has_letters = benchmark.startswith("videomme")
    return Fields(
        question=question,
        query=question if benchmark in QUERIES else "",
        hint=_text(document.get("hint")),
        options=tuple(re.sub(r"^[A-Z]\. ?", "", line) for line in lines) if has_letters else tuple(lines),
        option_lines=tuple(lines) if has_letters else (),
        letters_in_picture=bool(document.get("abcLabel")),
        images=len(pictures_of(document)),
        **media,
        **({"subtitles": record["subtitles"]} if record.get("subtitles") else {}),
    )


def differing(ours: Any, recorded: Any, what: str) -> str:
    return "" if ours == recorded else f"{what}: {ours!r} is not {recorded!r}"


def _options_differ(task: TaskRecipe, recorded: Mapping[str, Any]) -> str:
    """The first generation option that is another; the ones that are not sent are left out of both."""
    ours = {**task.gen_kwargs, **{key: value for key, value in task.values.items() if "." in key}}
    wanted = {RENAMED.get(key, key): value for key, value in recorded.items() if value not in (None, [])}
    if isinstance(wanted.get("do_sample"), str):  # in words: the checkpoint's own
        del wanted["do_sample"]
    for key, value in wanted.items():
        if ours.get(key) != value:
            return f"option {key}: {ours.get(key)!r} is not {value!r}"
    more = set(task.gen_kwargs) - set(wanted) - {"do_sample"}
    return f"options that are not recorded: {sorted(more)}" if more else ""


def _content(parts: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Recorded parts as a layout's: texts, and the names of media."""
    found: list[Any] = []
    for part in parts:
        text = part.get("text", part.get("value") if part.get("type") == "text" else None)
        medium = part.get("image") or part.get("url") or part.get("video") or part.get("value")
        found.append(text if text is not None else _named(str(medium)))
    return found


def _named(medium: str) -> tuple[str, str]:
    mark = _PICTURE.search(medium)
    return ("video", "") if mark is None else ("frame", mark[2]) if mark[2] else ("image", mark[1])


def _ours(parts: Sequence[Part], names: Sequence[str]) -> list[Any]:
    """Rendered parts, with the names of media in place of their numbers."""
    return [_shown(part, names) if isinstance(part, MediaReference) else part for part in parts]


def _shown(medium: MediaReference, names: Sequence[str]) -> tuple[str, str]:
    if medium.kind == "image":
        return ("image", names[medium.index])
    return (medium.kind, str(medium.index + 1) if medium.kind == "frame" else "")


def _joined(parts: Sequence[Part], picture: str) -> str:
    return "".join(picture if isinstance(part, MediaReference) else part for part in parts)


def _chat(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[Any]]:
    """The system prompt and the user's turn of recorded messages."""
    system = "".join(
        part if isinstance(part, str) else part["text"]
        for message in messages
        if message["role"] == "system"
        for part in ([message["content"]] if isinstance(message["content"], str) else message["content"])
    )
    (user,) = [message["content"] for message in messages if message["role"] == "user"]
    return system, _content(user)


def _limits(task: TaskRecipe, part: Mapping[str, Any]) -> str:
    keys = ("min_pixels", "max_pixels", "total_pixels", "fps", "min_frames", "max_frames")
    ours = {key: value for key in keys if (value := getattr(task.media, key)) is not None}
    return differing(ours, {key: part[key] for key in keys if key in part}, "limits")


def _first(*found: str) -> Verdict:
    return next((failed(text) for text in found if text), PASSED)


@line_adapter("recipes/prompts_qwen3vl.jsonl")
@keyed("recipe", "benchmark", "variant", "document.*", "messages.*", "options.*", "engine.*",
       information={"kind": "always prompt", "set": "always golden", "task_label": "the script's name of the set",
                    "raw_output": "read by the adapter of extraction",
                    "output_without_thoughts": "read by the adapter of extraction"})  # fmt: skip
def scripts_of_qwen(vector: Vector) -> Verdict:
    """Messages with their limits, options, engine and the removal of thoughts of Qwen's scripts."""
    record = dict(vector.record)
    kind = record["variant"].partition("+")[2]
    task = recipe_of(record["recipe"], "cot" if kind == "cot" else "").task(record["benchmark"])
    assert task is not None
    system, wanted = _chat(record["messages"])
    fields = fields_of(record, videos=int("videoID" in record["document"]))
    if kind == "sub":  # which lines are shown is up to the frames
        shown = re.search(r"listed below:\n(.*)\nSelect the best", str(wanted[-1]), re.DOTALL)
        fields = replace(fields, subtitles=shown[1] if shown else "")
    media = [part for part in record["messages"][-1]["content"] if "text" not in part]
    most = {
        f"{medium}s" if medium == "video" else "pictures": count
        for medium, count in record["engine"]["limit_mm_per_prompt"].items()
    }
    engine = {"max_model_len": record["engine"]["max_model_len"], **most}
    return _first(
        differing(_ours(render(task.layout, fields), pictures_of(record["document"])), wanted, "messages"),
        differing(task.system_prompt, "" if kind == "sys" else system, "system prompt"),  # the user's own file
        *(_limits(task, part) for part in media),
        _options_differ(task, record["options"]),
        differing(task.seed, record["engine"]["seed"], "seed"),
        differing(task.engine, engine, "engine"),
        differing(task.thinking.removal, "after_last_mark", "removal of thoughts"),
    )


@line_adapter("recipes/prompts_vlmevalkit.jsonl")
@keyed("recipe", "benchmark", "document.*", "messages.*", "request", "request.*", "options.*", "vendor_type",
       "prompt_by",
       information={"kind": "always prompt", "set": "always golden", "model_entry": "the kit's name of the model",
                    "vendor_dataset": "the kit's name of the benchmark"})  # fmt: skip
def adapters_of_the_kit(vector: Vector) -> Verdict:
    """What VLMEvalKit's adapters hand their models, and with which options."""
    record = vector.record
    task = recipe_of(record["recipe"]).task(record["benchmark"])
    fields, names = fields_of(record), pictures_of(record["document"])
    if task is None:
        texts = "".join(part["value"] for part in record["messages"] if part["type"] == "text")
        hidden = record["vendor_type"] == "MCQ_MMMU_Pro" and lettered(fields.options) not in texts
        return deviates(WITHOUT_OPTIONS) if hidden else failed("the recipe does not cover the benchmark")
    assert task.layout is not None
    if task.media.stitched and len(names) > 1:
        fields, names = replace(fields, images=1), ["+".join(names)]
    parts = render(task.layout, fields)
    request = record["request"]
    found = _request_differs(task, parts, names, request)
    start = answer_start(task.layout, fields)
    return _first(
        found,
        differing(start, _recorded_start(request), "start of the answer"),
        _options_differ(task, record["options"]),
        *_media_differ(task, request, names),
        _messages_differ(record, fields, task.layout),
    )


def _messages_differ(record: Mapping[str, Any], fields: Fields, layout: Layout) -> str:
    """Compare the kit's messages: without an adapter with its plain recipe, with one with the text of the layout.

    Labels, numbers and line breaks around pictures join the adapter's text only in its request.
    """
    recorded = _content(record["messages"])
    plain = recipe_of("plain@vlmevalkit").task(record["benchmark"])
    if record["prompt_by"] == "benchmark":
        assert plain is not None
        assert plain.layout is not None
        names = pictures_of(record["document"])
        return differing(_ours(render(plain.layout, fields), names), recorded, "plain messages")
    bare = replace(layout, picture=MEDIUM, text=TEXT, join=None, gather=False, most=None)
    texts = "".join(part for part in recorded if isinstance(part, str))
    return differing(_joined(render(bare, fields), ""), texts, "text of the messages")


def _recorded_start(request: Any) -> str:
    prompt = request.get("prompt", "") if isinstance(request, dict) else ""
    return prompt.partition("\nAssistant:")[2]


def _media_differ(task: TaskRecipe, request: Any, names: Sequence[str]) -> list[str]:
    """Limits of a request's pictures."""
    if isinstance(request, list):
        return [_limits(task, part) for part in request[-1]["content"] if part["type"] == "image"]
    if "min_pixels" in request:
        return [_limits(task, request)]
    if "max_partition" in request:
        return [differing(task.media.tiles_of(0, len(request["images"])), request["max_partition"], "tiles")]
    if "enlarged_at_random" in request:
        is_noted = bool(task.not_reproducible)
        return [differing(bool(task.media.enlarged_at_random), request["enlarged_at_random"], "enlarged at random"),
                differing(is_noted, request["enlarged_at_random"], "noted as not reproducible")]  # fmt: skip
    if "max_crops" in request:
        return [differing(task.media.tiles, request["max_crops"], "crops")]
    if "question" in request:
        ours = [
            {"image": f"<image:{name}>", "max_tiles": task.media.tiles_of(place, len(names)),
             "doubled_first": bool(task.media.double_first) and place == 0}
            for place, name in enumerate(names)
        ]  # fmt: skip
        return [differing(ours, request["images"], "pictures")]
    return []


def _request_differs(task: TaskRecipe, parts: Sequence[Part], names: Sequence[str], request: Any) -> str:
    """Compare with what a request holds, in the form of chat that its model has."""
    system = task.system_prompt or ""
    shown = [name for part in _ours(parts, names) if isinstance(part, tuple) for name in [part[1]]]
    if isinstance(request, list) or "messages" in request:
        recorded = _chat(request if isinstance(request, list) else request["messages"])
        return differing((system, _ours(parts, names)), recorded, "messages")
    if isinstance(request.get("content"), list):
        recorded_parts = [_named(part) if _PICTURE.fullmatch(part) else part for part in request["content"]]
        return differing(_ours(parts, names), recorded_parts, "messages")
    if "question" in request:
        ours: Any = (system, _joined(parts, "<image>\n"))
        return differing(ours, (request["system"] or "", request["question"]), "question")
    if "content" in request:
        return differing((_joined(parts, "<image>\n"), shown), (request["content"], request["images"]), "content")
    if "query" in request:
        return differing((_joined(parts, "<image>"), shown), (request["query"], request["images"]), "query")
    if "text" in request:
        one = request["image"] if "+" in shown[0] else f"<image:{shown[0]}>"  # a file of the pictures together
        return differing((_joined(parts, ""), one), (request["text"], request["image"]), "text")
    return _prompt_differs(parts, shown, request)


def _prompt_differs(parts: Sequence[Part], shown: Sequence[str], request: Mapping[str, Any]) -> str:
    prompt = request["prompt"]
    if prompt.startswith("<|user|>"):
        numbers = iter(range(1, len(parts) + 1))
        turn = "".join(f"<|image_{next(numbers)}|>" if isinstance(part, MediaReference) else part for part in parts)
        ours = f"<|user|>{turn}<|end|><|assistant|>"
    else:
        blank = prompt[len("<|im_start|>User:") :][:1].strip(" ") == ""  # before a text, but not before a picture
        start = prompt.partition("\nAssistant:")[2]
        text = _joined(parts, "<image>")
        ours = f"<|im_start|>User:{' ' * blank}{text}<end_of_utterance>\nAssistant:{start}"
    return differing((ours, list(shown)), (prompt, request["images"]), "prompt")


@line_adapter("recipes/prompts_internvl_scripts.jsonl")
@keyed("recipe", "benchmark", "document.*", "text", "tiles", "tiles.*.max_tiles", "options.*", "note",
       information={"kind": "always prompt", "set": "always golden",
                    "tiles.*.size.*": "of the invented pictures"})  # fmt: skip
def scripts_of_internvl(vector: Vector) -> Verdict:
    """Texts, tiles and options of InternVL's own scripts. The model's chat adds what stands for the pictures."""
    record = vector.record
    is_stepwise = record.get("note") == "mode cot"
    task = recipe_of(record["recipe"], "cot" if is_stepwise else "").task(record["benchmark"])
    assert task is not None
    assert task.layout is not None
    frames = len(re.findall(r"^Frame\d+: <image>$", record["text"], re.MULTILINE))
    pictures = pictures_of(record["document"])
    parts = render(task.layout, fields_of(record, frames=frames))
    if not frames and "<image>" not in record["text"]:
        parts = [part for part in parts if isinstance(part, str)]
    tiles = [task.media.tiles_of(place, len(pictures)) for place in range(len(pictures))]
    return _first(
        differing(_joined(parts, "<image>\n" if frames else "<image>"), record["text"], "text"),
        differing(tiles, [picture["max_tiles"] for picture in record["tiles"]], "tiles") if record["tiles"] else "",
        _options_differ(task, record["options"]),
    )


@keyed("recipe", "benchmark", "document.*", "messages.*", "question",
       information={"kind": "chooses the adapter", "vendor_dataset": "the kit's name of the benchmark",
                    "as_video": "seen in the messages"})  # fmt: skip
def video_prompts(vector: Vector) -> Verdict:
    """VLMEvalKit's prompts for videos, as videos and as frames."""
    record = vector.record
    task = recipe_of(record["recipe"]).task(record["benchmark"])
    assert task is not None
    assert task.layout is not None
    messages = record.get("messages") or []
    frames = sum(part["type"] == "image" for part in messages) or record.get("question", "").count("<image>")
    fields = fields_of(record, videos=1, frames=frames)
    parts = render(task.layout, fields)
    if "question" in record:
        return _first(differing(_joined(parts, "<image>\n"), record["question"], "question"))
    said = {role: "".join(part["value"] for part in messages if part.get("role") == role) for role in ROLES}
    turn = [part for part in messages if "role" not in part]
    found = _first(
        differing(_ours(parts, []), _content([part for part in turn if part["value"]]), "messages"),
        differing(task.system_prompt or "", said["system"], "system prompt"),
        differing(answer_start(task.layout, fields), said["assistant"], "start of the answer"),
    )
    has_empty = any(part["value"] == "" for part in turn)
    return deviates(EMPTY_TEXT) if found is PASSED and has_empty else found


OF_KIND["prompt"] = video_prompts
