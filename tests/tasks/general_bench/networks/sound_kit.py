"""Tiny CLAP, Whisper and VGGish with random weights, and sounds."""

import numpy as np

from lmms_eval.media.audio import encode_wav

WORDS = ("a", "dog", "barks", "rain", "jazz")
LANGUAGES = ("<|en|>", "<|zh|>", "<|mn|>")


def tone(seconds, pitch=440.0, rate=16_000, seed=0):
    """A tone with some noise, mono."""
    time = np.arange(round(seconds * rate)) / rate
    noise = np.random.default_rng(seed).normal(size=len(time))
    return (0.4 * np.sin(2 * np.pi * pitch * time) + 0.02 * noise).astype(np.float32)


def a_sound(path, seconds=1.0, pitch=440.0, rate=16_000):
    """A wav file; its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_wav(tone(seconds, pitch, rate), rate))
    return path.name


def letters():
    """What byte-level tokenizers write for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    found = {byte: chr(byte) for byte in plain} | {byte: chr(256 + number) for number, byte in enumerate(rest)}
    return [found[byte] for byte in range(256)]


def spread(model, scale=0.3):
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, scale)


def save_clap(folder, fused=False):
    """A tiny CLAP: 8 numbers of a sound or a text."""
    import torch
    from transformers import ClapConfig, ClapFeatureExtractor, ClapModel, RobertaTokenizer

    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *letters()]
    tokenizer = RobertaTokenizer(vocab={word: number for number, word in enumerate(vocabulary)}, merges=[])
    tokenizer.save_pretrained(folder)
    ClapFeatureExtractor(truncation="fusion" if fused else "rand_trunc").save_pretrained(folder)
    shape = {"hidden_size": 16, "projection_dim": 8}
    config = ClapConfig(
        text_config={
            **shape, "vocab_size": len(vocabulary), "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 16, "max_position_embeddings": 40, "pad_token_id": 1,
        },
        audio_config={
            **shape, "patch_embeds_hidden_size": 8, "depths": [1, 1], "num_attention_heads": [1, 2],
            "enable_fusion": fused, "fusion_type": "aff_2d" if fused else None,
        },
        projection_dim=8,
    )  # fmt: skip
    torch.manual_seed(1)
    model = ClapModel(config)
    spread(model)
    model.save_pretrained(folder)
    return folder


def save_whisper(folder, multilingual=True, seed=2):
    """A tiny Whisper whose tokens are bytes."""
    import torch
    from transformers import (
        GenerationConfig,
        WhisperConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
        WhisperTokenizer,
    )

    vocabulary = {letter: number for number, letter in enumerate(letters())} | {"<|endoftext|>": 256}
    special = ["<|startoftranscript|>", *LANGUAGES, "<|translate|>", "<|transcribe|>", "<|notimestamps|>"]
    tokenizer = WhisperTokenizer(vocab=vocabulary, merges=[])
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    tokenizer.save_pretrained(folder)
    WhisperFeatureExtractor().save_pretrained(folder)
    known = {word: tokenizer.convert_tokens_to_ids(word) for word in special}
    ends = {"bos_token_id": 256, "eos_token_id": 256, "pad_token_id": 256}
    config = WhisperConfig(
        vocab_size=len(tokenizer) + 5, num_mel_bins=80, d_model=16, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
        max_target_positions=24, decoder_start_token_id=known["<|startoftranscript|>"], suppress_tokens=None,
        begin_suppress_tokens=None, **ends,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = WhisperForConditionalGeneration(config)
    spread(model, 1.0)
    languages = {"lang_to_id": {name: known[name] for name in LANGUAGES}} if multilingual else {}
    model.generation_config = GenerationConfig(
        decoder_start_token_id=known["<|startoftranscript|>"], no_timestamps_token_id=known["<|notimestamps|>"],
        task_to_id={"transcribe": known["<|transcribe|>"], "translate": known["<|translate|>"]},
        is_multilingual=multilingual, begin_suppress_tokens=[32, 256], suppress_tokens=[10], **languages, **ends,
    )  # fmt: skip
    model.save_pretrained(folder)
    return folder


def vggish_weights(seed=3):
    """Random tensors of VGGish by name, as small as its shape allows (a few hundred MB at full size)."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    channels = [(0, 1, 4), (3, 4, 4), (6, 4, 4), (8, 4, 4), (11, 4, 4), (13, 4, 2)]
    found = {}
    for number, inputs, outputs in channels:
        found[f"features.{number}.weight"] = torch.randn(outputs, inputs, 3, 3, generator=generator) / 3
        found[f"features.{number}.bias"] = torch.randn(outputs, generator=generator) / 10
    for number, inputs, outputs in ((0, 48, 32), (2, 32, 32), (4, 32, 128)):
        found[f"embeddings.{number}.weight"] = torch.randn(outputs, inputs, generator=generator) / 5
        found[f"embeddings.{number}.bias"] = torch.randn(outputs, generator=generator) / 10
    return found


def save_vggish(path):
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(vggish_weights(), path)
    return path
