"""Asks one small model through ``hf``: what it answers, and whether its answers depend on their batch."""

import contextlib

from lmms_eval.errors import LmmsEvalError
from lmms_eval.models.hf.model import HuggingFace
from tests.models.architectures.table import COLUMNS
from tests.models.hf.support import answers, converse, picture

LIMIT = 4
FRAMES = [picture(32, 32, seed) for seed in range(3)]


def image(seed):
    return {"type": "image", "url": picture(32 + 8 * (seed % 2), 32, seed)}


def say(text):
    return {"type": "text", "text": text}


PARTS = {
    "text": lambda n: [say("What is the word? " * (1 + n))],
    "1 image": lambda n: [image(n), say("What is it? " * (1 + n))],
    "several images": lambda n: [image(n), image(n + 1), say("Which? " * (1 + n))],
    "mixed order": lambda n: [say("This"), image(n), say("and this"), image(n + 3), say("Which? " * (1 + n))],
    "video": lambda n: [{"type": "video", "url": FRAMES[n:] + FRAMES[:n]}, say("What happens? " * (1 + n))],
}


def check(folder):
    """From a column to ``yes`` or the reason; ``batch`` compares batches of 8 with single requests."""
    requests = [ask(10 * place + n, column, n) for place, column in enumerate(COLUMNS) for n in range(3)]
    one = HuggingFace(pretrained=str(folder), device="cpu", dtype="float32", batch_size=1, dry_requests=False)
    single = answers(one, requests)
    one.close()
    row = {}
    for place, column in enumerate(COLUMNS):
        errors = [single[10 * place + n].error.message for n in range(3) if single[10 * place + n].error]
        row[column] = errors[0] if errors else "yes"
    good = [request for request in requests if not single[request.doc_id].error]
    eight = HuggingFace(pretrained=str(folder), device="cpu", dtype="float32", batch_size=8, dry_requests=False)
    together = texts(answers(eight, good))
    single = {number: text for number, text in texts(single).items() if number in together}
    apart = [number for number in single if single[number] != together[number]]
    row["batch"] = "yes" if not apart else f"{len(apart)} of {len(single)} answers differ: {describe(apart, together)}"
    return row


def describe(apart, together):
    columns = dict.fromkeys(COLUMNS[number // 10] for number in apart)
    errors = {together[number] for number in apart if together[number].startswith("error")}
    return ", ".join([*columns, *errors])


def ask(number, column, seed):
    return converse(number, [{"role": "user", "content": PARTS[column](seed)}], max_new_tokens=LIMIT)


def texts(responses):
    return {
        number: f"error: {response.error.message}" if response.error else f"{response.text} {response.usage}"
        for number, response in responses.items()
    }


def outcome(build, model_type, folder):
    """The row of an architecture, or why there is none."""
    try:
        build(model_type, folder)
    except Exception as error:  # noqa: BLE001 - anything that a configuration, model or processor may raise
        return {"build": f"{type(error).__name__}: {error}"}
    with contextlib.suppress(ImportError):
        try:
            return check(folder)
        except LmmsEvalError as error:
            return {"load": str(error)}
        except Exception as error:  # noqa: BLE001 - an error that hf lets through is a defect of hf
            return {"defect": f"{type(error).__name__}: {error}"}
    return {"load": "an import failed"}
