"""Short ways to build the models, and to ask them for what they were given."""

import json

from PIL import Image

from lmms_eval.models.building import BuildOptions
from lmms_eval.models.registry import ModelRegistry
from tests.models.hf.support import answers, converse


def make(name, folder, **arguments):
    options = BuildOptions(device="cpu", trust_remote_code=True)
    return ModelRegistry().build(name, {"pretrained": str(folder), **arguments}, options)[0]


def plain(colour="red", size=(40, 40)):
    return Image.new("RGB", size, colour)


def text(value):
    return {"type": "text", "text": value}


def image(*arguments):
    return {"type": "image", "url": plain(*arguments)}


def video(*colours):
    return {"type": "video", "url": [plain(colour) for colour in colours]}


def user(*parts):
    return {"role": "user", "content": list(parts)}


def assistant(value):
    return {"role": "assistant", "content": [text(value)]}


def system(value):
    return {"role": "system", "content": [text(value)]}


def reply(model, *messages, **generation):
    """The one response."""
    return answers(model, [converse(0, list(messages), **generation)])[0]


def told(model, *messages, **generation):
    """What the stub tells of itself."""
    response = reply(model, *messages, **generation)
    assert response.error is None, response.error
    return json.loads(response.text)


def refusal(model, *messages, **generation):
    error = reply(model, *messages, **generation).error
    return None if error is None else f"{error.kind}: {error.message}"
