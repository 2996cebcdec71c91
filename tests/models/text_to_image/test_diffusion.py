"""The contract with the diffusers library, by a module of its interface: no weights are needed."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from lmms_eval.errors import ModelError
from lmms_eval.models.text_to_image.illustrated import DiffusersPipeline, DrawingError, open_text_to_image


class Pipeline:
    """Draws the seed's first random number as a grey value."""

    loaded: dict[str, Any]

    @classmethod
    def from_pretrained(cls, path: str, **arguments: Any) -> Pipeline:
        if path == "absent":
            raise OSError("no such folder")
        cls.loaded = {"path": path, **arguments}
        return cls()

    def to(self, device: str) -> Pipeline:
        self.loaded["device"] = device
        return self

    def set_progress_bar_config(self, **arguments: Any) -> None:
        self.loaded |= arguments

    def __call__(self, prompt: str, generator: Any, **arguments: Any) -> SimpleNamespace:
        import torch

        if "forbidden" in prompt:
            raise ValueError("the prompt is too odd")
        self.loaded["call"] = arguments
        grey = int(torch.randint(0, 256, (1,), generator=generator))
        return SimpleNamespace(images=[Image.new("L", (arguments["width"], 8), grey)])


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("diffusers")
    module.DiffusionPipeline = Pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "diffusers", module)


def test_seeds_make_pictures_repeatable() -> None:
    import torch

    made = DiffusersPipeline("folder", {"width": 16, "dtype": "float32", "device": "cpu"})
    assert Pipeline.loaded["torch_dtype"] is torch.float32 and Pipeline.loaded["device"] == "cpu"
    first, again, other = made.draw(["a", "b"], 1), made.draw(["a", "b"], 1), made.draw(["a"], 5)
    assert first == again and first[0] != first[1] and other[0] != first[0]
    assert Pipeline.loaded["call"] == {"width": 16}
    data = first[0].data
    assert data is not None and Image.open(io.BytesIO(data)).size == (16, 8)
    assert made.describe()["pictures"] == 5
    made.close()


def test_what_goes_wrong_is_said() -> None:
    made = open_text_to_image("diffusers:folder", {"width": 8, "device": "cpu"})
    with pytest.raises(DrawingError, match="'forbidden' was not drawn: ValueError: the prompt is too odd"):
        made.draw(["forbidden"], 1)
    with pytest.raises(ModelError, match="takes no steps; it takes num_inference_steps"):
        open_text_to_image("diffusers:folder", {"steps": 3})
    with pytest.raises(ModelError, match="diffusers:absent cannot be loaded: OSError: no such folder"):
        open_text_to_image("diffusers:absent", {})


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(ModelError, match="diffusers"):
        open_text_to_image("diffusers:folder", {})
