"""Asks one small model through ``hf``: what it answers, and whether its answers depend on their batch."""

import contextlib

import transformers

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
    """From a column to ``yes`` or the reason; ``batch`` compares batches of 8 with single requests.

    What fails is tried with transformers alone too: ``hf`` is at fault only where that works.
    """
    requests = [ask(10 * place + n, column, n) for place, column in enumerate(COLUMNS) for n in range(3)]
    one = HuggingFace(pretrained=str(folder), device="cpu", dtype="float32", batch_size=1, dry_requests=False)
    prepared = {request.doc_id: one.prepare(request).payload for request in requests}
    single = answers(one, requests)
    row = {}
    for place, column in enumerate(COLUMNS):
        failed = [number for number in range(10 * place, 10 * place + 3) if single[number].error]
        row[column] = "yes"
        if failed:
            row[column] = f"{fault(one, [prepared[failed[0]]])}: {single[failed[0]].error.message}"
    good = [request for request in requests if not single[request.doc_id].error]
    eight = HuggingFace(pretrained=str(folder), device="cpu", dtype="float32", batch_size=8, dry_requests=False)
    together = texts(answers(eight, good))
    single = {number: text for number, text in texts(single).items() if number in together}
    apart = [number for number in single if single[number] != together[number]]
    row["batch"] = "yes"
    if apart:
        first = COLUMNS[apart[0] // 10]
        alike = [prepared[number] for number in single if COLUMNS[number // 10] == first]
        row["batch"] = f"{fault(one, alike)}: {len(apart)} of {len(single)} answers differ: {describe(apart, together)}"
    one.close()
    return row


def fault(model, prepared):
    """``hf`` where transformers alone answers these prompts, and the same alone and together; else what it says."""
    alone = [without_hf(model, [row]) for row in prepared]
    if any(isinstance(answer, str) for answer in alone):
        return ALSO
    together = without_hf(model, prepared)
    if isinstance(together, str):
        return "hf"
    return "hf" if [row[0] for row in alone] == together else ALSO


ALSO = "without hf too"


def without_hf(model, prepared):
    """What the model writes to prompts in one batch, without our calls; or an error."""
    processor, images = model.loaded.processor, [list(row.images) for row in prepared]
    error = ""
    for given in (images, [image for row in images for image in row]):
        try:
            inputs = processor(
                text=[row.text for row in prepared],
                **({"images": given} if given and any(images) else {}),
                return_tensors="pt",
                padding=True,
                add_special_tokens=False,
            )
            written = model.loaded.model.generate(**inputs, max_new_tokens=LIMIT, do_sample=False)
        except Exception as caught:  # noqa: BLE001 - anything that a processor or model may raise
            error = f"{type(caught).__name__}: {caught}"
        else:
            return written[:, -LIMIT:].tolist()
    return error


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


def lost_weights(folder):
    """What transformers alone does not find again of a model that it has just saved; empty where it finds all."""
    model, report = transformers.AutoModelForImageTextToText.from_pretrained(folder, output_loading_info=True)
    missing = len(report["missing_keys"])
    if not missing:
        return ""
    kind = f"{type(model).__name__}, transformers' class for it,"
    return f"{ALSO}: {kind} does not find {missing} of its weights again under the names that it saves them by"


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
            return {"load": lost_weights(folder) or str(error).replace(str(folder), "FOLDER")}
        except Exception as error:  # noqa: BLE001 - an error that hf lets through is a defect of hf
            return {"defect": f"{type(error).__name__}: {error}"}
    return {"load": "an import failed"}
