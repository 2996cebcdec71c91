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
        "projector_patch_to_query_dict": {"196": 4}, "max_value_projector_patch_to_query_dict": 4,
        "vision_config": {"image_size": 980, "patch_size": 70},
    },
    "fuyu": {"patch_size": 30, "image_size": 60},
    "instructblip": {"num_query_tokens": 4, "text_config": {"word_embed_proj_dim": 32}},
    "perception_lm": {
        "vision_config": {
            "model_type": "timm_wrapper", "architecture": "vit_pe_lang_large_patch14_448.fb",
            "model_args": {
                "embed_dim": 32, "depth": 2, "num_heads": 4, "patch_size": 8, "img_size": [32, 32],
                "ref_feat_shape": [4, 4], "global_pool": "", "use_post_transformer_norm": False,
            },
        },
        "text_config": {
            "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 400, "max_position_embeddings": 4096,
        },
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
    "sound": "WhisperFeatureExtractor", "sound_settings": {"feature_size": 128},
}  # fmt: skip
IMAGES = {
    "got_ocr2": {"image": {"size": {"height": 128, "width": 128}}},
    "paligemma": {"image": {"image_seq_length": 16}},
    "llava_onevision": {"processor": {"num_image_tokens": 16}},
    "mistral3": {"processor": {"spatial_merge_size": 2}},
    "gemma3": {"processor": {"image_seq_length": 4}},
    "shieldgemma2": {"processor": {"image_seq_length": 4}},
    "t5gemma2": {"processor": {"image_seq_length": 4}},
    "aria": {"processor": {"size_conversion": {980: 4}}},
    "fuyu": {"image": {"size": {"height": 60, "width": 60}, "patch_size": {"height": 30, "width": 30}}},
    "instructblip": {"processor": {"num_query_tokens": 4}},
    "perception_lm": {
        "image": {"tile_size": 32, "max_num_tiles": 4},
        "processor": {"patch_size": 8, "pooling_ratio": 1},
    },
    "aya_vision": {"processor": {"img_size": 32, "downsample_factor": 2}},
    "cohere2_vision": {"image": {"patch_size": 2}},
    "deepseek_vl_hybrid": {"image": {"high_res_size": {"height": 32, "width": 32}}},
    "glm4v_moe": {"names": {"torchvision": "Glm4vImageProcessor"}, "video": "Glm4vVideoProcessor"},
    "glm_ocr": GLM,
    "diffusion_gemma": {"sound": "Gemma4AudioFeatureExtractor"},
    "nemotron_h_omni": {"sound": "ParakeetFeatureExtractor"},
    "lfm2_vl": {"image": {"encoder_patch_size": 8}},
    "kosmos-2.5": {"image": {"max_patches": 64}},
    "video_llava": {
        "image": {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}},
        "processor": {"vision_feature_select_strategy": "default"},
    },
    "qwen3_vl_moe": {"names": {"torchvision": "Qwen2VLImageProcessor"}, "video": "Qwen3VLVideoProcessor"},
    "qwen2_5_omni_thinker": OMNI,
    "qwen3_omni_moe_thinker": OMNI,
    "glm5_next": GLM,
}
"""Settings of the image processor (``image``) and of the processor (``processor``); classes that transformers does not
map (``names``, ``video``, ``sound``, with ``sound_settings``)."""
MORE_IDS = {name: ("vision_start_token_id",) for name in ("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker")}
"""Tokens that published configurations name, and the class of the configuration does not."""
UNNAMED = {"instructblip": ("image_token",)}
"""Attributes that the processor's source asks a tokenizer for, and that published tokenizers lack."""
WORDS = {"fuyu": ("|SPEAKER|", "|NEWLINE|")}
"""Tokens of tokenizers that put a blank before every text, before these too."""
TOKENS = {
    "instructblip": {"named": {"image_token": "<image>"}},
    "llama4": {"named": {"image_token": "<|patch|>"}},
    "ovis2": {"named": {"image_token": "<IMG_ATOM>"}, "more": ("<IMG_ATOM>",)},
    "minimax_m3_vl": {"more": ("]<]image[>[", "]<]video[>[", "]<]start of image[>[", "]<]end of image[>[")},
    "qianfan_ocr": {"more": ("<image>",), "mark": "<image>"},
    "aya_vision": {"named": {"image_token": "<|IMG_PATCH|>"}},
    "fuyu": {"more": (*WORDS["fuyu"], "<0x00>", "<0x01>", "<0x02>", "<0x03>", "<0x04>")},
}
"""Special tokens beyond those that the processor's source names (``more``), what the configuration calls them
(``named``), and what the template writes for a picture (``mark``)."""
