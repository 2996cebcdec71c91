"""A model plugin that uses every helper of ``model_utils`` at the family's path, run to a score."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms
from lmms_eval.evaluation.run import run
from lmms_eval.models.model_utils.audio_processing import split_audio
from lmms_eval.models.model_utils.concurrency_control import (
    AdaptiveConcurrencyConfig,
    AdaptiveConcurrencyDecision,
    compute_p95,
    decide_next_concurrency,
    extract_text_prefix_from_chat_messages,
    is_rate_limit_error,
    make_prefix_hash,
    parse_bool,
)
from lmms_eval.models.model_utils.gen_metrics import GenMetrics, log_metrics
from lmms_eval.models.model_utils.load_video import load_video_decord, read_video, read_video_pyav
from lmms_eval.models.model_utils.media_encoder import (
    encode_image_to_base64,
    encode_image_to_base64_with_size_limit,
    encode_image_to_bytes,
    encode_image_to_data_url,
)
from lmms_eval.models.model_utils.progress import SlurmProgress, make_progress
from lmms_eval.models.model_utils.reasoning_model_utils import parse_reasoning_model_answer
from lmms_eval.models.model_utils.usage_metrics import (
    get_running_totals,
    is_budget_exceeded,
    log_usage,
    reset_usage_metrics,
    set_budget,
    set_task_context,
    summarize_usage_metrics,
)
from lmms_eval.models.registry_v2 import ModelManifest, ModelRegistry, ResolvedModel
from lmms_eval.utils import Collator, eval_logger
from tests.evaluation.kit import DOCUMENTS, NAME, config
from tests.media.draw import picture, write_video


class Helped(lmms):
    """Answers rightly, by way of the helpers."""

    def __init__(self, clip: Path) -> None:
        super().__init__()
        self.clip, self.config = clip, AdaptiveConcurrencyConfig.from_raw(1, "4", 15, 0.1, 0.7, 0.05)
        assert ModelManifest("helped", simple_class_path="helped.Helped").kind == "simple"
        assert all(isinstance(each, type) for each in (ModelRegistry, ResolvedModel))
        reset_usage_metrics()
        set_budget(max_tokens=None if parse_bool("no") else 10**9)

    def generate_until(self, requests: list[Instance]) -> list[str]:
        collator = Collator([request.args for request in requests], lambda args: make_prefix_hash(args[0]))
        answers: list[str] = []
        with make_progress(len(requests), desc="Helped") as bar:
            assert isinstance(bar, SlurmProgress)
            for ((context, _, _, _, task, _),) in collator.get_batched(n=1):
                set_task_context(task)
                with GenMetrics() as timed:
                    answers.append(self._answer(context))
                    timed.log_metric(answers[-1])
                log_usage(model_name="helped", input_tokens=len(context), output_tokens=1)
                bar.update(1)
        log_metrics(total_elapsed_time=1.0, total_gen_tokens=len(answers), avg_speed=float(len(answers)))
        eval_logger.debug(f"usage: {summarize_usage_metrics()}, exceeded: {is_budget_exceeded()}")
        assert get_running_totals()["n_api_calls"] >= len(requests) and bar.n == len(requests)
        return list(collator.get_original(answers))

    def _answer(self, context: str) -> str:
        messages = [{"role": "user", "content": [{"type": "text", "text": context}]}]
        question = extract_text_prefix_from_chat_messages(messages, 10**6)
        return parse_reasoning_model_answer(f"<think>hm</think><answer>{question.partition('ANSWER=')[2]}</answer>")

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError("no likelihoods")

    def generate_until_multi_round(self, requests: list[Instance]) -> list[list[str]]:
        raise NotImplementedError("no rounds")

    def use_media_and_limits(self) -> None:
        frames = [read(str(self.clip), 3) for read in (read_video, read_video_pyav, load_video_decord)]
        assert all(np.array_equal(each, frames[0]) for each in frames)
        image = picture()
        encoded = encode_image_to_base64(image)
        assert encode_image_to_data_url(image).endswith(encoded) and encode_image_to_bytes(image)
        assert encode_image_to_base64_with_size_limit(image, max_size_bytes=10**6)
        assert [len(piece) for piece in split_audio(np.zeros(5), 2)] == [2, 2, 1]
        decision = decide_next_concurrency(
            current_concurrency=2, total_requests=4, failed_requests=0,
            rate_limited_requests=int(is_rate_limit_error("429")), latencies=[compute_p95([0.1])], config=self.config,
        )  # fmt: skip
        assert isinstance(decision, AdaptiveConcurrencyDecision) and decision.should_reduce


def test_a_plugin_of_helpers_is_run_to_a_score(tmp_path: Path) -> None:
    plugin = Helped(write_video(tmp_path / "clip.mp4", 12, fps=6))
    plugin.use_media_and_limits()
    report = run(config(tmp_path, model="helped"), plugin)
    assert report.exit_code == 0
    assert report.results["results"][NAME]["exact_match,none"] == 1.0
    assert get_running_totals()["n_api_calls"] == DOCUMENTS
    assert report.results["usage"]["total"]["n_api_calls"] == DOCUMENTS
    assert report.results["throughput"]["total_gen_tokens"] > 0
    reset_usage_metrics()
