"""Prepared requests with their settings: what a batch is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmms_eval.api.request import Request
    from lmms_eval.models.hf.inputs import Prepared
    from lmms_eval.models.hf.settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A prepared request with its settings; ``settings`` is ``None`` for a likelihood."""

    request: Request
    prepared: Prepared
    settings: Settings | None

    @property
    def text(self) -> str:
        """All that the model reads: for a likelihood, the continuation too."""
        return self.prepared.text + self.continuation

    @property
    def continuation(self) -> str:
        return self.request.continuation_after(self.prepared.has_template) if self.settings is None else ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Only jobs with equal keys share a batch. A sampled answer is generated alone, so that its seed decides it."""
        alone = self.prepared.alone or (self.settings is not None and self.settings.sampled)
        options = "likelihood" if self.settings is None else self.settings.key
        return (options, self.prepared.kind, self.request.id if alone else "")

    @property
    def tokens(self) -> float:
        """Estimated length of the prompt."""
        return self.prepared.tokens
