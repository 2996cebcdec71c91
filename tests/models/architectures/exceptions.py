"""What the rules of ``build`` do not guess, by architecture."""

PROCESSORS = {
    "fast_vlm": "LlavaProcessor", "glm_ocr": "Glm46VProcessor", "glmga": "Glm46VProcessor", "kosmos-2": "Kosmos2Processor",
    "kosmos-2.5": "Kosmos2_5Processor", "qwen2_5_omni_thinker": "Qwen2_5OmniProcessor", "cosmos3_omni": "Qwen3VLProcessor",
    "qwen3_omni_moe_thinker": "Qwen3OmniMoeProcessor",
}  # fmt: skip
CONFIG = {}
IMAGES = {}
