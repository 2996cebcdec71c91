"""A checkpoint folder that brings its own code with ``chat``, as InternVL's do; random weights, smallest size."""

from __future__ import annotations

import json
from pathlib import Path

from examples import build_tiny_model as tiny

CODE = """
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel


class StubConfig(PretrainedConfig):
    model_type = "stub_chat"

    def __init__(self, vocabulary=64, **options):
        super().__init__(**options)
        self.vocabulary = vocabulary


class StubChat(PreTrainedModel):
    config_class = StubConfig

    def __init__(self, config, use_flash_attn=True):
        super().__init__(config)
        self.use_flash_attn = use_flash_attn
        self.vision_model = nn.Conv2d(3, 8, 64, 64)
        self.mlp1 = nn.Linear(8, config.vocabulary)
        self.post_init()

    def _init_weights(self, module):
        pass

    def chat(self, tokenizer, pixel_values, question, generation_config, history=None, return_history=False,
             num_patches_list=None):
        if "FAIL" in question:
            raise KeyError("chat failed")
        if "NUMBER" in question:
            return 5
        n_tiles = 0 if pixel_values is None else len(pixel_values)
        assert sum(num_patches_list) == n_tiles
        assert question.count("<image>") >= len(num_patches_list)
        state = torch.full((8,), float(len(question) % 7), dtype=self.dtype, device=self.device)
        if pixel_values is not None:
            state = state + self.vision_model(pixel_values).mean(dim=(0, 2, 3))
        ids = []
        for _ in range(min(generation_config["max_new_tokens"], 12)):
            token = int(self.mlp1(state).argmax())
            ids.append(token)
            state = torch.roll(state, 1) + token
        generation_config["eos_token_id"] = 0
        return tokenizer.decode(ids) + f" [{question.count('<image>')} {n_tiles} {generation_config['do_sample']}]"
"""


def write(folder: Path, code: str = CODE) -> Path:
    """The folder, complete."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    tokenizer = tiny._build_tokenizer(tiny._Architecture((), "", None, {}, {}))
    tokenizer.save_pretrained(folder)
    (folder / "modeling_stub.py").write_text(code)
    config = {
        "model_type": "stub_chat",
        "architectures": ["StubChat"],
        "vocabulary": len(tokenizer),
        "auto_map": {"AutoConfig": "modeling_stub.StubConfig", "AutoModel": "modeling_stub.StubChat"},
        "llm_config": {"num_hidden_layers": 4},
    }
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    weights = {
        "vision_model.weight": torch.randn(8, 3, 64, 64),
        "vision_model.bias": torch.randn(8),
        "mlp1.weight": torch.randn(len(tokenizer), 8),
        "mlp1.bias": torch.randn(len(tokenizer)),
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
