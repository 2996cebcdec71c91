"""Arguments of models as people are shown them."""

import subprocess
import sys

from lmms_eval.models.building import Argument, arguments_of
from lmms_eval.models.registry import BUILTIN_MANIFESTS, ModelRegistry
from tests.cases import for_each


def arguments(name: str) -> dict[str, Argument]:
    return {one.name: one for one in arguments_of(name, ModelRegistry().resolve(name).load())}


@for_each("name", [manifest.model_id for manifest in BUILTIN_MANIFESTS])
def test_every_argument_has_a_meaning(name: str) -> None:
    found = arguments(name)
    assert found
    assert [one.name for one in found.values() if not one.meaning] == []


def test_local_models() -> None:
    found = arguments("hf")
    assert next(iter(found)) == "pretrained"
    assert found["pretrained"].is_required
    assert found["max_num_frames"].default == 32
    assert found["max_num_frames"].kind == "whole number"
    assert found["fps"].kind == "number"
    assert found["use_cache"].kind == "switch" and found["use_cache"].default is True
    assert "nframes" in found["max_num_frames"].other_names
    assert "nframes" not in found


def test_families_have_their_own_defaults() -> None:
    found = arguments("qwen2_5_vl")
    assert not found["pretrained"].is_required
    assert found["min_pixels"].default == 256 * 28 * 28


def test_services() -> None:
    found = arguments("openai")
    assert found["model"].is_required
    assert found["api"].choices == ("chat", "completions", "responses")
    assert found["extra_body"].kind == "JSON"
    assert found["api_key"].is_secret and not found["base_url"].is_secret
    assert arguments("gemini")["safety_threshold"].choices[-1] == "OFF"
    assert "false: no thoughts" in arguments("gemini")["enable_thinking"].meaning
    assert arguments("vllm")["model"].is_required


def test_signatures_of_plugins() -> None:
    class Plugin:
        def __init__(self, path: str, beams: int = 4, *, rest: object = None, **more: object) -> None: ...

    found = {one.name: one for one in arguments_of("plugin", Plugin)}
    assert list(found) == ["path", "beams", "rest"]
    assert found["beams"] == Argument("beams", "whole number", 4, False, (), "", (), False, False)


def test_torch_is_not_imported() -> None:
    code = (
        "import sys; from lmms_eval.models.registry import ModelRegistry as R; "
        "from lmms_eval.models.building import arguments_of; r = R(); "
        "[arguments_of(m.model_id, r.resolve(m.model_id).load()) for m in r.list_models()]; "
        "assert not {'torch', 'transformers', 'datasets'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
