"""Names of models and tasks in other harnesses, for messages about unknown names (``docs/coming_from.md``)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class OtherName(Struct, frozen=True):
    """The name here of another harness's model or task."""

    name: str
    """The name here."""
    harness: str
    arguments: str = ""
    """Arguments of the model (``--model_args``) that mean the same."""

    def words(self) -> str:
        """Return the words of a message: ``did you mean mmbench_en_dev? (VLMEvalKit's name)``."""
        how = f" --model_args {self.arguments}" if self.arguments else ""
        return f"did you mean {self.name}{how}? ({self.harness}'s name)"


_SERVED = "base_url=URL,model=M"
_COMPLETIONS = "model=M,api=completions"
_LM_EVAL: Mapping[str, tuple[str, str]] = {
    "local-chat-completions": ("openai", _SERVED),
    "local-completions": ("openai", f"{_SERVED},api=completions,tokenizer=T"),
    "openai-chat-completions": ("openai", "model=M"),
    "openai-completions": ("openai", _COMPLETIONS),
    "anthropic-chat": ("anthropic", "model=M"),
    "anthropic-chat-completions": ("anthropic", "model=M"),
    "hf-auto": ("hf_text", "pretrained=M"),
    "huggingface": ("hf_text", "pretrained=M"),
    "hf-multimodal": ("hf", "pretrained=M"),
    "vllm-vlm": ("vllm", "pretrained=M"),
}
_INSPECT: Mapping[str, tuple[str, str]] = {
    "anthropic": ("anthropic", "model={}"),
    "google": ("gemini", "model={}"),
    "hf": ("hf", "pretrained={}"),
    "openai": ("openai", "model={}"),
    "openai-api": ("openai", "base_url=URL,model={}"),
    "sglang": ("sglang", "pretrained={}"),
    "vllm": ("vllm", "pretrained={}"),
}
"""Its names are ``PROVIDER/MODEL``."""
_VLMEVALKIT: Mapping[str, str] = {
    "ai2d_test": "ai2d",
    "blink": "blink",
    "chartqa_test": "chartqa",
    "docvqa_test": "docvqa_test",
    "docvqa_val": "docvqa_val",
    "gqa_testdev_balanced": "gqa",
    "hallusionbench": "hallusion_bench_image",
    "infovqa_test": "infovqa_test",
    "infovqa_val": "infovqa_val",
    "llavabench": "llava_in_the_wild",
    "mathverse_mini": "mathverse_testmini",
    "mathvision": "mathvision_test",
    "mathvision_mini": "mathvision_testmini",
    "mathvista_mini": "mathvista_testmini",
    "mmbench_cc": "mmbench_cn_cc",
    "mmbench_dev_cn": "mmbench_cn_dev",
    "mmbench_dev_en": "mmbench_en_dev",
    "mmbench_test_cn": "mmbench_cn_test",
    "mmbench_test_en": "mmbench_en_test",
    "mmmu_dev_val": "mmmu_val",
    "mmmu_pro_10c": "mmmu_pro_standard",
    "mmmu_pro_v": "mmmu_pro_vision",
    "mmmu_test": "mmmu_test",
    "mmstar": "mmstar",
    "mmvet": "mmvet",
    "muirbench": "muirbench",
    "ocrbench": "ocrbench",
    "pope": "pope",
    "realworldqa": "realworldqa",
    "scienceqa_test": "scienceqa_img",
    "textvqa_val": "textvqa_val",
    "video-mme": "videomme",
}
"""Its names in lower case, since letters of both cases are common."""


def model_elsewhere(name: str) -> OtherName | None:
    """Return what the model name of another harness is called here; ``None`` if it is not one of theirs."""
    if found := _LM_EVAL.get(name):
        return OtherName(found[0], "lm-eval", found[1])
    provider, mark, model = name.partition("/")
    if mark and model and (found := _INSPECT.get(provider)):
        return OtherName(found[0], "inspect_ai", found[1].format(model))
    return None


def task_elsewhere(name: str) -> OtherName | None:
    """Return what the task name of another harness is called here; ``None`` if it is not one of theirs."""
    found = _VLMEVALKIT.get(name.lower())
    return OtherName(found, "VLMEvalKit") if found else None
