"""Sums over the documents of a task, as a dry run shows them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from lmms_eval.engine.plan import TaskPlan
from lmms_eval.preview.measure import OPEN_ENDED, REPLAYED, DocumentSize, RequestSize

MAX_FAULTS = 10
"""Faults that are shown of a task."""


@dataclass(slots=True)
class TaskForecast:
    """Sums of what a run will ask of one task."""

    plan: TaskPlan
    requests: int = 0
    length: int = 0
    """Of all texts."""
    new_tokens: int = 0
    """Tokens of all answers at most."""
    nbytes: int = 0
    """To be sent: texts, and media in base64."""
    estimated: int = 0
    """Media whose bytes are an estimate."""
    pictures: list[tuple[int, int]] = field(default_factory=list)
    """Sizes by request, those of one repeat."""
    videos: int = 0
    frames: int = 0
    unsampled: int = 0
    sounds: int = 0
    seconds: float = 0.0
    addresses: int = 0
    longest: RequestSize | None = None
    faults: list[tuple[int, str]] = field(default_factory=list)
    """Document and reason."""
    judge_questions: int = 0
    held: int = 0
    """Requests that the journal of this run answers already."""

    @property
    def name(self) -> str:
        return self.plan.task.name

    @property
    def repeats(self) -> int:
        return self.plan.task.repeats

    @property
    def is_open_ended(self) -> bool:
        """True where the number of rounds depends on the answers."""
        return self.plan.task.output_type in OPEN_ENDED

    @property
    def pictures_sent(self) -> int:
        """Pictures and frames that go out with all requests."""
        return len(self.pictures) * self.repeats + self.frames

    def add(self, document: DocumentSize, sends: bool) -> None:
        """Count a document. ``sends``: media go over a network, in base64."""
        repeats = self.repeats
        for request in document.requests:
            media = request.media
            self.requests += repeats
            self.length += repeats * request.length
            self.new_tokens += repeats * request.new_tokens
            self.nbytes += repeats * (request.text_bytes + (4 * -(-media.nbytes // 3) if sends else 0))
            self.estimated += repeats * media.estimated
            self.pictures += media.pictures
            self.videos += repeats * media.videos
            self.frames += repeats * media.frames
            self.unsampled += repeats * media.unsampled
            self.sounds += repeats * media.sounds
            self.seconds += repeats * media.seconds
            self.addresses += repeats * media.addresses
            if self.longest is None or request.length > self.longest.length:
                self.longest = request
        self.judge_questions += document.judge_questions
        self.faults += [(document.doc_id, fault) for fault in dict.fromkeys(document.faults)]

    def lines(self, unit: str, sends: bool) -> list[str]:
        """Describe the task, a line for each thing that there is to say."""
        plan = self.plan
        lines = [f"{self.name}: {plan.requested:,} of {plan.original:,} documents", f"  requests: {self._requests()}"]
        if self.held:
            lines.append(f"  answered already: {self.held:,} (journal of this run)")
        lines.append(f"  text: {self.length:,} {unit}")
        lines += self._media()
        if sends:
            about = f", about: {self.estimated:,} media are encoded anew" if self.estimated else ""
            lines.append(f"  to be sent: {size_text(self.nbytes)}{about}")
        if self.longest is not None:
            lines.append(f"  longest request: {self.longest.id} with {self.longest.length:,} {unit}")
        if self.judge_questions:
            lines.append(f"  questions to the judge: {self.judge_questions:,} (upper estimate, from empty answers)")
        return lines + self._fault_lines()

    def _requests(self) -> str:
        repeats = f", {self.repeats} repeats" if self.repeats > 1 else ""
        if not self.is_open_ended:
            return f"{self.requests:,}{repeats}"
        replayed = self.plan.task.output_type in REPLAYED
        how = "as if every answer were empty" if replayed else "the first rounds; more follow from what is answered"
        return f"{self.requests:,}{repeats} ({how})"

    def _media(self) -> list[str]:
        lines = []
        if self.pictures:
            counted = f"{len(self.pictures) * self.repeats:,}"
            lines.append(f"  pictures: {counted}, {size_of(self.pictures)}")
        if self.videos:
            known = f"{self.frames:,} frames" if self.videos > self.unsampled else "frames as the model samples them"
            lines.append(f"  videos: {self.videos:,}, {known}")
        if self.sounds:
            lines.append(f"  sounds: {self.sounds:,}, {self.seconds:,.1f} s")
        if self.addresses:
            lines.append(f"  addresses: {self.addresses:,} media are fetched by whoever is asked, and not looked at")
        return lines

    def _fault_lines(self) -> list[str]:
        if not self.faults:
            return []
        documents = len({doc_id for doc_id, _ in self.faults})
        shown = [f"    document {doc_id}: {fault}" for doc_id, fault in self.faults[:MAX_FAULTS]]
        left = len(self.faults) - len(shown)
        return [f"  BROKEN: {documents:,} documents", *shown, *([f"    ... and {left:,} more"] if left else [])]


def size_of(pictures: Sequence[tuple[int, int]]) -> str:
    """Give the median and the largest size."""
    by_pixels = sorted(pictures, key=lambda size: size[0] * size[1])
    (width, height), (most_wide, most_high) = by_pixels[(len(by_pixels) - 1) // 2], by_pixels[-1]
    median = statistics.median_low([width * height for width, height in by_pixels])
    return (
        f"median {width}x{height} ({median / 1e6:.2f} megapixels), largest {most_wide}x{most_high} "
        f"({most_wide * most_high / 1e6:.2f} megapixels)"
    )


def size_text(nbytes: int) -> str:
    """Write a number of bytes for people."""
    size, units = float(nbytes), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:,.0f} {units[0]}" if units[0] == "bytes" else f"{size:,.1f} {units[0]}"
