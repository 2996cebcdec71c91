"""Tower for texts of CLIP and CLAP: a transformer with a projection over its pooled output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.tasks.general_bench.networks.tensors import batches, numpy_rows, unit_rows
from lmms_eval.tasks.general_bench.networks.weights import inference

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]


class TextTower(Struct, frozen=True, eq=False):
    """A loaded network of two towers, as transformers has them, and its tokenizer."""

    model: Any
    tokenizer: Any
    device: str
    longest: int
    """Tokens at which texts are cut."""

    def texts(self, texts: Sequence[str]) -> Floats:
        """``(texts, dimensions)``, each of length 1."""
        found = []
        with inference():
            for part in batches(texts):
                tokens = self.tokenizer(
                    list(part), padding=True, truncation=True, max_length=self.longest, return_tensors="pt"
                ).to(self.device)
                pooled = self.model.text_model(
                    input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]
                ).pooler_output
                found.append(unit_rows(self.model.text_projection(pooled)))
        return numpy_rows(found)
