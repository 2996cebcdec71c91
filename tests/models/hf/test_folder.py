import pytest

from lmms_eval.errors import ModelError
from lmms_eval.models.hf.options import check_folder, local_folder, stamps
from tests.cases import for_each


def test_a_hub_name_is_no_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert local_folder("someone/model") is None


@for_each("name", ["{}/checkpoints/step-10", "./here", "a/b/c", "~nobody/x"])
def test_a_missing_path_is_told(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"does not exist \(the nearest folder that does is"):
        local_folder(name.format(tmp_path))


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "model.safetensors"
    file.touch()
    with pytest.raises(ModelError, match="is a file; give the folder"):
        local_folder(str(file))


def test_every_lacking_part_is_named(tmp_path):
    with pytest.raises(ModelError) as caught:
        check_folder(tmp_path)
    message = str(caught.value)
    assert str(tmp_path) in message
    for part in ("config.json", "safetensors", "tokenizer.json", "preprocessor_config.json"):
        assert part in message


def test_adapters_and_parents_of_models_get_a_hint(tmp_path):
    (tmp_path / "step-2").mkdir()
    (tmp_path / "step-2" / "config.json").touch()
    with pytest.raises(ModelError, match="Did you mean one of its folders: step-2"):
        check_folder(tmp_path)
    (tmp_path / "adapter_config.json").touch()
    with pytest.raises(ModelError, match="It is an adapter: give its base model as pretrained"):
        check_folder(tmp_path)


def test_stamps_change_with_the_files(tiny, tmp_path):
    names = [stamp["name"] for stamp in stamps(tiny)]
    assert names == sorted(names)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(names)
    file, hidden = tmp_path / "a.json", tmp_path / ".lock"
    file.write_text("1")
    hidden.touch()
    before = stamps(tmp_path)
    assert [stamp["name"] for stamp in before] == ["a.json"]
    file.write_text("22")
    assert stamps(tmp_path) != before
