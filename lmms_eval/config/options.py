"""Declaration of every option of a run. Flags, configuration keys, environment variables, conversion of values, the
arguments of ``simple_evaluate`` and the recorded arguments derive from it.

Annotations are types here, not texts: the conversion of values reads them.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct

from lmms_eval.utils.arguments import comma_list

MODEL, TASKS, GENERATION, JUDGE = "Model", "Tasks and data", "Prompts and generation", "Judge"
OUTPUT, RUNNING, STATISTICS, MEDIA, TRACKERS = "Output", "Running", "Statistics", "Media", "Trackers and hub"
GROUPS = (MODEL, TASKS, GENERATION, JUDGE, OUTPUT, TRACKERS, RUNNING, STATISTICS, MEDIA)
DEFAULT_REASONING_TAGS = '[["<think>", "</think>"], ["<analysis>", "</analysis>"]]'
LEVELS = ("TRACE", "DEBUG", "INFO", "SUCCESS", "WARNING", "ERROR", "CRITICAL")
Arguments = str | dict[str, Any]
"""``k=v,k=v``, or a mapping."""


class Option(NamedTuple):
    """Declaration of one option, a field of ``RunConfig``."""

    name: str
    default: Any
    kind: Any
    """The type of its values, as it is annotated."""
    group: str
    text: str
    form: str = ""
    """The function of ``convert`` that converts the value. The type of its argument is what callers may pass."""
    aliases: tuple[str, ...] = ()
    """Further spellings of the flag, with their dashes."""
    spelling: str = ""
    """The flag, if it is not ``--NAME``."""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    """Environment variables that set the default; the first one that is set wins."""
    run_only: bool = False
    """The option cannot change a model's answer by itself, so it is not part of the run key. Tasks and data are part of
    the key by their hashes."""
    optional_value: bool = False
    """The flag may be given without a value, which means ``True``."""
    for_tasks: bool = False
    """The option is passed to the tasks whose YAML asks for it (``run_options``)."""
    repeatable: bool = False
    """The flag may be given several times."""
    least: float | None = None
    most: float | None = None

    @property
    def flag(self) -> str:
        return self.spelling or f"--{self.name}"

    @property
    def is_switch(self) -> bool:
        return self.kind in (bool, bool | None)


_DETAILS: list[dict[str, Any]] = []
"""What the declarations of ``RunConfig`` say about its fields, in their order."""


def option(default: Any, group: str, text: str, **details: Any) -> Any:
    """Declare an option that can change a model's answer; returns its default. ``details`` are fields of ``Option``."""
    _DETAILS.append({"group": group, "text": text, **details})
    return default


def run(default: Any, group: str, text: str, **details: Any) -> Any:
    """Declare an option that cannot change an answer by itself."""
    return option(default, group, text, run_only=True, **details)


class RunConfig(Struct, frozen=True, kw_only=True):
    """The options of one evaluation. Build it with ``build_config`` or ``load_configs``, which convert the values."""

    # fmt: off
    config: str = run("", RUNNING, "YAML file with options: a mapping, or a list of mappings (batch)", metavar="FILE")
    model: str = option("hf", MODEL, "model name or alias; `lmms-eval models` lists them")
    tasks: str | None = run(None, TASKS,
        "comma list of tasks, groups, tags, wildcards, YAML files or folders of them; or list, list_groups, list_tags,"
        " list_subtasks", form="names_or_switches")
    model_args: Arguments = option("", MODEL, "arguments of the model")
    launcher_args: Arguments | None = run(None, JUDGE,
        "serve the judge on this machine for the time of the run: name=vllm|sglang|transformers,model=NAME,...")
    num_fewshot: int | None = option(None, GENERATION,
        "number of few-shot examples; overrides the task's value unless that is 0", least=0)
    batch_size: int | str = run(1, MODEL,
        "requests a local model takes at a time, `auto` or `auto:N`", form="batch_size", aliases=("-b",))
    max_batch_size: int | None = run(None, MODEL, "upper limit for an automatic batch size", least=1)
    device: str | None = run(None, MODEL, "device of a local model: cuda, cuda:1, cpu, mps")
    output_path: str | None = run(None, OUTPUT, "folder for results, samples and the record of the run", metavar="DIR")
    limit: float | None = option(None, TASKS,
        "documents per task: a count from 1 on, a fraction below 1 (rounded up), -1 for all")
    offset: int = option(0, TASKS, "index of the first document, from 0 on")
    use_cache: str | None = run(None, RUNNING,
        "folder or .db file that keeps responses across runs", aliases=("-c",), metavar="PATH")
    cache_requests: Literal["true", "refresh", "delete"] | None = run(None, RUNNING,
        "not needed, does nothing: requests are never cached")
    check_integrity: bool = run(False, RUNNING,
        "check the tasks before the run, as `lmms-eval check` does; a broken one ends it")
    write_out: bool = run(False, OUTPUT, "deprecated: log the prompt of the first document", aliases=("-w",))
    log_samples: bool = run(False, OUTPUT, "write a line for each sample; needs --output_path")
    wandb_log_samples: bool = run(False, TRACKERS, "also send samples to Weights & Biases; needs --wandb_args")
    swanlab_log_samples: bool = run(False, TRACKERS, "also send samples to SwanLab; needs --swanlab_args")
    log_samples_suffix: str = run("model_outputs", OUTPUT, "part of the name of some tasks' own submission files")
    system_instruction: str | None = option(None, GENERATION, "system prompt")
    apply_chat_template: bool = option(False, GENERATION, "render the context with the model's chat template")
    fewshot_as_multiturn: bool | None = option(None, GENERATION,
        "few-shot examples as turns of a conversation; needs --apply_chat_template and --num_fewshot. "
        "lm-eval's tasks do so unless it is turned off")
    show_config: bool = run(False, OUTPUT, "print the results as JSON at the end")
    include_path: str | tuple[str, ...] | None = run(None, TASKS,
        "folder with more task YAML files, searched recursively; may be given several times, names of a later one win",
        form="one_or_several", metavar="DIR", repeatable=True)
    gen_kwargs: Arguments = option("", GENERATION, "generation options, over those of every task")
    reasoning_tags: str = run(DEFAULT_REASONING_TAGS, GENERATION,
        "JSON list of [open, close] pairs removed before scoring, or none", form="tags")
    verbosity: str = run("INFO", OUTPUT,
        "log level; DEBUG shows tracebacks", form="upper", choices=LEVELS, variables=("VERBOSITY",))
    wandb_args: Arguments = run("", TRACKERS, "show the run and its results in Weights & Biases: project, name, ...")
    swanlab_args: Arguments = run("", TRACKERS, "show the run and its results in SwanLab: project, exp_name, ...")
    timezone: str | None = run(None, OUTPUT,
        "time zone of the date stamp in file names (the machine's own)", metavar="ZONE")
    hf_hub_log_args: Arguments = run("", TRACKERS,
        "push results and samples to data sets on the hub; HF_TOKEN is the token")
    predict_only: bool = run(False, OUTPUT,
        "only generate answers, without scores; implies --log_samples", aliases=("-x",))
    seed: tuple[int | None, ...] = option((0, 1234, 1234, 1234), GENERATION,
        "seeds of python, numpy, torch and few-shot sampling: one for all, or four; each may be None",
        form="seeds", metavar="N[,N,N,N]")
    trust_remote_code: bool = option(False, MODEL, "let repositories of models and data run their own code")
    process_with_media: bool = run(False, TASKS, "give scoring functions the media columns too")
    agentic_trace_mode: Literal["basic", "full"] = option("basic", GENERATION,
        "what samples record of the rounds of agentic tasks")
    force_simple: bool = option(False, MODEL, "use the simple interface of a model that also has the chat interface")
    tui: bool = run(False, OUTPUT, "show the run on the terminal's screen; needs --output_path")
    repeats: int | None = option(None, GENERATION,
        "answers per document; overrides the task's value", aliases=("-n", "--num_samples"), least=1)
    baseline: str | None = run(None, STATISTICS,
        "samples for a paired comparison: a file (JSONL), a folder of them, hf://USER/REPO[/FILE], or a preset",
        metavar="FILE|hf://...|PRESET[:TASK]")
    max_tokens: int | None = run(None, RUNNING,
        "input and output tokens that the run and its judge may use; raise it to resume", least=1)
    power_analysis: bool = run(False, STATISTICS,
        "print how many documents of --tasks a comparison needs", spelling="--power-analysis")
    effect_size: float = run(0.03, STATISTICS, "difference to detect (power analysis)", spelling="--effect-size")
    alpha: float = run(0.05, STATISTICS, "significance level (power analysis)")
    power: float = run(0.8, STATISTICS, "probability of detecting the difference (power analysis)")
    correlation: float = run(0.5, STATISTICS, "correlation of the two models' scores (power analysis)")
    std_a: float | None = run(None, STATISTICS, "standard deviation of model A (power analysis)", spelling="--std-a")
    std_b: float | None = run(None, STATISTICS, "standard deviation of model B (power analysis)", spelling="--std-b")
    no_media: bool = run(False, OUTPUT,
        "keep no media of the run; the model baseline then answers without building prompts and opening their media")
    error_budget: float = run(0.0, RUNNING,
        "share of a task's samples that may fail before its score is withheld", most=1)
    judge_error_budget: float | None = run(None, RUNNING,
        "share of a task's samples that may lack a readable reply of the judge before its score is withheld (as "
        "--error_budget)", most=1)
    truncation_budget: str = run("0.05", RUNNING,
        "share of a task's answers that the token limit may cut before its score carries a warning; with ! after it, "
        "the score is withheld", form="share", metavar="SHARE[!]")
    retry_truncated: str | None = run(None, RUNNING,
        "ask again, with N tokens (max: as many as the model takes), for answers that the token limit cut, also in a "
        "completed run", form="tokens", metavar="N|max")
    order: Literal["cost", "random"] | None = run(None, RUNNING,
        "order of the documents: most expensive first (cost), or random by the first number of --seed, with an "
        "interval of the running score that holds at every look (cost, with --until random)")
    until: str | None = run(None, RUNNING,
        "end each task once RULE is met: halfwidth<=0.01 (or 1%), decided:NUMBER, decided:BASELINE, or "
        "TASK_OR_GROUP: RULE; several are separated by ; or given one by one",
        form="rules", metavar="RULE[;RULE...]", repeatable=True)
    anchors: str | None = run(None, RUNNING,
        "earlier runs of the same tasks whose scores predict those of this run, for a narrower interval with --order "
        "random, --until or --sample N:neyman: samples files (JSONL) or folders of them",
        form="names", metavar="RUN[,RUN...]", repeatable=True)
    allow_ignored: bool = run(False, GENERATION,
        "run even if the model ignores an option of --gen_kwargs; the results name the option")
    allow_blank: bool = run(False, RUNNING, "give a score even if every answer is blank or filtered")
    resume: bool | str = run(False, RUNNING,
        "continue a completed run too; with DIR, the run recorded in that folder (an interrupted run always continues)",
        form="folder_or_switch", metavar="DIR", optional_value=True)
    task_kwargs: Arguments = option("", GENERATION,
        "settings of the tasks, over lmms_eval_specific_kwargs of every task")
    data_root: str | None = run(None, TASKS, "folder with local data of benchmarks", metavar="DIR")
    grace: float | None = run(None, RUNNING,
        "seconds to finish what is in flight after an interrupt (20; 5 under a launcher)", metavar="SECONDS", least=0)
    chunk_size: int | None = run(None, RUNNING, "requests per call of a class plugin (8 x batch size)", least=1)
    prefetch_mb: int = run(512, RUNNING,
        "memory for media, from preparing them until the model has answered, in MiB", least=1)
    score_workers: int | None = run(None, RUNNING,
        "scoring processes (number of cores); 0 scores in the main process", least=0)
    allow_unsafe_code: bool = run(False, RUNNING, "run programs that a model wrote even if no sandbox can confine them")
    judge_model: str | None = run(None, JUDGE,
        "model that judges answers: a name on an OpenAI-compatible server, or PROVIDER:NAME",
        metavar="NAME", variables=("MEGABENCH_OPEN_API_MODEL",))
    judge_base_url: str | None = run(None, JUDGE,
        "address of the judge's server", metavar="URL", variables=("MEGABENCH_OPEN_API_URL",))
    judge_args: Arguments = run("", JUDGE, "further arguments of the judge's back end")
    judge_retries: int = run(2, JUDGE, "how often a reply of the judge that cannot be read is asked again", least=0)
    judge_repeats: int = run(1, JUDGE,
        "how often each question to the judge is asked, to measure its agreement", least=1)
    judge_prompts: str | None = run(None, JUDGE,
        "file with the prompts that benchmarks' authors give their judges, in place of our wording",
        metavar="FILE", variables=("LMMS_EVAL_JUDGE_PROMPTS",), for_tasks=True)
    human_scores: str | None = run(None, JUDGE,
        "file with human scores of some of the answers, to correct the judge's score",
        metavar="FILE", variables=("LMMS_EVAL_HUMAN_SCORES",), for_tasks=True)
    t2i: str | None = option(None, MODEL,
        "model that draws the pictures that answers describe: a name on an images API, or diffusers:PATH",
        metavar="NAME")
    t2i_args: Arguments = option("", MODEL, "arguments of the model that draws")
    baseline_presets: str | None = run(None, STATISTICS,
        "YAML file of names for --baseline: NAME: PLACE or NAME: {TASK: PLACE}",
        metavar="FILE", variables=("LMMS_EVAL_BASELINE_PRESETS",))
    thinking_tags: str | None = run(None, GENERATION,
        "JSON list of further [open, close] pairs around the model's thoughts", form="tags")
    bootstrap_iters: int = run(100_000, STATISTICS,
        "resamplings for bootstrap standard errors; 0: none are computed", least=0)
    nltk_data: str | None = run(None, TASKS,
        "folder with NLTK's data for scoring; `lmms-eval fetch nltk` installs it (NLTK's usual places)",
        metavar="DIR", variables=("NLTK_DATA",), for_tasks=True)
    geocode_table: str | None = run(None, TASKS,
        "JSON file with the coordinates of places, for scoring",
        metavar="FILE", variables=("LMMS_EVAL_GEOCODE_TABLE",), for_tasks=True)
    geocoder: str | None = run(None, TASKS,
        "server for the coordinates of places: nominatim (the public one), or the URL of a compatible one",
        metavar="URL", variables=("LMMS_EVAL_GEOCODER",), for_tasks=True)
    check_batch: int = run(0, RUNNING, "ask this many requests again alone and report answers that differ", least=0)
    processes: int = run(1, RUNNING,
        "processes of this command on this machine, which share documents and num_concurrent", metavar="N", least=1)
    max_restarts: int = run(0, RUNNING,
        "restarts that the launcher is configured to make", variables=("TORCHELASTIC_MAX_RESTARTS",), least=0)
    plugins: str | None = option(None, MODEL,
        "comma list of packages with models and tasks, or of files and folders with models",
        form="names", variables=("LMMS_EVAL_PLUGINS",), repeatable=True)
    datasets_cache: str | None = run(None, TASKS,
        "cache folder of data sets",
        metavar="DIR", variables=("LMMS_EVAL_DATASETS_CACHE", "HF_DATASETS_CACHE", "HF_HOME"))
    media_root: str | None = option(None, MEDIA,
        "further folder to look up media paths",
        metavar="DIR", variables=("LMMS_EVAL_MEDIA_ROOT",), for_tasks=True)
    allow_media: str | None = run(None, MEDIA,
        "comma list of folders, files and addresses that documents from the hub may name; their own folders and the "
        "public network are allowed without it",
        form="names", metavar="PATH|URL,...", variables=("LMMS_EVAL_ALLOW_MEDIA",), for_tasks=True, repeatable=True)
    image_encode_format: str = option("PNG", MEDIA,
        "format of images that must be re-encoded",
        form="image_format", choices=("PNG", "JPEG", "WEBP"), variables=("LMMS_IMAGE_ENCODE_FORMAT",))
    image_jpeg_quality: int = option(85, MEDIA,
        "quality of images encoded as JPEG", variables=("LMMS_IMAGE_JPEG_QUALITY",), least=1, most=100)
    media_workers: int | None = run(None, MEDIA,
        "threads that prepare media (number of cores)", variables=("WORKERS",), least=1)
    ablate: str | None = run(None, TASKS,
        "controls run with each task: no-media, blank-media, shuffled-media, choices-only",
        form="names", metavar="X,...")
    permute_choices: int | None = run(None, TASKS,
        "ask each question with N rotations of its choices", metavar="N", least=2)
    prompt_variants: str | None = run(None, TASKS,
        "YAML file with named changes of the prompt (pre_prompt, post_prompt, system_prompt, option_labels): every "
        "document is asked with each of them too, and the score gets the variance that comes from the prompt",
        form="variants", metavar="FILE")
    repeat_share: float = run(0.0, STATISTICS,
        "ask this share of the documents (at least 20) a second time at the end, to measure how many scores change",
        metavar="SHARE", least=0, most=1)
    reduce: str | None = run(None, STATISTICS,
        "further metrics of the answers to each document, with --repeats: pass@K, pass^K, maj@K, mean@K",
        form="names", metavar="NAME@K,...")
    ids: str | None = option(None, TASKS,
        "only these documents: numbers and ranges, or TASK:1,2;TASK2:5, or a file of them; --limit counts among them",
        form="ids", metavar="FILE|N,N-N")
    where: str | None = option(None, TASKS,
        "only documents whose columns match, such as \"subject == 'Art' and year < 2000\"; --limit counts among them",
        form="expression", metavar="EXPRESSION")
    sample: str | None = run(None, TASKS,
        "a random sample of N documents per task, by the first number of --seed, instead of the first N; N:stratified "
        "draws from each of the task's strata in proportion to its size, N:neyman most where the scores of --anchors "
        "leave most open", form="sample", metavar="N[:stratified|neyman]")
    log_media: bool = run(False, OUTPUT,
        "keep the pictures, frames and sounds that have no file of their own, for reports; --log_samples implies it")
    log_media_mb: float = run(500.0, OUTPUT, "size of all media that a run keeps, in MB", least=0)
    log_media_item_mb: float = run(20.0, OUTPUT,
        "size of one picture, frame, sound or video that a run keeps, in MB", least=0)
    report: bool = run(False, OUTPUT,
        "write the run's report as pages, during the run and at its end; needs --output_path")
    git_commit: str | None = run(None, OUTPUT,
        "commit to record if the code is not in a Git checkout",
        variables=("LMMS_EVAL_GIT_COMMIT", "GIT_COMMIT", "GITHUB_SHA"))
    git_branch: str | None = run(None, OUTPUT,
        "branch to record if the code is not in a Git checkout",
        variables=("LMMS_EVAL_GIT_BRANCH", "GIT_BRANCH", "BRANCH_NAME", "GITHUB_REF_NAME"))
    dry_run: bool | int = run(False, RUNNING,
        "send no requests: report their number, size and price, and what is broken; with N, show N requests",
        form="count_or_switch", metavar="N", optional_value=True, least=1)
    max_model_len: int | None = run(None, RUNNING,
        "context length of the model, with which --dry_run finds long prompts", least=1)
    prices: str | None = run(None, RUNNING,
        "prices of models: a YAML or JSON file, or litellm for the table of that package; the results state the cost",
        metavar="FILE|litellm")
    max_cost: float | None = run(None, RUNNING,
        "money that the run may spend, in the currency of --prices; raise it to resume", least=0)
    trackio_args: Arguments = run("", TRACKERS, "show the run and its results in Trackio: project, name, ...")
    trackio_log_samples: bool = run(False, TRACKERS, "also send samples to Trackio; needs --trackio_args")
    otlp: str | None = run(None, TRACKERS,
        "send a span for the run, each task and each request to this OpenTelemetry collector (OTLP over HTTP)",
        metavar="URL")
    otlp_content: bool = run(False, TRACKERS, "also put the texts of prompts and answers into the spans; needs --otlp")
    published: bool | str | None = run(None, STATISTICS,
        "compare each score with the published ones of the model (on with --recipe); with MODEL, with those of this "
        "model", form="folder_or_switch", metavar="MODEL", optional_value=True)
    recipe: str | None = run(None, GENERATION,
        "what a model's authors evaluate it with: prompts, generation options, limits of media; a name of `lmms-eval "
        "recipes`, or a YAML file, with :VARIANT after it. Over the task's settings, below all other options",
        form="recipe", metavar="NAME[:VARIANT]|FILE")
    recipe_partial: bool = run(False, GENERATION,
        "run even if the model cannot do all that the recipe states, or the recipe does not cover a task; the results "
        "list what is missing")
    pack_first: bool = run(False, TASKS, "if a pack and this package share a name, take the pack's (lmms-eval packs)")
    # fmt: on

    def names(self, name: str) -> tuple[str, ...]:
        """Return the parts of an option that is a comma list, in order."""
        return comma_list(getattr(self, name))

    def arguments(self, name: str) -> dict[str, Any]:
        """Return an option of the form ``k=v,k=v`` as a mapping. Texts that are JSON are decoded in ``gen_kwargs``."""
        from lmms_eval.config.convert import argument_mapping, decoded

        found = argument_mapping(getattr(self, name), name)
        return {key: decoded(value) for key, value in found.items()} if name == "gen_kwargs" else found

    def tag_pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return the pairs of ``reasoning_tags`` or ``thinking_tags``; empty if switched off."""
        from lmms_eval.config.convert import tag_pairs

        return tag_pairs(getattr(self, name) or "", name)

    @property
    def include_paths(self) -> tuple[str, ...]:
        return (self.include_path,) if isinstance(self.include_path, str) else self.include_path or ()

    @property
    def keeps_media(self) -> bool:
        """Whether the run keeps media that have no file of their own."""
        return (self.log_media or self.log_samples) and not self.no_media

    def grace_seconds(self, under_launcher: bool = False) -> float:
        """Return the seconds that an interrupted run has to finish its requests in flight."""
        return self.grace if self.grace is not None else (5.0 if under_launcher else 20.0)

    def for_tasks(self) -> dict[str, str]:
        """Return the given options that tasks may ask for, files as absolute paths."""
        given = {one: str(value) for one in options() if one.for_tasks and (value := getattr(self, one.name))}
        return {
            one.name: os.path.abspath(os.path.expanduser(text)) if one.metavar == "FILE" else text
            for one, text in given.items()
        }


def _declared(name: str, default: Any, details: Mapping[str, Any]) -> Option:
    kind = RunConfig.__annotations__[name]
    members = get_args(kind)
    derived: dict[str, Any] = {}
    if dict[str, Any] in members:
        derived = {"form": "arguments", "metavar": "K=V,..."}
    elif choices := [text for member in (kind, *members) for text in get_args(member) if isinstance(text, str)]:
        derived = {"choices": tuple(choices)}
    return Option(name, default, kind, **derived, **details)


_OPTIONS = tuple(map(_declared, RunConfig.__struct_fields__, RunConfig.__struct_defaults__, _DETAILS))
_TABLE = {one.name: one for one in _OPTIONS}


def options() -> tuple[Option, ...]:
    """Return all options, in the order of the results."""
    return _OPTIONS


def option_table() -> dict[str, Option]:
    """Return all options by name, in order."""
    return _TABLE


WITHOUT_EFFECT: Mapping[str, str] = {
    "LMMS_LOCAL_CACHE": "nothing is copied from a local scratch folder: answers are written where they stay; "
    "--use_cache names the folder of the response cache",
    "LMMS_CACHE_RUN_ID": "an interrupted run is found again by its content, in --output_path",
    "LMMS_CACHE_CHECKPOINT_INTERVAL": "every answer is written as it comes",
    "LM_HARNESS_CACHE_PATH": "requests are built anew by every run; there is no cache of them",
    "LMMS_IMAGE_PATH_CACHE_MAX_ITEMS": "encoded pictures are kept by their size in memory, not by their number",
    "LMMS_VIDEO_DECODE_BACKEND": "videos are always decoded by this package, with PyAV",
    "LMMS_VIDEO_DECORD_THREADS": "videos are decoded with PyAV; --media_workers sets how many at a time",
    "LMMS_VIDEO_TORCHCODEC_*": "videos are decoded with PyAV; --media_workers sets how many at a time",
    "LMMS_VIDEO_DALI_*": "videos are decoded with PyAV, on the processor; --media_workers sets how many at a time",
    "LMMS_WATCHDOG_DIR": "requests that hang are reported in the log and in the run's own folder (hung.jsonl)",
}
"""Patterns of known environment variables that have no effect in this package, with the reasons."""


class EnvironmentDefault(NamedTuple):
    """Default of an option that an environment variable sets."""

    variable: str
    text: str


def environment_defaults(environ: Mapping[str, str]) -> dict[str, EnvironmentDefault]:
    """Return defaults by option name. The first of an option's variables that is set and not empty counts."""
    found: dict[str, EnvironmentDefault] = {}
    for option in options():
        for variable in reversed(option.variables):
            if text := environ.get(variable, "").strip():
                folder = os.path.join(text, "datasets") if variable == "HF_HOME" else text
                found[option.name] = EnvironmentDefault(variable, folder)
    return found


def variables_without_effect(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each known variable that is set but has no effect."""
    from fnmatch import fnmatchcase

    return [
        f"the environment variable {name} has no effect here: {reason}"
        for name in sorted(environ)
        for pattern, reason in WITHOUT_EFFECT.items()
        if fnmatchcase(name, pattern) and environ[name].strip()
    ]
