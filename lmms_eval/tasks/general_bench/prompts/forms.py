"""The forms of answers: their JSON in ``prediction.json``, and the longest reply."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from lmms_eval.tasks.general_bench.facts import TaskFacts
from lmms_eval.tasks.general_bench.items import Form

_MASK = "the path of a PNG (not 0 = object), run lengths {size, counts}, or polygons [[x1, y1, x2, y2, ...], ...]"


class FormFacts(Struct, frozen=True):
    """The facts of a form."""

    written: str
    """The JSON value in ``prediction.json``, in one line."""
    max_new_tokens: int
    """Most tokens of a reply."""
    file: bool = False
    """Whether the answer is an array, sound, picture or solid that no text can state. Predictions are then files (or
    generated pictures).
    """


FORMS: Mapping[Form, FormFacts] = MappingProxyType(
    {
        "text": FormFacts("a text", 128),
        "number": FormFacts("a number, or its digits as a text", 32),
        "boxes": FormFacts("[[x, y, width, height], ...] in pixels, each with a label and a score if known", 1024),
        "tube": FormFacts("[[x, y, width, height] or null, ...] in pixels, one for each frame", 2048),
        "mask": FormFacts(_MASK, 1024),
        "masks": FormFacts(f"a folder of PNGs, or a list of masks, one for each frame; a mask is {_MASK}", 4096),
        "labels": FormFacts("the path of a PNG or .npy of class numbers, one for each pixel or point", 256, True),
        "instances": FormFacts(
            '[{"mask", "indices" or "box": ..., "label": ..., "score": ...}, ...], or the path of a panoptic PNG', 2048
        ),
        "triplets": FormFacts("[[subject, predicate, object], ...], the surest first", 1024),
        "flow": FormFacts("the path of a .flo or 16-bit .png file", 256, True),
        "depth": FormFacts("the path of an .npz (array disparity or depth), .npy or .png file", 256, True),
        "saliency": FormFacts("the path of a grey picture, or of a folder of them, one for each frame", 256, True),
        "map": FormFacts("the path of a grey picture", 256, True),
        "alpha": FormFacts("the path of a grey picture (white = opaque)", 256, True),
        "normals": FormFacts("the path of an .npy or .png file", 256, True),
        "points": FormFacts("the path of an .npy, .ply or .xyz file, or [[x, y, z], ...]", 256, True),
        "poses": FormFacts("the path of a .txt (12 numbers a row) or .npy file, or a list of poses", 256, True),
        "tracks": FormFacts("a list of objects with boxes, identities and scores for each frame", 256, True),
        "detections3d": FormFacts("a list of boxes in space, with labels and scores", 256, True),
        "notes": FormFacts("[[start, end, pitch], ...] (beats, MIDI numbers), or the path of a MIDI file", 256, True),
        "image": FormFacts("the path of a picture", 1024, True),
        "video": FormFacts("the path of a video, or of a folder of frames", 256, True),
        "audio": FormFacts("the path of a sound", 256, True),
        "mesh": FormFacts("the path of a mesh", 256, True),
        "motion": FormFacts("the path of an .npy of joint positions", 256, True),
    }
)
"""Every form of ``items.Form``."""


def describe(form: Form) -> str:
    """Return one line about how an answer of a form is written in ``prediction.json``."""
    return FORMS[form].written


def needs_file(form: Form, facts: TaskFacts | None = None) -> bool:
    """Return whether no text is an answer of this form, so that only a chat model that makes pictures can be asked for
    it. Objects in space (``facts`` of a 3D task) are sets of points, which need a file too.
    """
    return FORMS[form].file or (form == "instances" and facts is not None and facts.modality == "3D")
