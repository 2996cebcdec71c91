"""``--dry_run``: builds and measures all requests of a run without asking anything."""

from __future__ import annotations

import json
import math
import os
import random
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.api.generation import MediaForm
from lmms_eval.api.messages import (
    ChatContent,
    ChatImageContent,
    ChatMessages,
    ChatTextContent,
    ChatVideoContent,
)
from lmms_eval.api.model import Model
from lmms_eval.api.request import Request
from lmms_eval.api.task import Task
from lmms_eval.config import RunConfig, argument_text, resolved_cli_args
from lmms_eval.engine.plan import TaskPlan
from lmms_eval.engine.records import failure
from lmms_eval.engine.response_cache import cache_path
from lmms_eval.engine.team import Place
from lmms_eval.errors import DataError, JournalError, MediaError
from lmms_eval.evaluation.collect import RunKeys, choose_model, plan_run, run_keys
from lmms_eval.evaluation.inputs import ModelChoice, Start
from lmms_eval.evaluation.judge import find_tariffs, judge_options, model_names
from lmms_eval.evaluation.preview.measure import (
    MeasureOptions,
    TaskForecast,
    find_ruler,
    measure,
    requests_of,
    size_text,
    tokenizer_file,
)
from lmms_eval.evaluation.run import exported
from lmms_eval.models.registry import NAMED_SERVICES, ModelRegistry
from lmms_eval.results.facts import part_of, read_document
from lmms_eval.results.files import RUNS, model_folder, run_folder
from lmms_eval.results.journals import RESPONSES
from lmms_eval.storage.atomic import write_atomically
from lmms_eval.storage.lines import JournalTails
from lmms_eval.storage.run_folder import DamagedRecord, RunFolder
from lmms_eval.tasks.yaml.task import YamlTask
from lmms_eval.utils.names import sanitize_task_name
from lmms_eval.utils.prices import LITELLM, Spending, Tariffs, read_prices
from lmms_eval.utils.terminal import printable

BROKEN = 2
"""Exit code if a document is broken."""
MOST_THREADS = 8
FOLDER = "dry_run"


def dry_run(config: RunConfig) -> tuple[list[str], int]:
    """Forecast a run: what each task asks, its size and price, and what is broken.

    Returns the lines to print and the exit code. This builds no model and no judge, and makes no folder of a run. It
    reads the folder of an earlier start.

    Raises:
        UsageError: a mistake that would end the run itself before its first question.
        JournalError: a page could not be written.
    """
    with exported(config):
        random.seed(config.seed[0])
        registry = ModelRegistry(config.names("plugins"))
        choice = choose_model(config, registry, None)
        form, tariffs = _media_form(config, registry, choice), _tariffs(config)
        _, plans = plan_run(config, registry, choice, Place(), Start())
        names = model_names(config)
        given = config.max_model_len or config.arguments("model_args").get("max_model_len")
        options = MeasureOptions(
            ruler=find_ruler(names),
            form=form,
            max_tokens=int(given) if isinstance(given, int) else None,
            opens_media=choice.opens_media,
            judges=judge_options(config).is_given and not config.predict_only,
        )
        keys, arguments = run_keys(config, choice, plans), argument_text(config.model_args)
        out = Path(config.output_path) if config.output_path else None
        base = None if out is None else run_folder(out, config.model, arguments)
        if out is not None and base is not None and not base.is_dir():
            base = model_folder(out, arguments)  # an earlier version wrote the runs of all such models there
        held = held_requests(base, config, keys) if base and base.is_dir() else set()
        threads = config.media_workers or min(MOST_THREADS, max(2, os.cpu_count() or 2))
        tasks = tuple(_forecast(plan, options, threads) for plan in plans)
        parts = [request_id.rsplit("/", 4) for request_id in held]
        for task in tasks:
            chosen = set(map(str, task.plan.doc_ids))
            task.held = sum(part[0] == task.name and part[1] in chosen for part in parts)
        lines = forecast_lines(tasks, options, tariffs, earlier_runs(base, config))
        lines += _cache_lines(config)
        if config.dry_run is not True:
            lines += _pages(config, plans, names)
    return lines, BROKEN if any(task.faults for task in tasks) else 0


def _forecast(plan: TaskPlan, options: MeasureOptions, threads: int) -> TaskForecast:
    """Measure all documents of a task in threads."""
    options = replace(options, form=_form_of(options.form, plan.task))
    found, sends = TaskForecast(plan), options.form.wire is not None
    with ThreadPoolExecutor(threads, "dry-run") as pool:
        for document in pool.map(lambda doc_id: measure(plan.task, doc_id, options), plan.doc_ids, chunksize=1):
            found.add(document, sends)
    return found


def _form_of(form: MediaForm, task: Task) -> MediaForm:
    """Return the form of the media of a task's requests, which a recipe may limit."""
    limits = task.options.media if isinstance(task, YamlTask) else None
    if limits is None:
        return form
    wire = None if form.wire is None else replace(form.wire, bounds=form.wire.bounds.limited(limits))
    return replace(form, frames=limits.max_frames or form.frames, fps=limits.fps or form.fps, wire=wire)


def _media_form(config: RunConfig, registry: ModelRegistry, choice: ModelChoice) -> MediaForm:
    """Determine the form of media that the model takes, from its arguments. Raises ``ModelError`` if one is wrong."""
    cls = registry.resolve(config.model, config.force_simple).load()
    if not issubclass(cls, Model):
        return MediaForm()
    given: Mapping[str, Any] = {
        name: value for name, value in config.arguments("model_args").items() if name not in choice.ignored_arguments
    }
    service = NAMED_SERVICES.get(config.model)
    if service is not None:  # its API key is not needed here
        is_named = any(given.get(name) for name in ("model", "model_version", "pretrained"))
        given = {**service.fixed, **({"model": service.model} if service.model and not is_named else {}), **given}
    return cls.media_form(given)


def _tariffs(config: RunConfig) -> Tariffs | None:
    """Find the prices in the given table, else in litellm's if it is installed and has the model."""
    if config.prices is not None:
        return find_tariffs(config, read_prices(config.prices))
    if find_spec(LITELLM) is None:
        return None
    table = read_prices(LITELLM)
    return find_tariffs(config, table) if table.find(model_names(config)) is not None else None


def _cache_lines(config: RunConfig) -> list[str]:
    """Return a note that cached answers are not counted. Finding them would require reading all media."""
    if not config.use_cache or not (path := cache_path(config.use_cache)).is_file():
        return []
    return [f"answers in the response cache {path} are not counted: to find them all media would have to be read"]


def _pages(config: RunConfig, plans: Sequence[TaskPlan], names: Sequence[str]) -> list[str]:
    """Write a page with the first requests of each task, and return lines that name the pages."""
    if config.output_path:
        folder = Path(config.output_path) / FOLDER
    else:
        folder = Path(tempfile.mkdtemp(prefix="lmms_eval_dry_run_"))
    tokenizer = next((path for name in names if (path := tokenizer_file(name)) is not None), None)
    template = chat_template(tokenizer.parent) if tokenizer is not None else None
    written, used = [], set[str]()
    for number, plan in enumerate(plans):
        stem = sanitize_task_name(plan.task.name)[:MAX_NAME]
        name = f"{stem}_{number}" if stem in used else stem  # task names may differ in punctuation only
        used.add(stem)
        requests = list(islice(_first_requests(plan), int(config.dry_run)))
        written.append(f"written: {Page(folder, plan.task.name, name, template).write(requests)}")
    return written


def _first_requests(plan: TaskPlan) -> Iterator[Request]:
    for doc_id in plan.doc_ids:
        try:
            yield from requests_of(plan.task, doc_id)
        except Exception:  # noqa: BLE001 - already counted as broken
            continue


MOST_RUNS = 20
"""Newest results files that are read."""
MAX_BYTES = 256 * 2**20


class Earlier(Struct, frozen=True):
    """Means over earlier runs of the model, or ``None`` if these have no such number."""

    runs: int = 0
    input_tokens: float | None = None
    """Tokens of one request, including its media."""
    output_tokens: float | None = None
    """Tokens of one answer."""
    seconds: float | None = None
    """Mean time from one answer to the next, at the concurrency of those runs."""


def earlier_runs(folder: Path | None, config: RunConfig) -> Earlier:
    """Average the newest results of this model, passing over those that cannot be read."""
    if folder is None:
        return Earlier()
    files = sorted(folder.glob("*_results.json"))[-MOST_RUNS:]
    model = (config.model, resolved_cli_args(config)["model_args"])
    found = []
    for path in files:
        with suppress(DataError, OSError):
            content = read_document(path) if path.stat().st_size < MAX_BYTES else None
            if (
                isinstance(content, dict)
                and tuple(map(part_of(content, "config").get, ("model", "model_args"))) == model
            ):
                found.append(content)
    calls = inputs = outputs = asked = seconds = 0.0
    for content in found:
        usage = part_of(part_of(part_of(content, "usage"), "by_source"), "model")
        if _number(usage, "total_tokens"):
            calls += _number(usage, "n_api_calls")
            inputs += _number(usage, "input_tokens")
            outputs += _number(usage, "output_tokens")
        timing = part_of(content, "timing")
        if _number(timing, "asked") > 1:
            asked += _number(timing, "asked")
            seconds += _number(timing, "first_request_to_last_response")
    return Earlier(
        len(found),
        inputs / calls if calls else None,
        outputs / calls if calls else None,
        seconds / asked if asked and seconds else None,
    )


def held_requests(folder: Path | None, config: RunConfig, keys: RunKeys) -> set[str]:
    """Find the requests that the journal of this run answers already. The run's folder is read, but not locked.

    The model is not built here, so its recorded identity is used.
    """
    held: set[str] = set()
    runs = [] if folder is None else sorted((folder / RUNS).glob("*/run.json"))
    for path in runs:
        try:
            record = RunFolder(path.parent).read()
        except DamagedRecord:
            continue
        identity = part_of(record, "model").get("identity")
        if record.get("key") != keys.of(identity) or (record.get("state") == "complete" and not config.resume):
            continue  # another run, or one that would begin anew
        responses = JournalTails(path.parent, RESPONSES).news()
        held |= {answered["id"] for _, answered in responses if "id" in answered and "error" not in answered}
    return held


def _number(content: Mapping[str, Any], name: str) -> float:
    value = content.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value is not None and math.isfinite(value) else 0.0


def forecast_lines(
    tasks: Sequence[TaskForecast], options: MeasureOptions, tariffs: Tariffs | None, earlier: Earlier
) -> list[str]:
    """Describe each task, then the whole run."""
    sends = options.form.wire is not None
    lines = ["dry run: nothing is asked", f"text is counted in {options.ruler.unit}: {options.ruler.source}", ""]
    for task in tasks:
        lines += task.lines(options.ruler.unit, sends)
    lines += [
        "",
        f"Total: {_sum(tasks, 'requests'):,} requests, {_sum(tasks, 'length'):,} {options.ruler.unit} of text",
    ]
    if sends:
        lines[-1] += f", {size_text(_sum(tasks, 'nbytes'))} to be sent"
    lines += [*_price(tasks, options, tariffs, earlier), *_time(tasks, earlier)]
    broken = sum(len({doc_id for doc_id, _ in task.faults}) for task in tasks)
    lines.append(f"broken: {broken:,} documents (exit code 2)" if broken else "no problems found")
    return lines


def _sum(tasks: Sequence[TaskForecast], name: str) -> int:
    return sum(int(getattr(task, name)) for task in tasks)


def _price(
    tasks: Sequence[TaskForecast], options: MeasureOptions, tariffs: Tariffs | None, earlier: Earlier
) -> list[str]:
    if tariffs is None:
        return ["price not known: give a table with --prices FILE (docs/before_the_run.md)"]
    tariff = tariffs.model
    pictures, seconds = _sum(tasks, "pictures_sent"), sum(task.media.seconds for task in tasks)
    tokens, requests = options.ruler.tokens(_sum(tasks, "length")), _sum(tasks, "requests")
    asked = tariff.cost(Spending(tokens, pictures=pictures, audio_seconds=seconds))
    answered = tariff.cost(Spending(output_tokens=_sum(tasks, "new_tokens")))
    about = "" if options.ruler.is_exact else "about "
    without = ", tokens of media not counted" if pictures or seconds else ""
    lines = [
        f"price: {about}{tariff.shown(asked)} for the input{without}, at most {tariff.shown(answered)} for the output "
        f"({tariff.source})"
    ]
    if earlier.input_tokens is not None and earlier.output_tokens is not None:
        spent = Spending(round(requests * earlier.input_tokens), round(requests * earlier.output_tokens))
        lines.append(
            f"price by {earlier.runs} earlier runs of the model: about {tariff.shown(tariff.cost(spent))} "
            f"({earlier.input_tokens:,.0f} tokens in and {earlier.output_tokens:,.0f} out a request)"
        )
    if _sum(tasks, "judge_questions"):
        lines.append("the price is without the judge, because the length of its prompts depends on the answers")
    return lines


def _time(tasks: Sequence[TaskForecast], earlier: Earlier) -> list[str]:
    if earlier.seconds is None:
        return ["time not known: the output folder holds no earlier run of the model"]
    left = max(0, _sum(tasks, "requests") - _sum(tasks, "held"))
    seconds = left * earlier.seconds
    hours, minutes = f"{seconds / 3600:.1f} h", f"{seconds / 60:.0f} min"
    about = f"{seconds:.0f} s" if seconds < 120 else minutes if seconds < 7200 else hours
    return [f"time by {earlier.runs} earlier runs of the model: about {about}"]


SIDE = 512
"""Most pixels of a thumbnail's longer side."""
SHOWN_FRAMES = 4
MAX_NAME = 120
"""Most characters of a file's name."""
_TICKS = re.compile("`+")
_PLAIN = re.compile(r"[^\w .,:/+-]")


class Page(Struct, frozen=True):
    """Writes the page of one task: ``FOLDER/STEM.md``, with its pictures in the same folder."""

    folder: Path
    task: str
    stem: str
    """Name of the file without its suffix: letters, digits and underscores."""
    template: Any
    """Renders messages as the model's chat template does. ``None`` if the template is not available."""

    def write(self, requests: Sequence[Request]) -> Path:
        """Write the page. Raises ``JournalError`` if the page or a thumbnail cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(f"cannot make the folder {self.folder}: {error.strerror or error}") from error
        some = "request" if len(requests) == 1 else f"{len(requests)} requests"
        lines = [f"# {plain(self.task)}: the first {some}", ""]
        for number, request in enumerate(requests, start=1):
            lines += [f"## {number}. {plain(request.id)}", "", *self._request(number, request)]
        path = self.folder / f"{self.stem}.md"
        write_atomically(path, "\n".join(lines).encode("utf-8", "replace"))
        return path

    def _request(self, number: int, request: Request) -> Iterator[str]:
        yield from fenced(json.dumps(dict(request.generation), default=str, ensure_ascii=False), "json")
        try:
            messages = request.build_messages()
        except Exception as error:  # noqa: BLE001 - the task's own functions may raise anything
            yield from fenced(failure("rendering the request", error))
            return
        count = 0
        for message in messages.messages:
            yield from (f"**{message.role}**", "")
            for part in message.content:
                count += 1
                yield from self._part(f"{self.stem}_{number}_{count}", part)
        if request.continuation is not None:
            yield from ("**continuation whose likelihood is asked**", "", *fenced(request.continuation))
        yield from self._rendered(messages)

    def _part(self, stem: str, part: ChatContent) -> Iterator[str]:
        from lmms_eval.media import audio_seconds, resolve

        if isinstance(part, ChatTextContent):
            yield from fenced(part.text)
            return
        try:
            if isinstance(part, ChatImageContent):
                yield from self._picture(stem, part.url)
            elif isinstance(part, ChatVideoContent):
                yield from self._video(stem, part)
            else:
                ref = resolve(part.url)
                is_remote = ref.kind == "url"
                yield from fenced(f"sound at {ref.describe()}" if is_remote else f"sound of {audio_seconds(ref):.1f} s")
        except MediaError as error:
            yield from fenced(str(error))

    def _picture(self, stem: str, value: Any) -> Iterator[str]:
        from lmms_eval.media import load_rgb, resolve, shrink

        ref = resolve(value)
        if ref.kind == "url":
            yield from fenced(f"picture at {ref.describe()}")
            return
        image = load_rgb(ref)
        size = image.size
        small = shrink(image, max_side=SIDE)
        path = self.folder / f"{stem}.webp"
        try:
            small.save(path, format="WEBP", quality=80)
        except OSError as error:
            raise JournalError(f"cannot write {path}: {error.strerror or error}") from error
        yield from (f"![picture of {size[0]}x{size[1]}]({path.name})", "")

    def _video(self, stem: str, part: ChatVideoContent) -> Iterator[str]:
        from lmms_eval.models.remote.media import Frames, read_video

        frames: Sequence[Any]
        if isinstance(part.url, list | tuple):
            frames = part.url[:SHOWN_FRAMES]
        else:
            frames = read_video(part, Frames(SHOWN_FRAMES)).images()
        yield from (f"video, {len(frames)} of its frames:", "")
        for number, frame in enumerate(frames):
            yield from self._picture(f"{stem}_{number}", frame)

    def _rendered(self, messages: ChatMessages) -> Iterator[str]:
        if self.template is None:
            return
        try:
            text = self.template(messages)
        except Exception as error:  # noqa: BLE001 - a template is a program of the model's authors
            text = failure("the chat template", error)
        yield from ("**as the chat template renders it**", "", *fenced(text))


def fenced(text: str, language: str = "") -> list[str]:
    """Return a fenced code block with the text, control characters escaped."""
    shown = printable(text)
    longest = max((len(ticks) for ticks in _TICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language or 'text'}", shown, fence, ""]


def plain(text: str) -> str:
    """Replace the characters of a name that a Markdown heading cannot hold."""
    return _PLAIN.sub("_", printable(text))


def chat_template(folder: Path) -> Any:
    """Return a function that applies the chat template in a model's folder, or ``None`` if there is no readable one."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError):
        return None
    if not getattr(tokenizer, "chat_template", None):
        return None
    return lambda messages: tokenizer.apply_chat_template(
        messages.to_hf_messages(), tokenize=False, add_generation_prompt=True
    )
