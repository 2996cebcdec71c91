"""Model files of a plugin import their neighbours by the family's name, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """
from lmms_eval.api.model import lmms
from lmms_eval.api.registry import register_model
{imports}

@register_model("{name}")
class {cls}({base}):
    def generate_until(self, requests):
        return [{answer} for _ in requests]

    def loglikelihood(self, requests):
        return [(0.0, True) for _ in requests]

    def generate_until_multi_round(self, requests):
        return [["x"] for _ in requests]
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    files = {
        "__init__.py": "",
        "models/__init__.py": "AVAILABLE_MODELS = {'own_twin': 'plug.models.chat.gemini.Twin'}\n",
        "models/simple/__init__.py": "",
        "models/simple/diffusers_wm_base.py": "NUMBER = 7\n",
        "models/simple/gemini.py": MODEL.format(
            imports="from lmms_eval.models.simple.diffusers_wm_base import NUMBER\n"
            "import lmms_eval.models.simple.diffusers_wm_base",
            name="own_gemini", cls="Gemini", base="lmms", answer="str(NUMBER)",
        ),
        "models/chat/gemini.py": MODEL.format(
            imports="from lmms_eval.models.simple.gemini import Gemini\n"
            "from lmms_eval.models.model_utils.thyme.sandbox import run\n"
            "from lmms_eval.models.model_utils.load_video import read_video_pyav_base64, read_video_pyav\n"
            "from lmms_eval.tasks.mmmu.utils_group_img import process_images",
            name="own_chat", cls="Chat", base="Gemini", answer="run() + read_video_pyav_base64() + process_images()",
        ) + "    is_simple = False\n\n\nclass Twin(Gemini):\n    pass\n",
        "models/model_utils/thyme/__init__.py": "",
        "models/model_utils/thyme/sandbox.py": "from . import state\nstate.COUNT += 1\ndef run():\n    return 'ran'\n",
        "models/model_utils/thyme/state.py": "COUNT = 0\n",
        "models/model_utils/load_video.py": "def read_video_pyav_base64():\n    return '-video'\n"
        "def read_video_pyav():\n    return None\n",
        "tasks/mmmu/utils_group_img.py": "def process_images():\n    return '-images'\n",
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / "plug" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def ran(package: Path, code: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
    env |= {"XDG_STATE_HOME": str(package / "state")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=package)


@pytest.mark.parametrize("first", ["", "import lmms_eval.models.model_utils.load_video\n"])
def test_what_this_package_lacks_is_the_plugins(first: str, package: Path) -> None:
    done = ran(
        package,
        first
        + "from lmms_eval.models.registry import ModelRegistry\nfrom lmms_eval.tasks.yaml.included import include\n"
        "registry = ModelRegistry('plug')\nregistry.list_models()\n"
        "[include(folder) for folder in registry.plugin_task_folders()]\n"
        "import plug.models.chat.gemini as chat, plug.models.simple.gemini as simple, sys\n"
        "import lmms_eval.models.simple.gemini as named, lmms_eval.models.model_utils.load_video as ours\n"
        "import plug.models.model_utils.thyme.state as state\n"
        "print(chat.Chat.__bases__[0] is simple.Gemini is named.Gemini, named is simple, simple.__spec__.name,\n"
        "      chat.Chat().generate_until([1]), simple.Gemini().generate_until([1]), state.COUNT,\n"
        "      ours.read_video_pyav.__module__ == 'lmms_eval.compat.media',\n"
        "      chat.read_video_pyav is ours.read_video_pyav, hasattr(ours, 'no_such_name'))\n",
    )
    assert done.stdout.strip() == (
        "True True plug.models.simple.gemini ['ran-video-images'] ['7'] 1 True True False"
    ), done.stderr  # fmt: skip


def test_the_command_runs_such_a_model(package: Path) -> None:
    line = ["--model", "own_twin", "--plugins", "plug", "--tasks", "megabench_demo", "--limit", "1", "--allow_blank"]
    done = ran(package, f"from lmms_eval.cli.main import main\nraise SystemExit(main({line!r}))")
    assert done.returncode == 0, done.stderr
    assert "megabench_demo" in done.stdout


def test_without_the_plugin_the_absent_name_is_told(package: Path) -> None:
    done = ran(package, "import plug.models.chat.gemini")
    assert "No module named 'lmms_eval.models.simple.gemini'" in done.stderr


def test_a_name_that_no_one_has_is_told_as_before(package: Path) -> None:
    (package / "plug/models/simple/other.py").write_text(
        "from lmms_eval.models.model_utils.load_video import nothing\n"
    )
    done = ran(
        package,
        "from lmms_eval.models.registry import ModelRegistry\nModelRegistry('plug').list_models()\n"
        "import plug.models.simple.other",
    )
    assert "ImportError: cannot import name 'nothing'" in done.stderr


def test_a_plugin_that_cannot_be_imported_takes_nothing_from_others(package: Path) -> None:
    (package / "broken/models").mkdir(parents=True)
    (package / "broken/models/__init__.py").write_text("1 / 0\n")
    done = ran(
        package,
        "from lmms_eval.errors import ModelError\nfrom lmms_eval.models.registry import ModelRegistry\n"
        "try:\n    ModelRegistry('broken').list_models()\nexcept ModelError as error:\n    print('told', error)\n"
        "ModelRegistry().resolve('dummy').load()\nModelRegistry('plug').list_models()\n"
        "import plug.models.simple.gemini",
    )
    assert "ZeroDivisionError" in done.stdout and done.returncode == 0, done.stderr
