from __future__ import annotations

import os
import sys

from lmms_eval.config import load_configs
from lmms_eval.server.command import command_line, environment, run_options, with_sources, write_config
from lmms_eval.server.folder import JobFolder
from lmms_eval.server.settings import ServerSettings


def test_values_come_through_as_they_were(tmp_path):
    folder = JobFolder(tmp_path)
    odd = "a,b='c' \"d\": ${HOME} #\x07\t\u2028\U0001f600 yes"
    arguments = {"a": odd, "n": 1e-5, "l": ["1", 2]}
    request = {"model": "m", "tasks": ["t"], "model_args": arguments, "limit": 4, "offset": None}
    write_config(run_options(request, folder, ()), folder)
    (config,) = load_configs({"config": str(folder.config_file)}, {}).configs
    assert config.model_args == arguments
    assert (config.names("tasks"), config.limit, config.output_path) == (("t",), 4.0, str(folder.output))


def test_output_folders_and_devices(tmp_path):
    folder = JobFolder(tmp_path)
    assert run_options({"output_dir": "/x"}, folder, ())["output_path"] == "/x"
    assert run_options({"output_dir": "x"}, folder, ())["output_path"] == str(folder.work / "x")
    assert run_options({"device": "cuda:2"}, folder, ("2",))["device"] == "cuda"
    assert run_options({"device": "cuda:2"}, folder, ())["device"] == "cuda:2"


def test_commands_are_lists_of_words(tmp_path):
    folder = JobFolder(tmp_path)
    plain = command_line({"num_gpus": 1}, folder, continues=False)
    assert plain == [sys.executable, "-m", "lmms_eval", "--config", str(folder.config_file)]
    assert command_line({}, folder, continues=True) == [*plain, "--resume"]
    assert command_line({"output_dir": "/x"}, folder, continues=True) == plain
    several = command_line({"num_gpus": 4}, folder, continues=False)
    assert several[1:] == [
        "-m", "accelerate.commands.accelerate_cli", "launch", "--multi_gpu", "--num_processes", "4",
        "--main_process_port", "0", "-m", "lmms_eval", "--config", str(folder.config_file),
    ]  # fmt: skip


def test_additions_stand_beside_what_the_request_names():
    settings = ServerSettings(include_paths=("/own",), plugins=("mine",), data_root="/data")
    assert with_sources({"include_path": "/theirs", "model": "m"}, settings) == {
        "include_path": ["/own", "/theirs"], "plugins": ["mine"], "data_root": "/data", "model": "m",
    }  # fmt: skip
    assert with_sources({"data_root": "/other"}, settings)["data_root"] == "/other"
    assert with_sources({"model": "m"}, ServerSettings()) == {"model": "m"}


def test_the_environment_is_the_server_s_without_launchers_and_its_token():
    given = {
        "RANK": "1", "TORCHELASTIC_RUN_ID": "x", "ACCELERATE_MIXED_PRECISION": "no", "LMMS_EVAL_SERVER_TOKEN": "t",
        "HF_TOKEN": "h", "PYTHONPATH": f"relative{os.pathsep}/absolute",
    }  # fmt: skip
    found = environment(given, ("2", "3"))
    assert {name for name in given if name in found} == {"HF_TOKEN", "PYTHONPATH"}
    assert found["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert all(os.path.isabs(path) for path in found["PYTHONPATH"].split(os.pathsep))
    assert "CUDA_VISIBLE_DEVICES" not in environment(given, None)
    assert environment(given, ())["CUDA_VISIBLE_DEVICES"] == ""
