"""Answers to videos with sound, by a small checkpoint of a family: ``python -m tests.models.families.omni NAME``.

In a process of its own, as processors of videos need torchvision.
"""

import json
import sys
import tempfile
from pathlib import Path

from tests import torchvision_operators

if __name__ == "__main__":
    torchvision_operators.declare()

from lmms_eval.api.messages import ChatMessages
from lmms_eval.models.registry import ModelRegistry
from tests.media.draw import write_talkie, write_video
from tests.models.families.named import build_named
from tests.models.hf.support import answers, converse


def with_videos(folder):
    """Give the chat template a place for videos."""
    processor = json.loads((folder / "processor_config.json").read_text())
    path = folder / "chat_template.jinja"
    template = path.read_text() if path.exists() else processor["chat_template"]
    place = "{% elif part['type'] == 'video' %}<video>{% elif part['type'] == 'audio' %}"
    path.write_text(template.replace("{% elif part['type'] == 'audio' %}", place))


def question(number, *films, **bounds):
    parts = [{"type": "video", "url": str(film), **bounds} for film in films]
    messages = [{"role": "user", "content": [*parts, {"type": "text", "text": "What is said?"}]}]
    return converse(number, ChatMessages.model_validate({"messages": messages}).messages)


def said(name, root):
    folder = build_named(name, root / name)
    with_videos(folder)
    loud, other = write_talkie(root / "loud.mkv", 2), write_talkie(root / "other.mkv", 2, fps=4)
    silent = write_video(root / "silent.mp4", 8, fps=4)
    found = {}
    for heard in (True, False):
        given = {"pretrained": str(folder), "dtype": "float32", "use_audio_in_video": heard, "max_pixels": 64 * 64}
        model, _ = ModelRegistry().build(name, {**given, "fps": 2, "batch_size": 4})
        asked = [
            question(0, loud), question(1, loud, end_time=1.0), question(2, silent), question(3, loud, loud),
            question(4, loud, other),
        ]  # fmt: skip
        prepared = [model.prepare(one).payload for one in asked]
        got = answers(model, asked)
        found[str(heard)] = {
            "films": [len(one.films) for one in prepared], "images": [len(one.images) for one in prepared],
            "seconds": [[round(len(sound) / 16000, 2) for sound in one.audios] for one in prepared],
            "tokens": [got[n].usage.input_tokens if got[n].usage else None for n in range(5)],
            "errors": [got[n].error and got[n].error.message for n in range(5)],
            "texts": [got[n].text for n in range(5)],
        }  # fmt: skip
        model.close()
    return found


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(json.dumps({each: said(each, Path(tempfile.mkdtemp()))}), flush=True)
