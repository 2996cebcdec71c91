"""Checkpoint folders with code of their own, in the forms of InternVL and MiniCPM; of the smallest size.

Their models tell the colours of what they are shown, by weights that are read from the folder. A word in capitals in
the question lets them do something else: tell their prompt or options, draw, raise.
"""

import json
from pathlib import Path

from examples import build_tiny_model as tiny

COLOURS = ("red", "green", "blue")
COMMON = """
import json

import numpy as np
import torch
from PIL import Image
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel


class StubConfig(PretrainedConfig):
    model_type = "stub_of_a_family"


class Stub(PreTrainedModel):
    config_class = StubConfig

    def __init__(self, config):
        super().__init__(config)
        self.vision = nn.Linear(3, 3, bias=False)
        self.post_init()

    def _init_weights(self, module):
        module.weight.data.zero_()

    def colour(self, values):
        return ("red", "green", "blue")[int(self.vision(values.to(self.vision.weight)).argmax())]

    def told(self, question, prompt, options, colours):
        if "FAIL" in question:
            raise KeyError("chat failed")
        if "EXIT" in question:
            raise type("OwnError", (Exception,), {})("an error of its own")
        if "MEMORY" in question:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 EiB")
        if "NUMBER" in question:
            return 5
        if "PROMPT" in question:
            return json.dumps(prompt)
        if "OPTIONS" in question:
            return json.dumps(options)
        if "DRAW" in question:
            return str(float(torch.rand(1)))
        return " ".join(colours) or "no picture: " + question
"""
INTERNVL = (
    COMMON
    + """

class Model(Stub):
    def __init__(self, config, use_flash_attn=True):
        super().__init__(config)
        self.use_flash_attn = use_flash_attn
        self.system_message = "I am a stub."
        self.batches = []

    def chat(self, tokenizer, pixel_values, question, generation_config, history=None, return_history=False,
             num_patches_list=None, IMG_START_TOKEN="<img>", IMG_END_TOKEN="</img>", verbose=False):
        assert pixel_values is None or len(pixel_values) == sum(num_patches_list)
        whole = "".join(q + a for q, a in history or []) + question
        assert whole.count("<image>") == len(num_patches_list or [])
        prompt = [getattr(self, "system_message", None), history or [], question, num_patches_list]
        options = dict(generation_config)
        generation_config["eos_token_id"] = len(tokenizer)
        colours, start = [], 0
        for count in num_patches_list or []:
            colours.append(self.colour(pixel_values[start : start + count].mean(dim=(0, 2, 3))))
            start += count
        return self.told(question, prompt, options, colours)

    def batch_chat(self, tokenizer, pixel_values, questions, generation_config, num_patches_list=None, history=None):
        assert history is None
        assert len(questions) == len(num_patches_list)
        if any("MEMORY" in question for question in questions):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 EiB")
        self.batches.append(len(questions))
        parts = pixel_values.split(num_patches_list)
        return [
            self.chat(tokenizer, part, question, dict(generation_config), num_patches_list=[len(part)])
            for part, question in zip(parts, questions)
        ]
"""
)
MINICPM = (
    COMMON
    + """

class Model(Stub):
    def chat(self, image=None, msgs=None, tokenizer=None, processor=None, max_new_tokens=2048, min_new_tokens=0,
             sampling=True, max_inp_length=8192, system_prompt="", stream=False, max_slice_nums=None,
             use_image_id=None, enable_thinking=False, **kwargs):
        assert image is None
        shown, seen = [], []
        for message in msgs:
            content = message["content"] if isinstance(message["content"], list) else [message["content"]]
            for item in content:
                if isinstance(item, Image.Image):
                    assert item.mode == "RGB"
                    mean = np.asarray(item, dtype=np.float32).mean(axis=(0, 1)) / 255
                    seen.append(self.colour(torch.from_numpy(mean)))
            items = [item if isinstance(item, str) else type(item).__name__ for item in content]
            shown.append([message["role"], items])
        sounds = [item for item in msgs[-1]["content"] if isinstance(item, np.ndarray)]
        seen += [f"sound of {len(item)}" for item in sounds]
        options = {"max_new_tokens": max_new_tokens, "sampling": sampling, "max_slice_nums": max_slice_nums,
                   "use_image_id": use_image_id, "enable_thinking": enable_thinking, **kwargs}
        last = msgs[-1]["content"]
        question = " ".join(item for item in ([last] if isinstance(last, str) else last) if isinstance(item, str))
        return self.told(question, [system_prompt, shown], options, seen)
"""
)
EARLY_MINICPM = (
    COMMON
    + """

class Model(Stub):
    def chat(self, image, msgs, context, tokenizer, vision_hidden_states=None, max_new_tokens=1024, sampling=True):
        assert all(isinstance(message["content"], str) for message in msgs)
        mean = None if image is None else np.asarray(image, dtype=np.float32).mean(axis=(0, 1)) / 255
        seen = [] if mean is None else [self.colour(torch.from_numpy(mean))]
        return self.told(msgs[-1]["content"], msgs, {"sampling": sampling}, seen), "context", {}
"""
)
CODES = {"internvl": INTERNVL, "minicpm_v": MINICPM, "early_minicpm": EARLY_MINICPM}


def write(folder: Path, name: str, code: str = "", **config) -> Path:
    """The folder, complete."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    tiny._build_tokenizer(tiny._Architecture((), "", None, {}, {})).save_pretrained(folder)
    (folder / "modeling_stub.py").write_text(code or CODES[name])
    content = {
        "model_type": "stub_of_a_family",
        "architectures": ["Model"],
        "auto_map": {"AutoConfig": "modeling_stub.StubConfig", "AutoModel": "modeling_stub.Model"},
        **config,
    }
    (folder / "config.json").write_text(json.dumps(content))
    save_file({"vision.weight": torch.eye(3)}, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
