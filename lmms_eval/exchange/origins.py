"""Origins of a run's numbers: the data sets of its tasks, the model, its judge, the options of requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from lmms_eval.api.generation import LENGTHS
from lmms_eval.results.facts import model_of, part_of
from lmms_eval.results.sample import finite, json_cell
from lmms_eval.tasks.data.splits import LOCAL_BUILDERS

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_IN_CACHE = re.compile(r"(?:^|/)datasets--(?P<name>[^/]+)/snapshots/(?P<revision>[0-9a-f]{40})/")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOCAL_ENGINES = {"hf": "transformers", "internvl": "transformers", "minicpm_v": "transformers"}
_ENGINES = ("vllm", "sglang")
_SERVICES = {"anthropic": "anthropic", "gemini": "google", "openai": "openai"}
"""Developer of the models that a service offers at its own address, by back end."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SHOWN_DIGITS = 16
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class DataSource(Struct, frozen=True):
    """The data set of a task."""

    task: str
    repository: str = ""
    """Name on the hub; empty for data that are not from there, as far as it is known."""
    configuration: str = ""
    split: str = ""
    revision: str = ""
    """Commit, if the run has recorded it."""
    stated_revision: str = ""
    """Revision that the task's file names."""
    documents: int | None = None
    """Documents of the split."""
    files: tuple[str, ...] = ()
    """Names of local files, without their folders."""
    task_hash: str = ""

    @property
    def is_local(self) -> bool:
        """Whether the documents were read from files that do not come from the hub's cache."""
        return bool(self.files) and not self.revision

    @classmethod
    def of(cls, document: Mapping[str, Any], task: str) -> DataSource:
        """Read what a results document states about the data of a task."""
        config = part_of(document, "configs", task)
        path, kwargs = str(config.get("dataset_path") or ""), part_of(config, "dataset_kwargs")
        stated = part_of(document, "data_files").get(task)
        files = [str(file) for file in stated] if isinstance(stated, list) else []
        cached = next((found for file in files if (found := _IN_CACHE.search(file.replace("\\", "/")))), None)
        revision = str(kwargs.get("revision") or "")
        splits = (config.get(f"{name}_split") for name in ("test", "validation", "training"))
        original = part_of(document, "n-samples", task).get("original")
        is_named = bool(_REPOSITORY.fullmatch(path)) and path not in (*LOCAL_BUILDERS, "pandas", "imagefolder")
        repository = cached["name"].replace("--", "/", 1) if cached else path if is_named else ""
        return cls(
            task=task,
            repository=repository,
            configuration=str(config.get("dataset_name") or ""),
            split=str(next(filter(None, splits), "")),
            revision=cached["revision"] if cached else revision if _COMMIT.fullmatch(revision) else "",
            stated_revision=revision,
            documents=original if isinstance(original, int) else None,
            files=tuple(PurePath(file.replace("\\", "/")).name for file in files),
            task_hash=str(part_of(document, "task_hashes").get(task) or ""),
        )

    def facts(self) -> dict[str, str]:
        """Return what else is known, as texts by name."""
        found = {
            "configuration": self.configuration,
            "split": self.split,
            "revision": self.revision or self.stated_revision,
            "files": ", ".join(dict.fromkeys(self.files[:10])),
            "task_hash": self.task_hash,
        }
        return {name: text for name, text in found.items() if text}


class ModelFacts(Struct, frozen=True):
    """The model of a run, or its judge."""

    name: str
    developer: str = ""
    """The part of the name before the slash; empty without one."""
    platform: str = ""
    """Service that answered; empty for a local model."""
    engine: str = ""
    engine_version: str = ""
    deployment: str = "unknown"
    """``self_deployed``, ``externally_managed`` or ``unknown``."""
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Name in the form ``DEVELOPER/MODEL`` if the developer is known."""
        return f"{self.developer}/{self.short}" if self.developer else self.short

    @property
    def short(self) -> str:
        return self.name.rpartition("/")[2] or self.name

    @classmethod
    def of(cls, document: Mapping[str, Any], developer: str = "") -> ModelFacts:
        """Read the model under test; ``developer`` replaces what its name states."""
        name, backend = model_of(document) or "unknown", str(document.get("model_source") or "")
        arguments = str(part_of(document, "config").get("model_args") or "")
        details = {"back_end": backend, "model_args": arguments}
        found = _facts(name, backend, _base_url(arguments), document, details)
        return replace(found, developer=developer) if developer else found

    @classmethod
    def of_judge(cls, document: Mapping[str, Any]) -> ModelFacts | None:
        """Read the judge; ``None`` if the run asked no judge."""
        judge = part_of(document, "judge")
        if not isinstance(judge.get("model"), str):
            return None
        provider = str(judge.get("provider") or "")
        return _facts(str(judge["model"]), provider, str(judge.get("base_url") or ""), document, {"back_end": provider})


def _facts(
    name: str, backend: str, base_url: str, document: Mapping[str, Any], details: Mapping[str, str]
) -> ModelFacts:
    developer, slash, _ = name.rpartition("/")
    is_path = name.startswith(("/", ".", "~")) or developer.count("/") > 0 or "\\" in name
    versions = part_of(document, "library_versions")
    engine = _LOCAL_ENGINES.get(backend, backend if backend in _ENGINES else "")
    host = urlsplit(base_url).hostname or "" if base_url else ""
    deployment = "self_deployed" if engine or host in _LOOPBACK else "unknown"
    developer, platform = developer if slash and not is_path else "", ""
    if backend in _SERVICES and not base_url:
        deployment, platform, developer = "externally_managed", backend, developer or _SERVICES[backend]
    return ModelFacts(
        name=name,
        developer=developer,
        platform=platform,
        engine=engine,
        engine_version=str(versions.get(engine) or "") if engine else "",
        deployment=deployment,
        details={key: text for key, text in details.items() if text},
    )


def _base_url(arguments: str) -> str:
    found = re.search(r"(?:^|,)base_url=([^,]+)", arguments)
    return found[1] if found else ""


def folder_name(text: str) -> str:
    """Return a text as the name of a folder: letters, digits, dots, dashes and underscores."""
    return _UNSAFE.sub("_", text).strip("._") or "unknown"


class RequestOptions(Struct, frozen=True):
    """Generation options of a task's requests."""

    options: Mapping[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any], task: str) -> RequestOptions:
        """Read the options as they were sent; of older results, those of the task's configuration."""
        sent = part_of(part_of(document, "effective_requests", task), "options")
        return cls(dict(sent or part_of(part_of(document, "configs", task), "generation_kwargs")))

    def number(self, name: str) -> float | None:
        value = self.options.get(name)
        return None if isinstance(value, bool) else finite(value)

    @property
    def max_tokens(self) -> int | None:
        """The most tokens of an answer; ``None`` if it is not stated as a number."""
        found = next((self.options[name] for name in LENGTHS if name in self.options), None)
        return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None

    def others(self) -> dict[str, str]:
        """Return the options other than temperature, ``top_p``, ``top_k`` and length, as texts."""
        known = {"temperature", "top_p", "top_k", *LENGTHS}
        return {
            str(name): value if isinstance(value, str) else json_cell(value)
            for name, value in self.options.items()
            if name not in known and value is not None
        }


def judge_texts(document: Mapping[str, Any], task: str) -> dict[str, str]:
    """Return the fingerprints of the texts that a task's judge was given, by name; empty if none is recorded."""
    texts = part_of(document, "judge_texts", task)
    found = {str(name): str(part_of(texts, name).get("fingerprint") or "") for name in texts}
    of_mmie = part_of(part_of(part_of(document, "mmie", task), "prompts"), "sha256")
    found |= {str(name): str(digest)[:_SHOWN_DIGITS] for name, digest in of_mmie.items()}
    return {name: digest for name, digest in found.items() if digest}


def recipe_facts(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what a run records about its recipe, as texts by name; empty without a recipe."""
    recipe = document.get("recipe")
    stated = recipe if isinstance(recipe, Mapping) else {"name": recipe} if recipe else {}
    texts = {
        str(name): value if isinstance(value, str) else json_cell(value) for name, value in stated.items() if value
    }
    return {name: text for name, text in texts.items() if text}
