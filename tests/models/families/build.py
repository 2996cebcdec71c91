"""Model folders of the smallest size with random weights, one for each family: all parts from code."""

import json
from dataclasses import dataclass

import torch

from examples import build_tiny_model as tiny

BOI, EOI, SOFT = "<start_of_image>", "<end_of_image>", "<image_soft_token>"
CONTEXT, START, END, VIDEO = "<IMG_CONTEXT>", "<img>", "</img>", "<video>"
AUDIO, AUDIO_BOS, AUDIO_EOS = "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"
PHI_IMAGE, PHI_AUDIO = "<|image|>", "<|audio|>"
QWEN = (tiny.VISION_START, tiny.VISION_END, tiny.IMAGE_PAD, tiny.VIDEO_PAD)
QWEN_PLACE = tiny.VISION_START + tiny.IMAGE_PAD + tiny.VISION_END
WHISPER = (
    "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>",
    "<|nospeech|>", "<|notimestamps|>",
)  # fmt: skip
MAX_TARGET = 64


@dataclass(frozen=True)
class Parts:
    """Tokenizer settings of one family."""

    special: tuple[str, ...] = ()
    image: str = ""
    audio: str = ""
    named: tuple[tuple[str, str], ...] = ()
    """Attributes of the tokenizer that hold a special token."""


def tokenizer_of(parts):
    plan = tiny._Architecture(parts.special, parts.image, None, {}, {})
    made = tiny._build_tokenizer(plan)
    for name, token in parts.named:
        made._set_model_specific_special_tokens({name: token})
    sound = f"{{% elif part['type'] == 'audio' %}}{parts.audio}{{% elif part['type'] == 'text' %}}"
    made.chat_template = made.chat_template.replace("{% elif part['type'] == 'text' %}", sound)
    return made


def save(folder, parts, make, files, seed=0):
    """Write tokenizer, weights and the processor's files; ``make(tokenizer)`` gives the model."""
    tokenizer = tokenizer_of(parts)
    model = tiny._randomised(lambda: make(tokenizer), tokenizer, seed)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def image_files(processor, settings, **more):
    return {
        "preprocessor_config.json": {"processor_class": processor, **settings},
        "processor_config.json": {"processor_class": processor, **more},
    }


def text_of(tokenizer, **more):
    return {**tiny._text_options(tokenizer), "tie_word_embeddings": False, **more}


QWEN_IMAGES = {
    "image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 32 * 32, "max_pixels": 64 * 64, "patch_size": 8,
    "temporal_patch_size": 2, "merge_size": 2,
}  # fmt: skip


def qwen2_vl(folder):
    return tiny.build_tiny_vlm(folder, architecture="qwen2_vl")


def idefics3(folder):
    return tiny.build_tiny_vlm(folder, architecture="idefics3")


def llava_hf(folder):
    return tiny.build_tiny_vlm(folder, architecture="llava")


def _qwen_ids(tokenizer):
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    return dict(zip(names, (tokenizer.convert_tokens_to_ids(token) for token in QWEN), strict=True))


def qwen2_5_vl(folder):
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    def make(tokenizer):
        vision = {
            "depth": 2, "hidden_size": 16, "intermediate_size": 32, "num_heads": 2, "patch_size": 8, "window_size": 32,
            "out_hidden_size": 32, "fullatt_block_indexes": [1],
        }  # fmt: skip
        text = text_of(tokenizer, rope_scaling={"type": "mrope", "mrope_section": [2, 1, 1]})
        return Qwen2_5_VLForConditionalGeneration(
            Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **_qwen_ids(tokenizer))
        )

    return save(folder, Parts(QWEN, QWEN_PLACE), make, image_files("Qwen2_5_VLProcessor", QWEN_IMAGES))


def qwen3_vl(folder):
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    def make(tokenizer):
        vision = {
            "depth": 2, "hidden_size": 16, "intermediate_size": 32, "num_heads": 2, "patch_size": 8,
            "out_hidden_size": 32, "num_position_embeddings": 64, "deepstack_visual_indexes": [0],
        }  # fmt: skip
        rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1], "mrope_interleaved": True}
        text = text_of(tokenizer, head_dim=8, rope_parameters=rope)
        return Qwen3VLForConditionalGeneration(
            Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **_qwen_ids(tokenizer))
        )

    return save(folder, Parts(QWEN, QWEN_PLACE), make, image_files("Qwen3VLProcessor", QWEN_IMAGES))


def llava_onevision(folder):
    from transformers import LlavaOnevisionConfig, LlavaOnevisionForConditionalGeneration

    grid = [[32, 32], [32, 64], [64, 32], [64, 64]]

    def make(tokenizer):
        return LlavaOnevisionForConditionalGeneration(
            LlavaOnevisionConfig(
                text_config={"model_type": "qwen2", **text_of(tokenizer)},
                vision_config={
                    "model_type": "siglip_vision_model",
                    "vision_use_head": False,
                    **tiny._vision_options(32),
                },
                image_token_index=tokenizer.convert_tokens_to_ids(tiny.IMAGE),
                video_token_index=tokenizer.convert_tokens_to_ids(VIDEO),
                image_grid_pinpoints=grid,
                vision_aspect_ratio="anyres_max_4",
                tie_word_embeddings=False,
            )
        )

    settings = {
        "image_processor_type": "LlavaOnevisionImageProcessor", "size": {"height": 32, "width": 32},
        "image_grid_pinpoints": grid,
    }  # fmt: skip
    files = image_files(
        "LlavaOnevisionProcessor", settings, num_image_tokens=16, vision_feature_select_strategy="full",
        image_token=tiny.IMAGE, video_token=VIDEO, vision_aspect_ratio="anyres_max_4",
    )  # fmt: skip
    return save(folder, Parts((tiny.IMAGE, VIDEO), tiny.IMAGE), make, files)


def internvl_hf(folder):
    from transformers import InternVLConfig, InternVLForConditionalGeneration

    def make(tokenizer):
        vision = {**tiny._vision_options(32), "image_size": [32, 32], "patch_size": [8, 8]}
        return InternVLForConditionalGeneration(
            InternVLConfig(
                text_config={"model_type": "qwen2", **text_of(tokenizer)},
                vision_config=vision,
                image_token_id=tokenizer.convert_tokens_to_ids(CONTEXT),
                image_seq_length=4,
                tie_word_embeddings=False,
            )
        )

    settings = {
        "image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 32, "width": 32}, "crop_to_patches": True,
        "min_patches": 1, "max_patches": 4,
    }  # fmt: skip
    named = (("start_image_token", START), ("end_image_token", END), ("context_image_token", CONTEXT),
             ("video_token", VIDEO))  # fmt: skip
    parts = Parts((START, END, CONTEXT, VIDEO), CONTEXT, named=named)
    return save(folder, parts, make, image_files("InternVLProcessor", settings, image_seq_length=4))


def smolvlm(folder):
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration

    special = (tiny.FAKE_IMAGE, tiny.IMAGE, tiny.GLOBAL_IMAGE)

    def make(tokenizer):
        return SmolVLMForConditionalGeneration(
            SmolVLMConfig(
                text_config={"model_type": "llama", **text_of(tokenizer)},
                vision_config=tiny._vision_options(32),
                image_token_id=tokenizer.convert_tokens_to_ids(tiny.IMAGE),
                scale_factor=2,
                pad_token_id=tokenizer.pad_token_id,
                tie_word_embeddings=False,
            )
        )

    settings = {
        "image_processor_type": "SmolVLMImageProcessor", "size": {"longest_edge": 64},
        "max_image_size": {"longest_edge": 32}, "do_image_splitting": True,
    }  # fmt: skip
    named = (("image_token", tiny.IMAGE), ("fake_image_token", tiny.FAKE_IMAGE),
             ("global_image_token", tiny.GLOBAL_IMAGE), ("end_of_utterance_token", tiny.EOS))  # fmt: skip
    files = image_files("SmolVLMProcessor", settings, image_seq_len=4)
    return save(folder, Parts(special, tiny.IMAGE, named=named), make, files)


def gemma3(folder):
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration

    def make(tokenizer):
        token = tokenizer.convert_tokens_to_ids
        return Gemma3ForConditionalGeneration(
            Gemma3Config(
                text_config=text_of(tokenizer, head_dim=8, sliding_window=64, query_pre_attn_scalar=8),
                vision_config={"vision_use_head": False, **tiny._vision_options(32)},
                mm_tokens_per_image=4,
                boi_token_index=token(BOI),
                eoi_token_index=token(EOI),
                image_token_index=token(SOFT),
                tie_word_embeddings=False,
            )
        )

    settings = {"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 32, "width": 32}}
    named = (("boi_token", BOI), ("eoi_token", EOI), ("image_token", SOFT))
    files = image_files("Gemma3Processor", settings, image_seq_length=4)
    return save(folder, Parts((BOI, EOI, SOFT), BOI, named=named), make, files)


def phi4_multimodal(folder):
    from transformers import Phi4MultimodalConfig, Phi4MultimodalForCausalLM

    def make(tokenizer):
        token = tokenizer.convert_tokens_to_ids
        vision = {**tiny._vision_options(32), "crop_size": 32, "image_token_id": token(PHI_IMAGE)}
        audio = {
            "hidden_size": 16, "intermediate_size": 32, "num_blocks": 1, "num_attention_heads": 2,
            "ext_pw_out_channel": 16, "depthwise_separable_out_channel": 16, "nemo_conv_channels": 16,
            "audio_token_id": token(PHI_AUDIO), "feature_layer": -1,
        }  # fmt: skip
        return Phi4MultimodalForCausalLM(
            Phi4MultimodalConfig(
                **text_of(tokenizer), vision_config=vision, audio_config=audio,
                original_max_position_embeddings=tiny.MAX_POSITIONS,
            )
        )  # fmt: skip

    named = (("image_token", PHI_IMAGE), ("audio_token", PHI_AUDIO))
    settings = {
        "image_processor_type": "Phi4MultimodalImageProcessor",
        "feature_extractor_type": "Phi4MultimodalFeatureExtractor",
    }
    files = image_files("Phi4MultimodalProcessor", settings)
    return save(folder, Parts((PHI_IMAGE, PHI_AUDIO), PHI_IMAGE, PHI_AUDIO, named), make, files)


def qwen2_audio(folder, text=None, sound=None):
    """``text`` and ``sound``: options of the two parts beside the smallest ones."""
    from transformers import Qwen2AudioConfig, Qwen2AudioForConditionalGeneration

    def make(tokenizer):
        audio = {
            "num_mel_bins": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32, "d_model": 16,
            "max_source_positions": 100, **(sound or {}),
        }  # fmt: skip
        return Qwen2AudioForConditionalGeneration(
            Qwen2AudioConfig(
                audio_config=audio,
                text_config={"model_type": "qwen2", **text_of(tokenizer, **(text or {}))},
                audio_token_index=tokenizer.convert_tokens_to_ids(AUDIO),
            )
        )

    settings = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 16, "chunk_length": 2}
    parts = Parts((AUDIO, AUDIO_BOS, AUDIO_EOS), audio=AUDIO_BOS + AUDIO + AUDIO_EOS)
    return save(folder, parts, make, image_files("Qwen2AudioProcessor", settings))


def hf_text(folder):
    from transformers import LlamaConfig, LlamaForCausalLM

    return save(folder, Parts(), lambda tokenizer: LlamaForCausalLM(LlamaConfig(**text_of(tokenizer))), {})


def whisper(folder):
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    times = tuple(f"<|{number * 0.02:.2f}|>" for number in range(1501))
    parts = Parts((*WHISPER, *times))

    def make(tokenizer):
        token = tokenizer.convert_tokens_to_ids
        model = WhisperForConditionalGeneration(
            WhisperConfig(
                vocab_size=len(tokenizer), num_mel_bins=16, encoder_layers=1, decoder_layers=1, d_model=32,
                encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
                max_target_positions=MAX_TARGET, decoder_start_token_id=token(WHISPER[0]),
                pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id,
                eos_token_id=tokenizer.eos_token_id, tie_word_embeddings=False,
            )
        )  # fmt: skip
        model.generation_config = GenerationConfig(
            decoder_start_token_id=token(WHISPER[0]), is_multilingual=True, max_length=MAX_TARGET,
            lang_to_id={"<|en|>": token("<|en|>"), "<|de|>": token("<|de|>")},
            task_to_id={"translate": token("<|translate|>"), "transcribe": token("<|transcribe|>")},
            no_timestamps_token_id=token("<|notimestamps|>"), prev_sot_token_id=token("<|startofprev|>"),
            suppress_tokens=[], begin_suppress_tokens=[], return_timestamps=False,
        )  # fmt: skip
        return model

    settings = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 16}
    return save(folder, parts, make, image_files("WhisperProcessor", settings))


BUILDERS = {
    build.__name__: build
    for build in (
        qwen2_vl, qwen2_5_vl, qwen3_vl, llava_onevision, llava_hf, internvl_hf, idefics3, smolvlm, gemma3,
        phi4_multimodal, qwen2_audio, whisper, hf_text,
    )
}  # fmt: skip
torch.set_num_threads(1)
