"""What each wrapper can do, tried on a random-weight model of its architecture.

``python -m tests.models.families.conformance`` prints the table of ``docs/models/conformance.md``.
"""

import copy
import json
import os
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import numpy as np
from transformers.utils import is_num2words_available, is_torchvision_available

from lmms_eval.config import build_config
from lmms_eval.errors import ModelError
from lmms_eval.evaluation.run import run
from lmms_eval.media.audio import encode_wav
from lmms_eval.models.building import BuildOptions
from lmms_eval.models.families.table import FAMILIES
from lmms_eval.models.registry import ModelRegistry
from tests.models.families.build import BUILDERS
from tests.models.hf.support import answers, ask, converse, picture

COLUMNS = ("text", "1 image", "several images", "video", "audio", "likelihood", "batch = single", "resume")
YES, REFUSED, TORCHVISION, NUM2WORDS = "yes", "refused", "needs torchvision", "needs num2words"
ONLY = {
    "hf_text": ("text",),
    "qwen2_audio": ("text", "audio"),
    "whisper": ("audio",),
    "phi4_multimodal": ("text", "1 image", "several images", "video", "audio"),
}
"""Wrappers that are no vision-language ones."""
DOCUMENTS, BROKEN_AFTER = 6, 3
VISION = ("text", "1 image", "several images", "video")


def expected(name):
    """The row that a wrapper must have here."""
    if name == "smolvlm" and not is_num2words_available():
        return dict.fromkeys(COLUMNS, NUM2WORDS)
    takes = (*ONLY.get(name, VISION), "batch = single", "resume")
    row = {column: YES if column in takes else REFUSED for column in COLUMNS}
    row["likelihood"] = REFUSED if name == "whisper" else YES
    if name == "phi4_multimodal" and not is_torchvision_available():
        row.update(dict.fromkeys(("1 image", "several images", "video"), TORCHVISION))
    return row


def sound(seed, seconds=1.0, rate=16000):
    """Coarse noise, as a task's document holds it."""
    steps = np.random.default_rng(seed).normal(size=50)
    samples = np.interp(np.linspace(0, 49, int(seconds * rate)), np.arange(50), steps) * 0.2
    carrier = np.sin(np.arange(len(samples)) * (0.05 + 0.02 * (seed % 7)))
    return {"array": (samples * carrier).astype(np.float32), "sampling_rate": rate}


def hear(number, text, sounds, **generation):
    parts = [{"type": "audio", "url": item} for item in sounds]
    return converse(number, [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}], **generation)


def watch(number, text, frames, **generation):
    part = {"type": "video", "url": frames}
    return converse(number, [{"role": "user", "content": [part, {"type": "text", "text": text}]}], **generation)


def make_model(name, folder, **arguments):
    """The wrapper over a small checkpoint, whose pictures stay small."""
    if "max_pixels" in getattr(FAMILIES.get(name), "defaults", ()):
        arguments = {"min_pixels": 32 * 32, "max_pixels": 64 * 64, **arguments}
    model, _ = ModelRegistry().build(name, {"pretrained": str(folder), **arguments}, BuildOptions(device="cpu"))
    return model


def check(name, folder):
    """One row: what the wrapper answers, and answers differently for different inputs."""
    try:
        model = make_model(name, folder, batch_size=4)
    except ModelError as error:
        if "pip install num2words" not in str(error):
            raise
        return dict.fromkeys(COLUMNS, NUM2WORDS)
    row = {column: _outcome(model, PAIRS[column]) for column in COLUMNS[:5]}
    row["likelihood"] = _likelihood(model)
    row["batch = single"] = YES if _same_in_batches(name, folder, model, row) else "no"
    with tempfile.TemporaryDirectory() as work:
        row["resume"] = resumption(name, folder, model, write_task(Path(work), row))
    return row


def _outcome(model, pair):
    """``yes`` if both requests are answered, and not in the same words."""
    got = answers(model, pair())
    errors = {response.error.message for response in got.values() if response.error}
    if not errors:
        return YES if got[0].text != got[1].text else "no: the answer does not depend on it"
    kinds = {response.error.kind for response in got.values() if response.error}
    if kinds != {"bad_request"} or len(errors) != 1:
        return f"no: {kinds} {errors}"
    message = errors.pop()
    if "needs torchvision" in message:
        return TORCHVISION
    return REFUSED if " takes " in message else f"no: {message}"


def _likelihood(model):
    if "loglikelihood" not in model.kinds:
        return REFUSED
    choices = [ask(n, "Which?", kind="loglikelihood", continuation=text) for n, text in enumerate((" A", " blue", "?"))]
    got = answers(model, choices)
    ordered = [got[number].loglikelihood for number in range(3)]
    return YES if all(value is not None and value < 0 for value in ordered) and len(set(ordered)) == 3 else "no"


def _same_in_batches(name, folder, alone, row):
    """Greedy answers in float32 are those of a batch of one."""
    requests = [request for column in COLUMNS[:5] if row[column] == YES for request in MIXED[column]()]
    together = answers(make_model(name, folder, batch_size=8), requests)
    single = answers(make_model(name, folder, batch_size=1), requests)
    return _content(together) == _content(single) == _content(answers(alone, requests))


def write_task(work, row):
    """A task of pictures where the wrapper takes them, else of sounds, else of texts; its folder."""
    kind = "png" if row["1 image"] == YES else "wav" if row["audio"] == YES else ""
    for number in range(DOCUMENTS if kind else 0):
        if kind == "png":
            picture(40 + 8 * number, 50, number).save(work / f"{number}.png")
        else:
            (work / f"{number}.wav").write_bytes(encode_wav(sound(number)["array"], 16000))
    media = f"[str(Path(__file__).parent / f\"{{doc['number']}}.{kind}\")]" if kind else "[]"
    (work / "utils.py").write_text(f"from pathlib import Path\n\n\ndef media(doc):\n    return {media}\n")
    rows = [{"number": number, "question": "What is it? " * (1 + number), "answer": ""} for number in range(DOCUMENTS)]
    (work / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (work / "few.yaml").write_text(
        "task: few\ndataset_path: json\ndataset_kwargs: {data_files: {test: rows.jsonl}}\ntest_split: test\n"
        "output_type: generate_until\ndoc_to_visual: !function utils.media\ndoc_to_text: question\n"
        "doc_to_target: answer\ngeneration_kwargs: {max_new_tokens: 16, until: []}\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    return work


def resumption(name, folder, model, work):
    """``yes`` if a run that broke off goes on with what was not answered, and ends as one that did not break off."""

    def samples_of(place, wrapper):
        values = {"model": name, "tasks": "few", "include_path": str(work), "log_samples": True, "verbosity": "ERROR"}
        report = run(build_config({**values, "output_path": str(work / place)}), wrapper)
        assert report.exit_code == 0, report.results["outcomes"]
        (file,) = (work / place).rglob("*_samples_few.jsonl")
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        return [(row["doc_id"], row["filtered_resps"], row["token_counts"], row["doc_hash"]) for row in rows]

    whole = samples_of("whole", model)
    answered = []
    try:
        samples_of("broken", _breaking(model, answered, BROKEN_AFTER))
    except _BreakError:
        first = tuple(answered)
    else:
        return "no: it did not break off"
    later = samples_of("broken", _breaking(make_model(name, folder), answered := [], DOCUMENTS + 1))
    if sorted((*first, *answered)) != list(range(DOCUMENTS)):
        return f"no: answered {first}, then {answered}"
    return YES if later == whole and len({str(row[1]) for row in whole}) > 1 else "no: another result"


class _BreakError(Exception):
    """The process ends here."""


def _breaking(model, answered, after):
    """A stand-in that notes whose answers it gives, and breaks off after some."""
    stand_in = copy.copy(model)

    def respond(stream):
        for number, response in enumerate(model.respond(stream)):
            if number == after:
                raise _BreakError
            answered.append(int(response.request_id.split("/")[1]))
            yield response

    stand_in.respond = respond
    return stand_in


def _content(responses):
    return {
        number: (response.text, response.finish_reason, response.usage, response.error)
        for number, response in responses.items()
    }


FRAMES = [picture(48, 40, seed) for seed in range(5)]
PAIRS = {
    "text": lambda: [ask(0, "What is the word?"), ask(1, "Where is the picture?")],
    "1 image": lambda: [ask(n, "What is it?", [picture(70, 50, n)]) for n in (0, 1)],
    "several images": lambda: [
        ask(0, "Which?", [picture(70, 50, 0), picture(33, 64, 1)]),
        ask(1, "Which?", [picture(33, 64, 1), picture(70, 50, 0)]),
    ],
    "video": lambda: [watch(0, "What happens?", FRAMES), watch(1, "What happens?", FRAMES[::-1])],
    "audio": lambda: [hear(n, "What is said?", [sound(n)]) for n in (0, 1)],
}
MIXED = {
    "text": lambda: [ask(n, "What is left of it? " * (1 + n)) for n in range(4)],
    "1 image": lambda: [ask(10 + n, "What? " * (4 - n), [picture(30 + 40 * n, 50, n)]) for n in range(3)],
    "several images": lambda: [
        ask(20 + n, "Which? " * (1 + n), [picture(30 + 20 * k, 90 - 20 * n, n + k) for k in range(2 + n)])
        for n in range(3)
    ],
    "video": lambda: [watch(30 + n, "Why? " * (1 + n), FRAMES[: 2 + n]) for n in range(3)],
    "audio": lambda: [hear(40 + n, "Who? " * (1 + n), [sound(n, 0.4 + 0.5 * n)]) for n in range(3)],
}


def table(rows):
    """Markdown: one line for each wrapper."""
    lines = [f"| wrapper | {' | '.join(COLUMNS)} |", f"|---{'|---' * len(COLUMNS)}|"]
    lines += [f"| `{name}` | {' | '.join(row[column] for column in COLUMNS)} |" for name, row in rows.items()]
    return "\n".join(lines)


def main():
    with tempfile.TemporaryDirectory() as root:
        rows = {name: check(name, build(Path(root) / name)) for name, build in BUILDERS.items()}
    print(table(rows))


if __name__ == "__main__":
    main()
