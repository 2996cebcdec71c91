"""Files for Kubernetes and the image: what they promise each other, and options that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval.cli.main import main
from lmms_eval.utils.redaction import is_secret_key
from tests.cases import for_each

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
FOLDER = ROOT / "examples" / "kubernetes"
OBJECTS = [
    (path.name, found)
    for path in sorted(FOLDER.glob("*.yaml"))
    for found in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
PODS = [found["spec"]["template"]["spec"] for _, found in OBJECTS if found["kind"] in ("Job", "Deployment")]


def options(pod: dict[str, Any]) -> dict[str, str]:
    pairs = (argument.lstrip("-").partition("=") for argument in pod["containers"][0]["args"])
    return {name: value for name, _, value in pairs}


def test_there_are_a_job_and_a_server() -> None:
    kinds = [(file, found["kind"]) for file, found in OBJECTS]
    assert kinds == [
        ("job.yaml", "PersistentVolumeClaim"), ("job.yaml", "Job"),
        ("server.yaml", "PersistentVolumeClaim"), ("server.yaml", "Deployment"), ("server.yaml", "Service"),
    ]  # fmt: skip


@for_each("pod", PODS, ids=["job", "server"])
def test_pods_are_restricted_and_keep_their_data(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    user = int(re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)[0])
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == user != 0
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    names = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == names
    claims = [
        volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume
    ]
    assert claims and all(
        any(found["kind"] == "PersistentVolumeClaim" and found["metadata"]["name"] == claim for _, found in OBJECTS)
        for claim in claims
    )
    given = options(pod)
    assert given.get("output_path", given.get("folder", "")).startswith("/data/")
    assert pod["terminationGracePeriodSeconds"] > float(given.get("grace", 30))


def test_the_jobs_options_are_understood(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = [value for value in PODS[0]["containers"][0]["args"] if not value.startswith("--output_path")]
    arguments = ["--tasks=no_such_task" if value.startswith("--tasks") else value for value in arguments]
    assert main([*arguments, "--output_path", str(tmp_path)]) == 2
    assert "no_such_task" in capsys.readouterr().err


def test_the_server_is_found_by_its_service_and_its_token_is_a_secret() -> None:
    deployment, service = (found for _, found in OBJECTS if found["kind"] in ("Deployment", "Service"))
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == labels
    token = next(item for item in PODS[1]["containers"][0]["env"] if item["name"] == "LMMS_EVAL_SERVER_TOKEN")
    assert "value" not in token and token["valueFrom"]["secretKeyRef"]["key"] == "token"
    assert deployment["spec"]["replicas"] == 1 and deployment["spec"]["strategy"]["type"] == "Recreate"


def test_the_image_holds_no_secrets_and_only_what_it_is_made_of() -> None:
    names = re.findall(r"^(?:ARG|ENV) +(\w+)|^ +(\w+)=", DOCKERFILE, re.MULTILINE)
    assert not [name for pair in names for name in pair if name and is_secret_key(name)]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert "*" in ignored and "lmms_eval/viewer/web" in ignored
    copied = [
        word.removeprefix("./")
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for word in line.split()[:-1]
    ]
    assert sorted(copied) == sorted(kept) and all((ROOT / name).exists() for name in kept)
    assert DOCKERFILE.rindex("USER 1000") > DOCKERFILE.rindex("RUN ")
