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
    "got_ocr2": {"vision_config": {
        "image_size": 128, "patch_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1, "global_attn_indexes": [],
    }},
    "aria": {
        "projector_patch_to_query_dict": {"49": 4}, "max_value_projector_patch_to_query_dict": 4,
        "vision_config": {"image_size": 490, "patch_size": 70},
    },
    "cohere_compass": {"text_config": {"rope_parameters": {
        name: {"rope_type": "default", "rope_theta": 1e4} for name in ("full_attention", "sliding_attention")
    }}},
    "molmo2": {"adapter_config": {"vision_feature_layer": [1, 0]}},
    "vipllava": {"vision_feature_layers": [-1, -2]},
    "llama4": {"vision_config": {"intermediate_size": 128}},
    "mllama": {"vision_config": {"vision_output_dim": 64}},
    "florence2": {"vision_config": {
        "embed_dim": [8, 16, 32, 32], "num_heads": [1, 2, 2, 2], "num_groups": [1, 2, 2, 2], "depths": [1, 1, 1, 1],
        "patch_size": [7, 3, 3, 3],
    }},
}  # fmt: skip
"""What replaces values of the small configuration."""
GLM = {"names": {"torchvision": "Glm46VImageProcessor"}, "video": "Glm46VVideoProcessor"}
OMNI = {
    "names": {"torchvision": "Qwen2VLImageProcessor"}, "video": "Qwen2VLVideoProcessor",
    "sound": "WhisperFeatureExtractor",
}  # fmt: skip
IMAGES = {
    "got_ocr2": {"image": {"size": {"height": 128, "width": 128}}},
    "paligemma": {"image": {"image_seq_length": 16}},
    "llava_onevision": {"processor": {"num_image_tokens": 16}},
    "mistral3": {"processor": {"spatial_merge_size": 2}},
    "gemma3": {"processor": {"image_seq_length": 4}},
    "shieldgemma2": {"processor": {"image_seq_length": 4}},
    "t5gemma2": {"processor": {"image_seq_length": 4}},
    "aria": {"image": {"max_image_size": 490, "min_image_size": 336}, "processor": {"size_conversion": {490: 4}}},
    "aya_vision": {"processor": {"img_size": 32, "downsample_factor": 2}},
    "cohere2_vision": {"image": {"patch_size": 2}},
    "deepseek_vl_hybrid": {"image": {"high_res_size": {"height": 32, "width": 32}}},
    "glm4v_moe": {"names": {"torchvision": "Glm4vImageProcessor"}, "video": "Glm4vVideoProcessor"},
    "glm_ocr": GLM,
    "diffusion_gemma": {"sound": "Gemma4AudioFeatureExtractor"},
    "nemotron_h_omni": {"sound": "ParakeetFeatureExtractor"},
    "lfm2_vl": {"image": {"encoder_patch_size": 8}},
    "kosmos-2.5": {"image": {"max_patches": 64}},
    "video_llava": {"image": {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}},
    "qwen3_vl_moe": {"names": {"torchvision": "Qwen2VLImageProcessor"}, "video": "Qwen3VLVideoProcessor"},
    "qwen2_5_omni_thinker": OMNI,
    "qwen3_omni_moe_thinker": OMNI,
    "glm5_next": GLM,
}
"""Settings of the image processor (``image``) and of the processor (``processor``); classes that transformers does not
map (``names``, ``video``, ``sound``)."""
TOKENS = {
    "ovis2": {"named": {"image_token": "<IMG_ATOM>"}, "more": ("<IMG_ATOM>",)},
    "minimax_m3_vl": {"more": ("]<]image[>[", "]<]video[>[", "]<]start of image[>[", "]<]end of image[>[")},
    "qianfan_ocr": {"more": ("<image>",), "mark": "<image>"},
    "aya_vision": {"named": {"image_token": "<|IMG_PATCH|>"}},
    "fuyu": {"more": ("|SPEAKER|", "|NEWLINE|", "<0x00>", "<0x01>", "<0x02>", "<0x03>", "<0x04>")},
}
"""Special tokens beyond those that the processor's source names (``more``), what the configuration calls them
(``named``), and what the template writes for a picture (``mark``)."""
