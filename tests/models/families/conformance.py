"""What each wrapper can do, tried on a random-weight model of its architecture.

``python -m tests.models.families.conformance`` prints the table of ``docs/models/conformance.md``.
"""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import numpy as np
from transformers.utils import is_num2words_available, is_torchvision_available

from lmms_eval.errors import ModelError
from lmms_eval.models.building import BuildOptions
from lmms_eval.models.registry import ModelRegistry
from tests.models.families.build import BUILDERS
from tests.models.hf.support import answers, ask, converse, picture

COLUMNS = ("text", "1 image", "several images", "video", "audio", "likelihood", "batch = single")
YES, REFUSED, TORCHVISION, NUM2WORDS = "yes", "refused", "needs torchvision", "needs num2words"
ONLY = {
    "hf_text": ("text",),
    "qwen2_audio": ("text", "audio"),
    "whisper": ("audio",),
    "phi4_multimodal": ("text", "1 image", "several images", "video", "audio"),
}
"""Wrappers that are no vision-language ones."""
VISION = ("text", "1 image", "several images", "video")


def expected(name):
    """The row that a wrapper must have here."""
    if name == "smolvlm" and not is_num2words_available():
        return dict.fromkeys(COLUMNS, NUM2WORDS)
    takes = (*ONLY.get(name, VISION), "batch = single")
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
