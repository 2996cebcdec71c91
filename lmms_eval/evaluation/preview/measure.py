"""Measures requests without asking anything: media, texts, and sums by document and by task."""

from __future__ import annotations

import importlib
import io
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loguru import logger
from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.api.generation import MediaForm
from lmms_eval.api.messages import ChatAudioContent, ChatContent, ChatImageContent, ChatTextContent, ChatVideoContent
from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer, Task
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.records import failure
from lmms_eval.media import MediaRef, Sampling, audio_seconds, header, load_image, probe, resolve
from lmms_eval.media.encode import MIME, has_end, is_untouched
from lmms_eval.media.originals import original_of
from lmms_eval.media.video import select
from lmms_eval.models.hf.options import model_location
from lmms_eval.models.remote.media import bounds_of

Size = tuple[int, int]
BYTES_PER_PIXEL = {"PNG": 1.5, "WEBP": 1.2, "JPEG": 0.25}
"""Estimates for photographs that will be encoded; only encoding them would give the true size."""
_TAIL_BYTES = 4096
_WAV_BYTES_PER_SECOND = 32_000
"""16-bit mono at 16 kHz."""


class MediaSizes(Struct):
    """Counts and sizes of the media of one request, or of all requests of a task."""

    pictures: list[Size] = field(default_factory=list)
    """Width and height of each picture in the data."""
    videos: int = 0
    frames: int = 0
    """Frames that will be sampled from the videos."""
    unsampled: int = 0
    """Videos with an unknown number of frames, because the model samples them."""
    sounds: int = 0
    seconds: float = 0.0
    """Length of all sounds."""
    addresses: int = 0
    """Media that are sent as their address."""
    nbytes: int = 0
    """Encoded size, before base64. It is 0 if nothing is sent."""
    estimated: int = 0
    """Media that will be encoded again, so that their size is an estimate."""

    def count(self, other: MediaSizes, repeats: int) -> None:
        """Add the media of a request that is sent several times, and its pictures once."""
        self.pictures += other.pictures
        for name in ("videos", "frames", "unsampled", "sounds", "seconds", "addresses", "nbytes", "estimated"):
            setattr(self, name, getattr(self, name) + repeats * getattr(other, name))

    def lines(self, repeats: int) -> list[str]:
        """Describe the media in lines."""
        lines = []
        if self.pictures:
            lines.append(f"  pictures: {len(self.pictures) * repeats:,}, {size_of(self.pictures)}")
        if self.videos:
            known = f"{self.frames:,} frames" if self.videos > self.unsampled else "frames as the model samples them"
            lines.append(f"  videos: {self.videos:,}, {known}")
        if self.sounds:
            lines.append(f"  sounds: {self.sounds:,}, {self.seconds:,.1f} s")
        if self.addresses:
            lines.append(f"  addresses: {self.addresses:,} media are fetched by the service, and not measured here")
        return lines

    def add(self, part: ChatContent, form: MediaForm) -> None:
        """Count one part of a message. Raises ``MediaError`` if the file is missing, damaged or of another kind."""
        if isinstance(part, ChatTextContent):
            return
        if isinstance(part, ChatImageContent):
            self._add_picture(part.url, form)
        elif isinstance(part, ChatAudioContent):
            self._add_sound(part.url, form)
        else:
            self._add_video(part, form)

    def _add_picture(self, value: Any, form: MediaForm, is_frame: bool = False) -> None:
        ref = resolve(value)
        if ref.kind == "url":
            self.addresses += 1
            return
        size, nbytes = _in_memory(ref, form) if ref.kind == "image" else _encoded(ref, form)
        self.frames += is_frame
        if not is_frame:
            self.pictures.append(size)
        if form.wire is not None:
            self.estimated += nbytes is None
            self.nbytes += _guess(size, form) if nbytes is None else nbytes

    def _add_sound(self, value: Any, form: MediaForm) -> None:
        ref = resolve(value)
        if ref.kind == "url":
            self.addresses += 1
            return
        self.sounds += 1
        seconds = audio_seconds(ref)
        self.seconds += seconds
        if form.wire is None:
            return
        nbytes = None if ref.data is None else len(ref.data)  # as it is stored; decoded sounds are encoded again
        if ref.kind == "path" and ref.path is not None:
            nbytes = ref.path.stat().st_size
        self.estimated += nbytes is None
        self.nbytes += int(seconds * _WAV_BYTES_PER_SECOND) if nbytes is None else nbytes

    def _add_video(self, part: ChatVideoContent, form: MediaForm) -> None:
        self.videos += 1
        if isinstance(part.url, Sequence) and not isinstance(part.url, str | bytes | bytearray):
            for frame in part.url:
                self._add_picture(frame, form, is_frame=True)
            return
        given = part.url.get("url", part.url) if isinstance(part.url, Mapping) else part.url
        ref = resolve(given)
        if ref.kind == "url" or form.passes_videos:
            self.addresses += 1
            return
        info = probe(ref)
        if form.frames is None:
            self.unsampled += 1
            return
        start, end = bounds_of(part)
        count = len(select(info, Sampling(count=form.frames, fps=form.fps, start=start, end=end)))
        self.frames += count
        if form.wire is not None:
            self.estimated += count
            self.nbytes += count * _guess((info.width, info.height), form)


def _in_memory(ref: MediaRef, form: MediaForm) -> tuple[Size, int | None]:
    """Return the size of a decoded picture, and the number of bytes of its original if this is sent unchanged."""
    image = ref.image
    assert image is not None
    original = original_of(image) if form.wire is not None else None
    if original is None or form.wire.bounds.size(image.size) != image.size:
        return image.size, None
    nbytes, most = len(original.data), form.wire.max_bytes
    return image.size, nbytes if most is None or nbytes <= most else None


def _encoded(ref: MediaRef, form: MediaForm) -> tuple[Size, int | None]:
    found = header(ref)
    if found.format in MIME and not has_end(_tail(ref, found.nbytes), found.format):
        load_image(ref)  # the full decoder decides whether the file is truncated
    untouched = form.wire is not None and is_untouched(found, form.wire)
    return found.upright_size, found.nbytes if untouched else None


def _tail(ref: MediaRef, nbytes: int) -> bytes:
    """Return the end of an encoded picture. For a WebP, whose length is in its header, return that, padded."""
    if ref.kind != "path" or ref.path is None:
        return ref.read_bytes()
    with open(ref.path, "rb") as file:
        start = file.read(16)
        if start[:4] == b"RIFF":
            return start.ljust(nbytes, b"\0")
        file.seek(max(0, nbytes - _TAIL_BYTES), io.SEEK_SET)
        return file.read()


def _guess(size: Size, form: MediaForm) -> int:
    width, height = form.wire.bounds.size(size)
    guess = int(width * height * BYTES_PER_PIXEL[form.wire.image_format])
    return min(guess, form.wire.max_bytes or guess)


FILE = "tokenizer.json"
CHARACTERS_PER_TOKEN = 4
"""Typical mean of English texts, for estimates without a tokenizer."""


class Ruler(Struct, frozen=True):
    """Measures the length of texts. It is thread-safe."""

    unit: str
    """``tokens`` or ``characters``."""
    source: str
    """Origin of the tokenizer, or the reason why there is no tokenizer."""
    length: Callable[[str], int]

    @property
    def is_exact(self) -> bool:
        return self.unit == "tokens"

    def tokens(self, length: int) -> int:
        """Convert a length to tokens. For characters, this is a rule of thumb."""
        return length if self.is_exact else -(-length // CHARACTERS_PER_TOKEN)


def find_ruler(names: Sequence[str]) -> Ruler:
    """Find the tokenizer of a model by its folder or name, without fetching it from the hub."""
    for name in names:
        path = tokenizer_file(name)
        if path is not None and (length := _length(path)) is not None:
            return Ruler("tokens", str(path), length)
    encoding = _tiktoken(names)
    if encoding is not None:
        return Ruler("tokens", f"tiktoken {encoding.name}", lambda text: len(encoding.encode_ordinary(text)))
    return Ruler("characters", "the model has no tokenizer here", len)


def tokenizer_file(name: str) -> Path | None:
    """Find ``tokenizer.json`` in a model's folder or in the hub's local cache. Returns ``None`` if it is in neither."""
    folder = Path(model_location(name)).expanduser()
    if (folder / FILE).is_file():
        return folder / FILE
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, FILE)
    except HFValidationError:  # not a valid name of a repository
        return None
    return Path(found) if isinstance(found, str) else None


def _length(path: Path) -> Callable[[str], int] | None:
    """Return a function that counts tokens, or ``None`` if the file cannot be read."""
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(path))
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001 - the package raises bare exceptions for files that it cannot read
        logger.warning("{}: not a tokenizer that can be read: {}", path, error)
        return None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def _tiktoken(names: Sequence[str]) -> Any:
    """Return the encoding of the package ``tiktoken``, or ``None`` if it is not installed or lacks the model."""
    try:
        tiktoken = importlib.import_module("tiktoken")
    except ImportError:
        return None
    for name in names:
        try:
            return tiktoken.encoding_for_model(name.rpartition("/")[2])
        except (KeyError, OSError, ValueError):  # an unknown model, or a table that cannot be fetched
            continue
    return None


REPLAYED = ("generate_until_multi_round", "generate_visual_cot")
"""Output types with later rounds, which are built from empty answers here."""
OPEN_ENDED = (*REPLAYED, "generate_until_agentic")
MAX_ROUNDS = 64
_LIMITS = ("max_new_tokens", "max_gen_toks", "max_tokens")


class MeasureOptions(Struct, frozen=True):
    """Settings of a measurement."""

    ruler: Ruler
    form: MediaForm
    max_tokens: int | None = None
    """Most tokens that the model takes, including the answer."""
    opens_media: bool = True
    judges: bool = False
    """True if questions to a judge are counted."""


class RequestSize(Struct):
    """Size of one request."""

    id: str
    length: int
    """Length of its text, in units of the ruler."""
    text_bytes: int
    new_tokens: int
    """Most tokens of the answer."""
    media: MediaSizes


class DocumentSize(Struct):
    """Everything that is asked about one repeat of a document."""

    doc_id: int
    requests: list[RequestSize] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Reasons why it cannot be asked as it is."""
    judge_questions: int = 0


def measure(task: Task, doc_id: int, options: MeasureOptions) -> DocumentSize:
    """Build and measure the requests of a document. Exceptions of its task or media become faults."""
    found = DocumentSize(doc_id)
    try:
        requests = requests_of(task, doc_id)
    except Exception as error:  # noqa: BLE001 - the task's own functions may raise anything
        found.faults.append(failure("building the request", error))
        return found
    if not requests:
        found.faults.append("it has no choices" if task.output_type == "multiple_choice" else "it asks nothing")
    known: dict[tuple[int, str, str], RequestSize] = {}
    for request in requests:
        key = (request.round, request.kind, request.context)
        if key not in known:
            known[key] = _prompt_size(request, options, found)
        found.requests.append(_with_continuation(known[key], request, options, found))
    if options.judges and task.is_judged:
        found.judge_questions = _judge_questions(task, doc_id)
    return found


def requests_of(task: Task, doc_id: int) -> list[Request]:
    """Build the requests of a document's first repeat. Later rounds are built as if every answer were empty.

    Raises any exception of the task's own functions in the first round.
    """
    exchange = task.exchange(doc_id, 0)
    batch = list(exchange.open())
    requests = list(batch)
    while task.output_type in REPLAYED and batch and len(requests) < MAX_ROUNDS:
        try:
            batch = list(exchange.advance([Response(request.id, text="") for request in batch]))
        except Exception:  # noqa: BLE001 - a task need not accept an empty answer
            break
        requests += batch
    return requests


def _prompt_size(request: Request, options: MeasureOptions, found: DocumentSize) -> RequestSize:
    media, text = MediaSizes(), request.context
    if options.opens_media:
        try:
            messages = request.build_messages()
            text = messages.text()
            for message in messages.messages:
                for part in message.content:
                    media.add(part, options.form)
        except Exception as error:  # noqa: BLE001 - as above
            found.faults.append(failure("rendering the request", error))
    return RequestSize(
        request.id, options.ruler.length(text), _utf8(text), new_tokens(request.generation, options), media
    )


def _with_continuation(
    size: RequestSize, request: Request, options: MeasureOptions, found: DocumentSize
) -> RequestSize:
    more, is_rolling = request.continuation, request.kind == "loglikelihood_rolling"
    if more is not None:
        if not more.strip() and not is_rolling:
            named = f"choice {request.index}" if request.task.output_type == "multiple_choice" else "the continuation"
            found.faults.append(f"{named} is empty")
        length = size.length + options.ruler.length(more)
        size = replace(size, id=request.id, length=length, text_bytes=size.text_bytes + _utf8(more), new_tokens=0)
    tokens = options.ruler.tokens(size.length) + size.new_tokens
    # A text may be empty or longer than the model's context.
    if options.max_tokens is not None and tokens > options.max_tokens and not is_rolling:
        about = "" if options.ruler.is_exact else "about "
        found.faults.append(
            f"its text is too long: {about}{tokens - size.new_tokens} tokens and {size.new_tokens} for the answer, "
            f"but the model takes {options.max_tokens}"
        )
    return size


def new_tokens(generation: Mapping[str, Any], options: MeasureOptions) -> int:
    """Return the most tokens that an answer may have."""
    given = next((generation[name] for name in _LIMITS if generation.get(name)), options.form.max_new_tokens)
    return int(given) if isinstance(given, int | float) else options.form.max_new_tokens


def _judge_questions(task: Task, doc_id: int) -> int:
    """Count the questions to the judge about empty answers. If the task cannot build any, count one."""
    empty: Sequence[Answer] = tuple(Answer("") for _ in range(task.repeats))
    try:
        return max(1, len(task.judge_questions(doc_id, empty)))
    except NotEvaluated:
        return 0
    except Exception:  # noqa: BLE001 - as above
        return 1


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


MAX_FAULTS = 10
"""Most faults that are shown of a task."""


class TaskForecast(Struct):
    """Sums over everything that a run will ask of one task."""

    plan: TaskPlan
    requests: int = 0
    length: int = 0
    """Length of all texts."""
    new_tokens: int = 0
    """Most tokens of all answers."""
    nbytes: int = 0
    """Size of what is sent: texts, and media in base64."""
    media: MediaSizes = field(default_factory=MediaSizes)
    """Media of all requests, but only the pictures of one repeat."""
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
        """True if the number of rounds depends on the answers."""
        return self.plan.task.output_type in OPEN_ENDED

    @property
    def pictures_sent(self) -> int:
        """Number of pictures and frames in all requests."""
        return len(self.media.pictures) * self.repeats + self.media.frames

    def add(self, document: DocumentSize, sends: bool) -> None:
        """Count a document. ``sends``: media are sent in base64."""
        repeats = self.repeats
        for request in document.requests:
            self.requests += repeats
            self.length += repeats * request.length
            self.new_tokens += repeats * request.new_tokens
            self.nbytes += repeats * (request.text_bytes + (4 * -(-request.media.nbytes // 3) if sends else 0))
            self.media.count(request.media, repeats)
            if self.longest is None or request.length > self.longest.length:
                self.longest = request
        self.judge_questions += document.judge_questions
        self.faults += [(document.doc_id, fault) for fault in dict.fromkeys(document.faults)]

    def lines(self, unit: str, sends: bool) -> list[str]:
        """Describe the task in lines."""
        plan = self.plan
        lines = [f"{self.name}: {plan.requested:,} of {plan.original:,} documents", f"  requests: {self._requests()}"]
        if self.held:
            lines.append(f"  answered already: {self.held:,} (journal of this run)")
        lines.append(f"  text: {self.length:,} {unit}")
        lines += self.media.lines(self.repeats)
        if sends:
            about = f", about: {self.media.estimated:,} media are encoded anew" if self.media.estimated else ""
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

    def _fault_lines(self) -> list[str]:
        if not self.faults:
            return []
        documents = len({doc_id for doc_id, _ in self.faults})
        shown = [f"    document {doc_id}: {fault}" for doc_id, fault in self.faults[:MAX_FAULTS]]
        left = len(self.faults) - len(shown)
        return [f"  BROKEN: {documents:,} documents", *shown, *([f"    ... and {left:,} more"] if left else [])]


def size_of(pictures: Sequence[tuple[int, int]]) -> str:
    """Describe the median and the largest size."""
    by_pixels = sorted(pictures, key=lambda size: size[0] * size[1])
    (width, height), (most_wide, most_high) = by_pixels[(len(by_pixels) - 1) // 2], by_pixels[-1]
    median = statistics.median_low([width * height for width, height in by_pixels])
    return (
        f"median {width}x{height} ({median / 1e6:.2f} megapixels), largest {most_wide}x{most_high} "
        f"({most_wide * most_high / 1e6:.2f} megapixels)"
    )


def size_text(nbytes: int) -> str:
    """Format a number of bytes for people."""
    size, units = float(nbytes), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:,.0f} {units[0]}" if units[0] == "bytes" else f"{size:,.1f} {units[0]}"
