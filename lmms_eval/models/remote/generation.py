"""Generation options of the family, read once for back ends with forms of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.task import LENGTHS
from lmms_eval.models.openai.generation import READ, WITHOUT_MEANING, sampling_fields, stop_strings


@dataclass(frozen=True, slots=True)
class Wanted:
    """Generation options of one request."""

    max_new_tokens: int
    temperature: float | None
    """0 for greedy; ``None``: sampling at the model's own temperature."""
    top_p: float | None
    seed: int | None
    """31 bits, when sampling."""
    stops: tuple[str, ...]
    effort: str | None
    others: Mapping[str, Any]
    """Options beyond these, by their family names."""

    def pick(self, names: Mapping[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The other options that a back end knows, under its own names, and the names of the rest."""
        taken = {names[name]: value for name, value in self.others.items() if name in names}
        return taken, tuple(name for name in self.others if name not in names)


def read_generation(
    options: Mapping[str, Any], seed: int, max_new_tokens: int, effort: str | None = None, pin_seed: bool = False
) -> Wanted:
    """Read a request's options; ``max_new_tokens`` and ``effort`` hold where it does not say.

    Greedy by the same rule as the back end ``openai``. ``pin_seed``: a seed for greedy requests too.
    """
    length = next((options[name] for name in LENGTHS if options.get(name)), None)
    sampling = sampling_fields(options, seed)
    if pin_seed and "seed" not in sampling:
        sampling["seed"] = sampling_fields({**options, "do_sample": True, "temperature": 1.0}, seed)["seed"]
    known = READ | WITHOUT_MEANING | {"reasoning_effort"}
    others = {name: value for name, value in options.items() if name not in known and value is not None}
    return Wanted(
        max_new_tokens=int(length) if length is not None else max_new_tokens,
        temperature=sampling.get("temperature"),
        top_p=sampling.get("top_p"),
        seed=sampling.get("seed"),
        stops=tuple(stop_strings(options)),
        effort=options.get("reasoning_effort") or effort,
        others=others,
    )
