"""CLAP: sounds and texts as vectors of one space (Wu et al., 2023, LAION). Their cosines are the CLAP scores.

The network takes 10 seconds of 48 kHz mono; a shorter sound is repeated to that length. A longer one is cut into
consecutive parts of 10 seconds (a remainder of less than one second is dropped), and the vectors of the parts are
averaged. LAION's own processing takes a random part, which would give other numbers each time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval.tasks.general_bench.networks.tensors import TextTower, batches, check_loaded, numpy_rows, unit_rows
from lmms_eval.tasks.general_bench.networks.weights import Network, inference, opener

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

CLAP = Network(
    key="clap-htsat-unfused",
    model_id="laion/clap-htsat-unfused",
    package="torch transformers",
    metrics=("clap", "style_clap", "fad"),
)
SAMPLING_RATE = 48_000
SECONDS = 10
_PARTS_AT_ONCE = 4
_LEAST_REST = SAMPLING_RATE
"""Least number of samples of a last part that is kept."""


class Clap(TextTower, frozen=True, eq=False):
    """A loaded CLAP."""

    features: Any

    def parts(self, samples: Floats) -> Floats:
        """Return the vectors of mono samples at 48 kHz, ``(parts of 10 seconds, dimensions)``, each of length 1."""
        # the form of the input that the network wants; no part is so long that anything is cut
        truncation = "fusion" if self.model.config.audio_config.enable_fusion else "rand_trunc"
        found = []
        with inference():
            for batch in batches(cut(samples, SECONDS * SAMPLING_RATE), _PARTS_AT_ONCE):
                made = self.features(
                    list(batch), truncation=truncation, sampling_rate=SAMPLING_RATE, return_tensors="pt"
                )
                pooled = self.model.audio_model(
                    input_features=made["input_features"].float().to(self.device),
                    # with "fusion" the processing says at random of one sound that it is longer: none is
                    is_longer=made["is_longer"].new_zeros(made["is_longer"].shape).to(self.device),
                ).pooler_output
                found.append(unit_rows(self.model.audio_projection(pooled)))
        return numpy_rows(found)

    def sound(self, samples: Floats) -> Floats:
        """Return the mean of the parts' vectors, ``(1, dimensions)``."""
        rows: Floats = self.parts(samples).mean(axis=0, keepdims=True)
        return rows


def cut(samples: Floats, length: int) -> list[Floats]:
    """Cut samples into consecutive parts of ``length``. A remainder of less than a second is dropped unless it is the
    only part.
    """
    starts = [start for start in range(0, len(samples), length) if start == 0 or len(samples) - start >= _LEAST_REST]
    return [samples[start : start + length] for start in starts]


@opener(CLAP)
def clap(source: str, device: str) -> Clap:
    """Load CLAP."""
    from transformers import AutoTokenizer, ClapFeatureExtractor, ClapModel

    local = Path(source).exists()
    model, report = ClapModel.from_pretrained(source, local_files_only=local, output_loading_info=True)
    check_loaded(report["missing_keys"], "position_ids")
    features = ClapFeatureExtractor.from_pretrained(source, local_files_only=local)
    if features.sampling_rate != SAMPLING_RATE:
        raise ValueError(f"its sounds have {features.sampling_rate} samples a second, not {SAMPLING_RATE}")
    tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
    texts = model.config.text_config
    longest = int(texts.max_position_embeddings) - int(texts.pad_token_id) - 1  # positions start behind padding
    return Clap(model.float().eval().to(device), tokenizer, device, longest, features)
