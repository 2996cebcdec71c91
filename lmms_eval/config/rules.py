"""Rules for the values of options, and between options. Each message says what to do."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from lmms_eval.config.convert import sample_design
from lmms_eval.config.options import TRACKERS, RunConfig, environment_defaults, options
from lmms_eval.errors import ConfigError
from lmms_eval.utils.arguments import comma_list

CONTROLS = ("no-media", "blank-media", "shuffled-media", "choices-only")

AGAIN = "again"
"""The control that asks documents a second time (``--repeat_share``)."""


def names_trackers(config: RunConfig) -> bool:
    """Return whether an option of the trackers or of the hub upload is given."""
    return any(getattr(config, one.name) for one in options() if one.group == TRACKERS)


def controls_of(ablate: str | None) -> tuple[str, ...]:
    """Return the controls that ``--ablate`` names, each once."""
    return tuple(dict.fromkeys(comma_list(ablate)))


def control_name(task: str, control: str) -> str:
    """Return the name of a control: ``TASK@CONTROL``."""
    return f"{task}@{control}"


def is_asked_again(task: str) -> bool:
    """Return whether this is the name of a task that asks documents a second time."""
    return task.endswith(control_name("", AGAIN))


def check_config(config: RunConfig) -> RunConfig:
    """Return the configuration if every rule holds.

    Raises ``ConfigError`` if a rule is broken; the message is that of the first one.
    """
    for rule in _RULES:
        for message in rule(config):
            raise ConfigError(message)
    return config


def options_without_effect(config: RunConfig) -> list[str]:
    """Return a line for each option that is set but has no effect."""
    if config.cache_requests is None:
        return []
    return [
        f"--cache_requests {config.cache_requests} is not needed and does nothing: requests are built while the model "
        "works, and --use_cache keeps its answers"
    ]


def _documents(config: RunConfig) -> Iterator[str]:
    if config.tui:
        yield "--tui is for the command line only: it starts the run and shows it; leave it out of files and programs"
    if not config.names("tasks"):
        yield "--tasks is missing: name at least one task; `lmms-eval tasks list` shows them"
    limit = config.limit
    if limit is not None and limit != -1 and not (math.isfinite(limit) and limit > 0):
        yield (f"--limit: give a count from 1 on, a fraction between 0 and 1, or -1 for all documents; got {limit:g}")
    if config.offset < 0:
        yield f"--offset: the index of the first document is 0 or more; got {config.offset}"


def _order(config: RunConfig) -> Iterator[str]:
    if config.until and config.order == "cost":
        yield "--until needs a sample at every look: leave --order cost out (--until asks in random order)"
    if config.anchors and config.order != "random" and not config.until and not _is_neyman(config):
        yield (
            "--anchors makes the interval of a random order narrower: add --order random, --until RULE, or "
            "--sample N:neyman"
        )
    if config.anchors and config.predict_only:
        yield "--anchors needs scores, which --predict_only does not make: leave one of them out"
    for name in config.names("anchors"):
        if not name.startswith("hf://") and not Path(name).expanduser().exists():
            yield f"--anchors: there is no run {name}; give a samples file (JSONL) or a folder of an earlier run"
    if config.until and config.predict_only:
        yield "--until needs scores, which --predict_only does not make: leave one of them out"
    if config.until and config.ablate:
        yield "--until does not go with --ablate, whose controls are compared over all documents: leave one of them out"
    if config.until and config.permute_choices:
        yield "--until does not go with --permute_choices, which counts documents in all orders: leave one of them out"


def _prompts(config: RunConfig) -> Iterator[str]:
    for name, why in (
        ("until", "ends a task before all prompts were asked"),
        ("predict_only", "makes no scores, which its variants are compared by"),
    ):
        if config.prompt_variants and getattr(config, name):
            yield f"--prompt_variants does not go with --{name}, which {why}: leave one of them out"


def _repeat_share(config: RunConfig) -> Iterator[str]:
    if not config.repeat_share:
        return
    for is_given, name, why in (
        (config.until, "until", "ends a task before its documents are asked again"),
        (config.predict_only, "predict_only", "makes no scores to compare"),
        ((config.repeats or 1) > 1, "repeats", "already shows how the answers to every document vary"),
    ):
        if is_given:
            yield f"--repeat_share does not go with --{name}, which {why}: leave one of them out"


def _is_neyman(config: RunConfig) -> bool:
    return config.sample is not None and sample_design(config.sample).kind == "neyman"


def _sample(config: RunConfig) -> Iterator[str]:
    if not config.sample:
        return
    if _is_neyman(config):
        yield from _neyman(config)
    for name, why in (
        ("limit", "takes the first documents"),
        ("offset", "leaves the first documents out"),
        ("until", "draws documents until its rule holds"),
    ):
        if getattr(config, name):
            yield f"--sample does not go with --{name}, which {why}: leave one of them out"


def _neyman(config: RunConfig) -> Iterator[str]:
    """A document's chance to be drawn depends on earlier scores, so plain means over what was drawn are biased."""
    if not config.anchors and not config.resume:  # a recorded run has its draw
        yield "--sample N:neyman divides the documents by earlier scores: name the runs with --anchors RUN[,RUN...]"
    if config.predict_only:
        yield "--sample N:neyman weights scores, which --predict_only does not make: leave one of them out"
    for name, why in (
        ("order", "shows an interval of documents drawn with equal chances"),
        ("ablate", "compares plain means"),
        ("permute_choices", "compares plain means"),
        ("baseline", "compares plain means"),
        ("repeat_share", "asks documents again with equal chances"),
        ("prompt_variants", "compares plain means"),
    ):
        if getattr(config, name) and getattr(config, name) != "cost":
            yield f"--sample N:neyman does not go with --{name}, which {why}: leave one of them out"


def _ranges(config: RunConfig) -> Iterator[str]:
    for option in options():
        value = getattr(config, option.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        least, most = option.least, option.most
        if least is not None and not value >= least:
            yield f"{option.flag}: must be at least {least:g}; got {value:g}"
        if most is not None and not 0 <= value <= most:
            yield f"{option.flag}: must lie between {least or 0:g} and {most:g}; got {value:g}"
        if not math.isfinite(value):
            yield f"{option.flag}: must be a finite number; got {value}"


def _outputs(config: RunConfig) -> Iterator[str]:
    for name in controls_of(config.ablate):
        if name not in CONTROLS:
            yield f"--ablate: there is no control {name!r}; choose from {', '.join(CONTROLS)}"
    if config.log_samples and not config.output_path:
        flag = "--predict_only" if config.predict_only else "--log_samples"
        yield f"{flag} writes a samples file: say where with --output_path DIR"
    if config.log_media and config.no_media:
        yield "--log_media and --no_media contradict each other: give one of them"
    if config.report and not config.output_path:
        yield "--report writes pages next to the results: say where with --output_path DIR"
    if config.fewshot_as_multiturn and not config.apply_chat_template:
        yield "--fewshot_as_multiturn needs --apply_chat_template"
    if config.fewshot_as_multiturn and not config.num_fewshot:
        yield "--fewshot_as_multiturn needs shots: give --num_fewshot N with N > 0"


def _texts(config: RunConfig) -> Iterator[str]:
    """Read the options with a grammar of their own once, so that mistakes show before any model is loaded."""
    for name in ("model_args", "judge_args", "launcher_args", "t2i_args", "gen_kwargs"):
        config.arguments(name)
    config.tag_pairs("reasoning_tags")
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        if config.timezone is not None:
            ZoneInfo(config.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        yield f"--timezone: {config.timezone!r} is not the name of a time zone; write it like Europe/Berlin or UTC"


def _judge(config: RunConfig) -> Iterator[str]:
    if config.launcher_args and config.judge_base_url:
        yield "--launcher_args serves the judge itself: leave --judge_base_url out"
    if config.judge_args and not (config.judge_model or config.judge_base_url or config.launcher_args):
        yield "--judge_args: name the judge with --judge_model or --judge_base_url"
    for name in ("judge_prompts", "human_scores"):
        path = getattr(config, name)
        if path and not Path(path).is_file():
            yield f"--{name}: there is no file {path}"
    if config.t2i_args and not config.t2i:
        yield "--t2i_args: name the model that draws with --t2i"


def _paths(config: RunConfig) -> Iterator[str]:
    if config.data_root and not Path(config.data_root).is_dir():
        yield f"--data_root: there is no folder {config.data_root}"
    for path in config.include_paths:
        if not Path(path).exists():
            yield f"--include_path: there is no {path}"
    for item in config.names("allow_media"):
        if "://" in item and not item.startswith(("http://", "https://")):
            yield f"--allow_media: give a path, or a URL that begins with http:// or https://; got {item!r}"
        if "://" not in item and not Path(item).expanduser().exists():
            yield f"--allow_media: there is no {item}"
    if isinstance(config.resume, str) and not Path(config.resume).is_dir():
        yield f"--resume: there is no folder {config.resume}; give the folder that holds the run's record"
    baseline = config.baseline or ""
    is_path = not baseline.startswith("hf://") and ("/" in baseline or baseline.endswith((".jsonl", ".json")))
    if is_path and not Path(baseline).expanduser().exists():
        yield f"--baseline: there is no samples file {baseline}"


def _scoring_data(config: RunConfig) -> Iterator[str]:
    # A stale NLTK_DATA must not stop runs that do not need the data, so only a value that the user gave is checked.
    stated = environment_defaults(os.environ).get("nltk_data")
    is_typed = config.nltk_data is not None and (stated is None or stated.text != config.nltk_data)
    if is_typed and not any(Path(part).expanduser().is_dir() for part in str(config.nltk_data).split(os.pathsep)):
        yield f"--nltk_data: there is no folder {config.nltk_data}"
    if config.geocode_table and not Path(config.geocode_table).is_file():
        yield f"--geocode_table: there is no file {config.geocode_table}"
    if config.geocoder not in (None, "", "nominatim") and not str(config.geocoder).startswith(("http://", "https://")):
        yield f"--geocoder: give nominatim, or a URL that begins with http:// or https://; got {config.geocoder!r}"


def _trackers(config: RunConfig) -> Iterator[str]:
    if names_trackers(config):
        from lmms_eval.config.tracking import destination_problems

        yield from destination_problems(config)


_RULES: tuple[Callable[[RunConfig], Iterator[str]], ...] = (
    _documents, _order, _prompts, _repeat_share, _sample, _ranges, _outputs, _texts, _judge, _paths, _scoring_data,
    _trackers,
)  # fmt: skip
