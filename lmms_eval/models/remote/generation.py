"""Generation options of the family, read once for back ends with forms of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.generation import TakenOptions, answer_length
from lmms_eval.models.openai.generation import ONLY_LOCAL, READ, WITHOUT_MEANING, sampling_fields, stop_strings

COMMON = READ - {"extra_body"}
"""Options that ``read_generation`` reads for every back end."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Generation options of one request."""

    max_new_tokens: int | None
    """``None``: as many as the model takes."""
    temperature: float | None
    """0 for greedy; ``None``: sampling at the model's own temperature."""
    top_p: float | None
    seed: int | None
    """31 bits, when sampling."""
    stops: tuple[str, ...]
    effort: str | None
    others: Mapping[str, Any]
    """Options beyond these, by their family names."""

    def pick(self, names: Mapping[str, str], handled: Collection[str] = ()) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Divide the other options: those that a back end knows, under its own names, and the names of the rest.

        ``handled``: options that the back end places itself.
        """
        taken = {names[name]: value for name, value in self.others.items() if name in names}
        return taken, tuple(name for name in self.others if name not in names and name not in handled)


def read_generation(
    options: Mapping[str, Any], seed: int, max_new_tokens: int, effort: str | None = None, pin_seed: bool = False
) -> Wanted:
    """Read a request's options; ``max_new_tokens`` and ``effort`` hold where it does not say.

    Greedy by the same rule as the back end ``openai``. ``pin_seed``: a seed for greedy requests too.
    """
    sampling = sampling_fields(options, seed)
    if pin_seed and "seed" not in sampling:
        sampling["seed"] = sampling_fields({**options, "do_sample": True, "temperature": 1.0}, seed)["seed"]
    known = COMMON | WITHOUT_MEANING | {"reasoning_effort"}
    others = {name: value for name, value in options.items() if name not in known and value is not None}
    return Wanted(
        max_new_tokens=answer_length(options, max_new_tokens),
        temperature=sampling.get("temperature"),
        top_p=sampling.get("top_p"),
        seed=sampling.get("seed"),
        stops=tuple(stop_strings(options)),
        effort=options.get("reasoning_effort") or effort,
        others=others,
    )


def taken_options(
    names: Iterable[str], without: Mapping[str, str] | None = None, needs_length: str = ""
) -> TakenOptions:
    """Declare the options of a back end with a form of its own: the common ones and ``names``.

    Args:
        names: its own options.
        without: the common ones that have no place in it, with the reason.
        needs_length: as ``TakenOptions`` has it.
    """
    one_answer = "a request asks for one answer; --repeats asks for several"
    reasons = dict.fromkeys(("n", "num_return_sequences", "best_of"), one_answer)
    reasons |= {name: "servers and engines have no such option" for name in ONLY_LOCAL - set(names)}
    return TakenOptions(COMMON | set(names), reasons={**reasons, **(without or {})}, needs_length=needs_length)
