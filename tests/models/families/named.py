"""Names whose wrapper is nothing but a row of the table: small checkpoints for them, and one question to each.

``python -m tests.models.families.named NAME ...`` prints the answers, for names that need torchvision.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

from tests import torchvision_operators

if __name__ == "__main__":
    torchvision_operators.declare()

from lmms_eval.models.families.table import FAMILIES
from tests.models.architectures.build import build
from tests.models.families.build import Parts, image_files, save, text_of
from tests.models.families.conformance import hear, make_model, sound, watch
from tests.models.hf.support import answers, ask, picture

ARCHITECTURES = {
    "aria": "aria", "fuyu": "fuyu", "glm4v": "glm4v", "idefics2": "idefics2", "instructblip": "instructblip",
    "lfm2_5_vl": "lfm2_vl", "llama4_scout": "llama4", "llama_vision": "mllama", "plm": "perception_lm",
    "qwen2_5_omni": "qwen2_5_omni_thinker", "qwen3_omni": "qwen3_omni_moe_thinker", "qwen3_5": "qwen3_5",
    "video_llava": "video_llava", "videollama3": "video_llama_3",
}  # fmt: skip
NAMES = ("audio_flamingo_3", *ARCHITECTURES)
T5 = {
    "model_type": "t5", "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "is_encoder_decoder": True, "decoder_start_token_id": 0,
}  # fmt: skip
SOUND = "<sound>"


def build_named(name, folder):
    """A checkpoint as it is published for the name, of the smallest size and with random weights."""
    if name == "audio_flamingo_3":
        return audio_flamingo_3(folder)
    changes = {"text_config": T5} if name == "instructblip" else {}
    folder.mkdir(parents=True, exist_ok=True)
    build(ARCHITECTURES[name], folder, **changes)
    if name.endswith("_omni"):
        make_whole(folder)
    return folder


def make_whole(folder):
    """From a part that writes to a checkpoint that also holds the part that speaks."""
    import torch
    from safetensors.torch import load_file, save_file

    weights = {f"thinker.{name}": value for name, value in load_file(folder / "model.safetensors").items()}
    save_file(
        {**weights, "talker.codec_head.weight": torch.zeros(4, 4)}, folder / "model.safetensors", {"format": "pt"}
    )
    thinker = json.loads((folder / "config.json").read_text())
    kind = thinker["model_type"].removesuffix("_thinker")
    (folder / "config.json").write_text(json.dumps({"model_type": kind, "thinker_config": thinker}))


def audio_flamingo_3(folder):
    from transformers import AudioFlamingo3Config, AudioFlamingo3ForConditionalGeneration

    def make(tokenizer):
        audio = {
            "num_mel_bins": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
            "hidden_size": 16, "max_source_positions": 100,
        }  # fmt: skip
        return AudioFlamingo3ForConditionalGeneration(
            AudioFlamingo3Config(
                audio_config=audio,
                text_config={"model_type": "qwen2", **text_of(tokenizer)},
                audio_token_id=tokenizer.convert_tokens_to_ids(SOUND),
            )
        )

    settings = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 16, "chunk_length": 2}
    return save(folder, Parts((SOUND,), audio=SOUND), make, image_files("AudioFlamingo3Processor", settings))


QUESTIONS = {
    "text": lambda n: ask(n, ("What is the word?", "Where is the picture?")[n % 2]),
    "image": lambda n: ask(n, "What is it?", [picture(64, 48, n)]),
    "video": lambda n: watch(n, "What happens?", [picture(64, 48, 10 * n + k) for k in range(3)]),
    "audio": lambda n: hear(n, "What is said?", [sound(n)]),
}


def questions(name):
    """Two of each kind that the wrapper takes, numbered; for ``instructblip`` no text without its picture."""
    kinds = [kind for kind in QUESTIONS if kind in FAMILIES[name].media or (kind == "text" and name != "instructblip")]
    return {kind: (2 * place, 2 * place + 1) for place, kind in enumerate(kinds)}


def asked(name, folder):
    """From a kind of question to ``yes``, or to what went wrong."""
    model = make_model(name, folder, batch_size=4)
    wanted = questions(name)
    got = answers(model, [QUESTIONS[kind](number) for kind, numbers in wanted.items() for number in numbers])
    said = {}
    for kind, numbers in wanted.items():
        one, other = (got[number] for number in numbers)
        error = one.error or other.error
        alike = one.text == other.text or not one.text
        said[kind] = error.message if error else f"both say {one.text!r}" if alike else "yes"
    model.close()
    return said


def main():
    for name in sys.argv[1:]:
        folder = Path(tempfile.mkdtemp())
        try:
            print(json.dumps({name: asked(name, build_named(name, folder / name))}), flush=True)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
