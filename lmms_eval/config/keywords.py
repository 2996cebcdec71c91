"""The arguments of ``simple_evaluate`` with their types, for type checkers and editors.

``make keywords`` writes this file from the declaration of the options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from lmms_eval.api.task import Task


class EvaluateArguments(TypedDict, total=False):
    """The options of ``RunConfig`` except ``model``, and further arguments; ``None`` means the default."""

    config: str | None
    tasks: str | Sequence[Any] | Task | Mapping[str, Any] | None
    model_args: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    launcher_args: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    num_fewshot: int | None
    batch_size: int | str | None
    max_batch_size: int | None
    device: str | None
    output_path: str | None
    limit: float | None
    offset: int | None
    use_cache: str | None
    cache_requests: Literal["true", "refresh", "delete"] | bool | None
    check_integrity: bool | None
    write_out: bool | None
    log_samples: bool | None
    wandb_log_samples: bool | None
    swanlab_log_samples: bool | None
    log_samples_suffix: str | None
    system_instruction: str | None
    apply_chat_template: bool | None
    fewshot_as_multiturn: bool | None
    show_config: bool | None
    include_path: str | Sequence[str] | None
    gen_kwargs: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    reasoning_tags: str | Sequence[Sequence[str]] | bool | None
    verbosity: str | None
    wandb_args: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    swanlab_args: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    timezone: str | None
    hf_hub_log_args: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    predict_only: bool | None
    seed: int | str | Sequence[int | None] | None
    trust_remote_code: bool | None
    process_with_media: bool | None
    agentic_trace_mode: Literal["basic", "full"] | None
    force_simple: bool | None
    tui: bool | None
    repeats: int | None
    baseline: str | None
    max_tokens: int | None
    power_analysis: bool | None
    effect_size: float | None
    alpha: float | None
    power: float | None
    correlation: float | None
    std_a: float | None
    std_b: float | None
    no_media: bool | None
    error_budget: float | None
    judge_error_budget: float | None
    truncation_budget: str | float | None
    retry_truncated: int | str | None
    order: Literal["cost", "random"] | None
    until: str | Sequence[str] | None
    anchors: str | Sequence[str] | None
    allow_ignored: bool | None
    allow_blank: bool | None
    resume: bool | str | None
    task_kwargs: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    data_root: str | None
    grace: float | None
    chunk_size: int | None
    prefetch_mb: int | None
    score_workers: int | None
    allow_unsafe_code: bool | None
    judge_model: str | None
    judge_base_url: str | None
    judge_args: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    judge_retries: int | None
    judge_repeats: int | None
    judge_prompts: str | None
    human_scores: str | None
    t2i: str | None
    t2i_args: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    baseline_presets: str | None
    thinking_tags: str | Sequence[Sequence[str]] | bool | None
    bootstrap_iters: int | None
    nltk_data: str | None
    geocode_table: str | None
    geocoder: str | None
    check_batch: int | None
    processes: int | None
    max_restarts: int | None
    plugins: str | Sequence[str] | None
    datasets_cache: str | None
    media_root: str | None
    allow_media: str | Sequence[str] | None
    image_encode_format: str | None
    image_jpeg_quality: int | None
    media_workers: int | None
    ablate: str | Sequence[str] | None
    permute_choices: int | None
    prompt_variants: str | Sequence[Mapping[str, Any]] | Mapping[str, Any] | None
    repeat_share: float | None
    reduce: str | Sequence[str] | None
    ids: int | str | Sequence[int] | None
    where: str | None
    sample: str | int | None
    log_media: bool | None
    log_media_mb: float | None
    log_media_item_mb: float | None
    report: bool | None
    git_commit: str | None
    git_branch: str | None
    dry_run: bool | int | str | None
    max_model_len: int | None
    prices: str | None
    max_cost: float | None
    trackio_args: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    trackio_log_samples: bool | None
    otlp: str | None
    otlp_content: bool | None
    published: bool | str | None
    recipe: str | None
    recipe_partial: bool | None
    pack_first: bool | None
    random_seed: int | None
    numpy_random_seed: int | None
    torch_random_seed: int | None
    fewshot_random_seed: int | None
    cli_args: Any
    datetime_str: str | None
    delete_requests_cache: bool | None
    distributed_executor_backend: str | None
    evaluation_tracker: Any
    rewrite_requests_cache: bool | None
