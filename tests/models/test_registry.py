"""Names of models: built-in ones, entry points, plugin packages, and how they are built."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.instance import Instance
from lmms_eval.api.model import Model, lmms
from lmms_eval.api.registry import MODEL_REGISTRY, ModelManifest, register_model
from lmms_eval.errors import ModelError, UnknownNameError
from lmms_eval.models.baseline import Baseline
from lmms_eval.models.building import BuildOptions, adapt_model, build_model
from lmms_eval.models.legacy import LegacyAdapter
from lmms_eval.models.registry import AVAILABLE_SIMPLE_MODELS, BUILTIN_MANIFESTS, ModelRegistry, ResolvedModel
from tests.cases import for_each
from tests.models.fakes import FakeTask, answers
from tests.parity.vectors import GOLDEN_DIR

INPUTS = GOLDEN_DIR / "harness" / "inputs"
needs_golden = pytest.mark.skipif(not INPUTS.is_dir(), reason=f"recorded vectors are not at {GOLDEN_DIR}")


class Simple(lmms):
    def __init__(self, pretrained: str, batch_size: int = 1, **kwargs: Any) -> None:
        super().__init__()
        self.given = {"pretrained": pretrained, "batch_size": batch_size, **kwargs}

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        return []

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        return []

    def generate_until_multi_round(self, requests: list[Instance]) -> list[Any]:
        return []


class Trusting(Simple):
    def __init__(self, pretrained: str, trust_remote_code: bool = False) -> None:
        super().__init__(pretrained, trusts=trust_remote_code)


class Chat(Simple):
    is_simple = False

    def __init__(self, pretrained: str = "p") -> None:
        super().__init__(pretrained)
        if pretrained == "missing":
            raise OSError("no such folder")


HERE = "tests.models.test_registry"


def resolved(name: str, kind: Any = "simple") -> ResolvedModel:
    path = f"{HERE}.{name}"
    manifest = ModelManifest("m", **{f"{kind}_class_path": path})
    return ResolvedModel(manifest, path, kind)


def write_plugin(folder: Path, package: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def write_entry_point(folder: Path, distribution: str, entry: str) -> None:
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lmms_eval.models]\n{entry}\n")


@for_each(
    "alias",
    [
        "openai",
        "async_openai",
        "openai_compatible",
        "openai_compatible_chat",
        "async_openai_compatible",
        "async_openai_compatible_chat",
        "gpt4v",
        "gpt4o_audio",
        "batch_gpt4",
        "qwen_vl_api",
        "reka",
        "openrouter",
        "xai",
    ],
)
def test_openai_and_its_aliases(alias: str) -> None:
    found = ModelRegistry().resolve(alias)
    assert (found.class_path, found.kind) == ("lmms_eval.models.openai.model.OpenAI", "chat")


def test_builtin_models_are_listed_without_being_imported() -> None:
    code = (
        "import sys; from lmms_eval.models.registry import ModelRegistry\n"
        "names = [m.model_id for m in ModelRegistry().list_models()]\n"
        "assert {'baseline', 'hf', 'openai', 'replay'} <= set(names), names\n"
        "print([m for m in ('torch', 'transformers', 'pydantic', 'numpy', 'lmms_eval.models.baseline')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_hugging_face_alias_and_order_of_the_listing() -> None:
    registry = ModelRegistry()
    assert registry.resolve("huggingface").manifest.model_id == "hf"
    listing = registry.list_models()
    order = [("chat", "chat+simple", "simple").index(item.kind) for item in listing]
    assert order == sorted(order)
    assert next(item for item in listing if item.model_id == "hf").aliases == (
        "async_hf",
        "async_hf_model",
        "huggingface",
    )


def test_unknown_names_are_answered_with_near_ones() -> None:
    with pytest.raises(UnknownNameError, match="did you mean baseline"):
        ModelRegistry().resolve("basline")


def test_simple_or_chat() -> None:
    registry = ModelRegistry()
    registry.list_models()
    registry._add_all([ModelManifest("both", f"{HERE}.Simple", f"{HERE}.Chat"), ModelManifest("one", f"{HERE}.Simple")])
    assert registry.resolve("both").kind == "chat"
    assert registry.resolve("both", force_simple=True).kind == "simple"
    assert registry.resolve("one").kind == "simple"
    assert registry.resolve("baseline", force_simple=True).kind == "chat"
    assert registry.resolve("both").load() is Chat


def test_decorated_classes_can_be_named() -> None:
    register_model("decorated_here")(Chat)
    found = ModelRegistry().resolve("decorated_here")
    assert found.kind == "chat" and found.load() is Chat


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The names that the process knows are as before after the test."""
    before = dict(MODEL_REGISTRY)
    monkeypatch.setattr("lmms_eval.models.registry._DECORATED", {})
    yield
    MODEL_REGISTRY.clear()
    MODEL_REGISTRY.update(before)


def decorated(name: str, base: str = "Simple") -> str:
    return (
        f"from lmms_eval.api.registry import register_model\nfrom {HERE} import {base}\n\n\n"
        f"@register_model({name!r})\nclass Mine({base}):\n    pass\n"
    )


BUILTIN_NAMES = sorted({name for manifest in BUILTIN_MANIFESTS for name in (manifest.model_id, *manifest.aliases)})


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("base", ["Simple", "Chat"])
def test_classes_of_a_plugin_beat_every_built_in_name_and_alias(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = f"all_names_{base.lower()}"
    (tmp_path / f"{module}.py").write_text(
        decorated("a_new_name", base) + "\n".join(f"register_model({name!r})(Mine)" for name in BUILTIN_NAMES)
    )
    with caplog.at_level("INFO"):
        registry = ModelRegistry(module)
        found = {registry.resolve(name).load().__module__ for name in (*BUILTIN_NAMES, "a_new_name")}
    assert found == {module}
    assert f"model 'dummy' now comes from {module}:Mine (plugin {module})" in caplog.text
    assert f"model 'async_openai' now comes from {module}:Mine" in caplog.text
    assert ModelRegistry(module).resolve("dummy").class_path == f"{module}:Mine"  # a module is imported once only


@pytest.mark.usefixtures("registered")
def test_classes_that_a_plugin_only_imports_are_its_own_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "imported_model.py").write_text(decorated("dummy"))
    (tmp_path / "importing_plugin.py").write_text("import imported_model\n")
    write_plugin(tmp_path, "tabled_plugin", {"models/__init__.py": "AVAILABLE_MODELS = {'replay': 'Mine'}\n"})
    write_plugin(tmp_path, "tabled_plugin", {"__init__.py": "import importing_plugin\n"})
    for _ in range(2):
        assert ModelRegistry("importing_plugin").resolve("dummy").class_path == "imported_model:Mine"
    assert (
        ModelRegistry("tabled_plugin,importing_plugin").resolve("replay").class_path
        == "tabled_plugin.models.replay.Mine"
    )


@pytest.mark.usefixtures("registered")
def test_a_class_of_no_plugin_does_not_take_a_built_in_name_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    register_model("dummy")(Simple)
    assert ModelRegistry().resolve("dummy").class_path == "lmms_eval.models.baseline.Dummy"
    assert f"the class {HERE}:Simple" in caplog.text and "--plugins" in caplog.text


def test_programs_add_models_to_the_familys_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    import lmms_eval.models

    for name in ("AVAILABLE_SIMPLE_MODELS", "AVAILABLE_CHAT_TEMPLATE_MODELS"):
        path = f"{HERE}.{'Simple' if 'SIMPLE' in name else 'Chat'}"
        monkeypatch.setitem(getattr(lmms_eval.models, name), "added_by_a_program", path)
    assert ModelRegistry().resolve("added_by_a_program").load() is Chat
    assert ModelRegistry().resolve("added_by_a_program", force_simple=True).load() is Simple
    assert ModelRegistry().resolve("openai").class_path == "lmms_eval.models.openai.model.OpenAI"  # no entry is changed
    monkeypatch.setitem(lmms_eval.models.AVAILABLE_CHAT_TEMPLATE_MODELS, "openai", f"{HERE}.Chat")
    assert lmms_eval.models.get_model("openai") is Chat
    monkeypatch.setitem(lmms_eval.models.AVAILABLE_SIMPLE_MODELS, "without_a_path", "Simple")
    with pytest.raises(ModelError, match=r"give package\.module\.Class"):
        ModelRegistry().resolve("dummy")


def test_classes_of_the_familys_simple_table_are_there() -> None:
    for name, path in AVAILABLE_SIMPLE_MODELS.items():
        assert ResolvedModel(ModelManifest(name, path), path, "simple").load().is_simple


def test_manifests_that_a_program_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmms_eval.models.registry._REGISTERED", {})
    registry = ModelRegistry()
    registry.register_manifest(ModelManifest("registered_one", chat_class_path=f"{HERE}.Chat", aliases=("another",)))
    assert registry.get_model_class("another") is ModelRegistry().get_model_class("registered_one") is Chat
    other = ModelManifest("registered_one", chat_class_path="a.B")
    with pytest.raises(ValueError, match="is known as"):
        registry.register_manifest(other)
    registry.register_manifest(other, overwrite=True)
    assert ModelRegistry().get_manifest("registered_one") == other
    assert "another" in registry.list_model_names() and "another" not in registry.list_canonical_model_ids()


def test_a_plugin_takes_its_own_name_out_and_registers_again() -> None:
    register_model("registered_twice")(Chat)
    with pytest.raises(ValueError, match="already taken"):
        register_model("registered_twice")(Simple)
    if "registered_twice" in MODEL_REGISTRY:
        del MODEL_REGISTRY["registered_twice"]
    register_model("registered_twice")(Simple)
    assert ModelRegistry().resolve("registered_twice").load() is MODEL_REGISTRY["registered_twice"] is Simple


@for_each(
    ("path", "kind", "message"),
    [
        (f"{HERE}.Simple", "chat", "is_simple=True"),
        (f"{HERE}.Chat", "simple", "is_simple=False"),
        (f"{HERE}.HERE", "chat", "not a subclass of"),
        (f"{HERE}.Absent", "chat", "has no 'Absent'"),
        ("no_such_package.module.Class", "chat", "there is no module no_such_package"),
    ],
)
def test_classes_are_checked(path: str, kind: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ResolvedModel(ModelManifest("m", chat_class_path=path), path, kind).load()


def test_a_missing_package_is_named_with_its_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(tmp_path, "needy_plugin", {"__init__.py": "", "model.py": "import vllm_absent_xyz.engine\n"})
    write_plugin(tmp_path, "needy_plugin", {"pictures.py": "raise ImportError('broken binary')\n"})
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, message in (
        ("model", r"pip install 'vllm_absent_xyz'"),
        ("pictures", "ImportError: broken bin"),
    ):
        path = f"needy_plugin.{name}.Class"
        with pytest.raises(ModelError, match=message):
            ResolvedModel(ModelManifest("m", chat_class_path=path), path, "chat").load()


@for_each("code", ["import lmms_eval.no_such", "from lmms_eval.api import no_such"])
def test_a_plugin_is_never_told_to_install_this_package(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"asking_plugin_{len(code)}"
    write_plugin(tmp_path, name, {"__init__.py": "", "model.py": f"{code}\n"})
    write_plugin(tmp_path, f"{name}_whole", {"__init__.py": "", "models.py": f"{code}\n"})
    monkeypatch.syspath_prepend(str(tmp_path))
    path = f"{name}.model.Class"
    with pytest.raises(ModelError, match=r"Error: lmms_eval\.\S*no_such is not part of this version") as caught:
        ResolvedModel(ModelManifest("m", chat_class_path=path), path, "chat").load()
    assert "pip install" not in str(caught.value)
    with pytest.raises(ModelError, match=r"Error: lmms_eval\.\S*no_such is not part of this version"):
        ModelRegistry(f"{name}_whole").resolve("baseline")


def test_entry_points_beat_built_in_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = "from lmms_eval.api.registry import ModelManifest\n"
    one = manifest + f"one = ModelManifest('hf', chat_class_path='{HERE}.Chat')\n"
    write_plugin(tmp_path, "entry_one", {"__init__.py": one})
    write_entry_point(tmp_path, "entry_one", "one = entry_one:one")
    several = manifest + "several = [ModelManifest('listed', chat_class_path='a.B', aliases=('listed_too',))]\n"
    write_plugin(tmp_path, "entry_list", {"__init__.py": several})
    write_entry_point(tmp_path, "entry_list", "several = entry_list:several")
    write_plugin(tmp_path, "entry_bad", {"__init__.py": "bad = [5]\n"})
    write_entry_point(tmp_path, "entry_bad", "bad = entry_bad:bad\nabsent = entry_absent:x")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = ModelRegistry()
    assert registry.resolve("huggingface").load() is Chat
    assert registry.resolve("listed_too").class_path == "a.B"
    with pytest.raises(UnknownNameError, match=r"bad = entry_bad:bad .*absent = entry_absent:x"):
        registry.resolve("something_else")


def test_old_plugin_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = "AVAILABLE_MODELS = {'tiny': 'Tiny', 'full': 'elsewhere.module.Full'}\n"
    write_plugin(tmp_path, "old_plugin", {"__init__.py": "", "models/__init__.py": table, "tasks/a.yaml": "task: a\n"})
    write_plugin(tmp_path, "only_models", {"__init__.py": "", "models/__init__.py": "AVAILABLE_MODELS = {}\n"})
    write_plugin(tmp_path, "only_tasks", {"__init__.py": "", "tasks/__init__.py": ""})
    write_plugin(tmp_path, "broken_plugin", {"__init__.py": "", "models/__init__.py": "1 / 0\n"})
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = ModelRegistry("old_plugin, only_models,only_tasks,")
    assert registry.resolve("tiny").class_path == "old_plugin.models.tiny.Tiny"
    assert registry.resolve("full").class_path == "elsewhere.module.Full"
    assert registry.plugin_task_folders() == [tmp_path / "old_plugin" / "tasks", tmp_path / "only_tasks" / "tasks"]
    for package, message in (("absent_plugin", "No module named"), ("broken_plugin", "ZeroDivisionError")):
        with pytest.raises(ModelError, match=message):
            ModelRegistry([package]).list_models()
    with pytest.raises(ModelError, match="PYTHONPATH"):
        ModelRegistry(["absent_plugin"]).plugin_task_folders()


def test_model_args_win_over_options() -> None:
    options = BuildOptions(batch_size=4, device="cpu", chunk_size=3)
    built = build_model(resolved("Simple"), {"pretrained": "p", "batch_size": 2}, options)
    assert isinstance(built, LegacyAdapter) and isinstance(built.plugin, Simple)
    assert built.plugin.given == {"pretrained": "p", "batch_size": 2, "device": "cpu"}
    assert built.concurrency == 3


@for_each(
    ("given", "flag", "trusts"),
    [({}, False, False), ({}, True, True), ({"trust_remote_code": False}, True, False)],
)
def test_the_flag_for_remote_code_reaches_models_that_have_the_argument(
    given: dict[str, Any], flag: bool, trusts: bool
) -> None:
    options = BuildOptions(trust_remote_code=flag)
    built = build_model(resolved("Trusting"), {"pretrained": "p", **given}, options)
    assert isinstance(built, LegacyAdapter) and isinstance(built.plugin, Trusting)
    assert built.plugin.given["trusts"] is trusts
    other = build_model(resolved("Simple"), {"pretrained": "p"}, options)
    assert isinstance(other, LegacyAdapter) and isinstance(other.plugin, Simple)
    assert "trust_remote_code" not in other.plugin.given


def test_options_that_a_constructor_does_not_take_are_left_out() -> None:
    built = build_model(resolved("Chat", "chat"), {}, BuildOptions(batch_size=4, max_batch_size=8, device="cpu"))
    assert isinstance(built, LegacyAdapter) and built.concurrency == 32


def test_argument_strings() -> None:
    built = build_model(resolved("Simple"), "pretrained=a/b,depth=3,flag=true", BuildOptions())
    assert isinstance(built, LegacyAdapter)
    assert built.plugin.given == {"pretrained": "a/b", "batch_size": 1, "depth": 3, "flag": True}  # type: ignore[attr-defined]


@for_each(
    ("name", "kind", "arguments", "message"),
    [
        ("Simple", "simple", {}, r"needs --model_args pretrained=\.\.\."),
        ("Chat", "chat", {"pretraned": "x"}, "no argument 'pretraned'.*did you mean pretrained"),
        ("Chat", "chat", {"zzz": "secret"}, "it takes: pretrained"),
        ("Chat", "chat", {"pretrained": "missing"}, "cannot be built: OSError: no such folder"),
    ],
)
def test_arguments_that_do_not_fit(name: str, kind: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        build_model(resolved(name, kind), arguments, BuildOptions())
    assert "secret" not in str(caught.value)


def test_build_by_name() -> None:
    model, found = ModelRegistry().build("baseline", {"strategy": "constant", "text": "B"}, BuildOptions(batch_size=1))
    assert isinstance(model, Baseline) and model.text == "B" and found.kind == "chat"
    assert adapt_model(model) is model
    assert isinstance(adapt_model(Chat()), Model)


@pytest.fixture
def golden_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(INPUTS / "plugin"))


def rows(name: str) -> list[dict[str, Any]]:
    lines = (INPUTS / "tasks" / "data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@needs_golden
@pytest.mark.usefixtures("golden_plugin")
def test_recorded_plugin_is_found_by_all_its_names() -> None:
    registry = ModelRegistry("golden_plugin")
    kinds = {name: registry.resolve(name).kind for name in ("scripted", "scripted_alias", "scripted_only_simple")}
    assert kinds == {"scripted": "chat", "scripted_alias": "chat", "scripted_only_simple": "simple"}
    assert registry.resolve("scripted", force_simple=True).kind == "simple"
    assert registry.resolve("scripted_simple").class_path == "golden_plugin.models.scripted_simple.ScriptedSimple"
    assert registry.plugin_task_folders() == [INPUTS / "plugin" / "golden_plugin" / "tasks"]


@needs_golden
@pytest.mark.usefixtures("golden_plugin")
@pytest.mark.parametrize("force_simple", [False, True])
def test_recorded_plugin_runs_unchanged(force_simple: bool) -> None:
    options = BuildOptions(force_simple=force_simple, batch_size=1)
    model, _ = ModelRegistry().build("scripted", {"suffix": "!"}, options)
    task = FakeTask(rows("short.jsonl"))
    model.attach_tasks([task])
    found = answers(model, task.requests())
    assert [response.text for response in found.values()] == [row["sim_response"] + "!" for row in task.docs]
    assert all((response.usage is None) == force_simple for response in found.values())


@needs_golden
@pytest.mark.usefixtures("golden_plugin")
def test_recorded_plugin_failing_once_costs_nothing_that_can_be_saved() -> None:
    model, _ = ModelRegistry().build("scripted_only_simple", {"fail_at": 2}, BuildOptions())
    task = FakeTask(rows("short.jsonl"))
    model.attach_tasks([task])
    found = answers(model, task.requests())
    assert [response.text for response in found.values()] == [row["sim_response"] for row in task.docs]


@needs_golden
@pytest.mark.usefixtures("golden_plugin")
def test_recorded_plugin_gives_likelihoods() -> None:
    model, _ = ModelRegistry().build("scripted_only_simple", {}, BuildOptions())
    task = FakeTask([{**row, "choices": row["options"]} for row in rows("choice.jsonl")], output_type="multiple_choice")
    model.attach_tasks([task])
    found = answers(model, task.choice_requests(0))
    assert [(response.loglikelihood, response.is_greedy) for response in found.values()] == [
        (1.0, True),
        (2.0, False),
        (3.0, False),
    ]
    chat, _ = ModelRegistry().build("scripted", {}, BuildOptions())
    chat.attach_tasks([task])
    with pytest.raises(ModelError, match="scripted chat model has no loglikelihood"):
        answers(chat, task.choice_requests(0))
