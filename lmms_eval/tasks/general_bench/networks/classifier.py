"""A classifier of pictures (ViT-B/16 with ImageNet's 1000 classes), which names the class of a generated picture."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.tasks.general_bench.networks.tensors import HALF, check_loaded, stack
from lmms_eval.tasks.general_bench.networks.weights import Network, inference, loaded

if TYPE_CHECKING:
    from PIL import Image

    from lmms_eval.tasks.general_bench.items import Item
    from lmms_eval.tasks.general_bench.measures.contract import Context

VIT_IMAGENET = Network(
    key="vit-base-patch16-224",
    model_id="google/vit-base-patch16-224",
    package="torch transformers",
    metrics=("accuracy/eeg",),
)


class Classifier(Struct, frozen=True, eq=False):
    """A loaded classifier."""

    model: Any
    device: str

    def classify(self, image: Image.Image) -> int:
        """Return the number of the most likely class."""
        from PIL import Image

        size = int(self.model.config.image_size)
        square = image.resize((size, size), Image.Resampling.BILINEAR)
        with inference():
            scores = self.model(pixel_values=stack([square], HALF).to(self.device)).logits[0]
            return int(scores.argmax())

    def find(self, label: str | int) -> int | None:
        """Return the class of a number or of a name, or ``None`` if there is no such class. A name is one in the
        checkpoint's ``id2label``, or one of several that an entry lists between commas; case does not matter.
        """
        names: dict[int, str] = self.model.config.id2label
        if isinstance(label, int) or label.strip().isdigit():
            return int(label) if int(label) in names else None
        wanted = _fold(label)
        for number, name in names.items():
            if wanted in (_fold(name), *map(_fold, name.split(","))):
                return number
        return None


def classifier(context: Context, item: Item) -> Classifier:
    """The classifier, loaded once.

    Raises:
        NotEvaluated: its packages or weights are not there.
    """
    return loaded(_load, VIT_IMAGENET, context, item)


@functools.lru_cache(maxsize=2)
def _load(source: str, device: str) -> Classifier:
    from transformers import ViTForImageClassification

    model, report = ViTForImageClassification.from_pretrained(
        source, local_files_only=Path(source).exists(), output_loading_info=True
    )
    check_loaded(report["missing_keys"])
    return Classifier(model.float().eval().to(device), device)


def _fold(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
