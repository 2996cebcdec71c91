import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.chat_form.loading import device_map
from tests.cases import for_each

PREFIX = "language_model.model.layers."


@for_each("gpus", [1, 2, 3, 5, 8])
@for_each("layers", [4, 24, 32, 48])
def test_every_layer_has_a_place_and_the_ends_are_on_the_first_gpu(gpus, layers):
    found = device_map(gpus, layers)
    assert {f"{PREFIX}{layer}" for layer in range(layers)} <= set(found)
    assert found[f"{PREFIX}{layers - 1}"] == found["vision_model"] == found["language_model.lm_head"] == 0
    assert set(found.values()) <= set(range(gpus))


def test_no_gpu():
    with pytest.raises(ModelError, match="there is no GPU"):
        device_map(0)
