"""What the rules of ``build`` do not guess, by architecture."""

PROCESSORS = {
    "fast_vlm": "LlavaProcessor", "glm_ocr": "Glm46VProcessor", "glmga": "Glm46VProcessor",
    "kosmos-2": "Kosmos2Processor", "kosmos-2.5": "Kosmos2_5Processor", "cosmos3_omni": "Qwen3VLProcessor",
    "qwen2_5_omni_thinker": "Qwen2_5OmniProcessor", "qwen3_omni_moe_thinker": "Qwen3OmniMoeProcessor",
}  # fmt: skip
"""From an architecture without an entry in transformers' own mapping to its processor."""
MROPE = {"text_config": {"rope_parameters": {"mrope_section": [2, 1, 1]}}}
"""Architectures whose default configuration leaves the sections of rotary positions to the model's code."""
CONFIG = {
    **{name: MROPE for name in ("qwen2_vl", "qwen2_5_vl", "qwen2_5_omni_thinker", "glm4v", "glm46v", "glmga", "glm_ocr",
                                "paddleocr_vl", "exaone4_5")},
    "gemma3": {"mm_tokens_per_image": 4},
    "shieldgemma2": {"mm_tokens_per_image": 4},
    "t5gemma2": {"encoder": {"mm_tokens_per_image": 4}},
    "got_ocr2": {"vision_config": {"image_size": 512}},
}  # fmt: skip
"""What replaces values of the small configuration."""
IMAGES = {
    "got_ocr2": {"image": {"size": {"height": 512, "width": 512}}},
    "paligemma": {"image": {"image_seq_length": 16}},
    "llava_onevision": {"processor": {"num_image_tokens": 16}},
    "mistral3": {"processor": {"spatial_merge_size": 2}},
}
"""Settings of the image processor (``image``) and of the processor (``processor``)."""
