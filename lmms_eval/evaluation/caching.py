"""``--use_cache``: opens the response cache of a run, and identifies its model."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from lmms_eval.config import RunConfig, answer_options
from lmms_eval.evaluation.inputs import Collected
from lmms_eval.storage.codec import VolatileValue
from lmms_eval.utils.installed import package_version
from lmms_eval.utils.redaction import redact_text

if TYPE_CHECKING:
    from lmms_eval.engine.response_cache import ResponseCache

RENDERING = (
    "apply_chat_template", "system_instruction", "image_encode_format", "image_jpeg_quality", "t2i", "t2i_args",
)  # fmt: skip
"""Options that change what a back end sends for the same messages, or how its answer is processed."""
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")


def check_cache(config: RunConfig) -> None:
    """Raise ``UsageError`` if ``--use_cache`` names something that cannot be used."""
    if config.use_cache:
        from lmms_eval.engine.response_cache import CacheFile, cache_path

        CacheFile(cache_path(config.use_cache), check=False).close()


def open_cache(config: RunConfig, collected: Collected, opened: ExitStack) -> ResponseCache | None:
    """Open the cache of this run, which ``opened`` closes. Returns ``None`` without ``--use_cache``."""
    if not config.use_cache:
        return None
    from lmms_eval.engine.response_cache import CacheFile, CacheKeys, ResponseCache, cache_path

    keys = None
    if _is_known(collected):
        try:
            keys = CacheKeys(model_identity(config, collected), collected.model.reads_documents)
        except VolatileValue as error:
            logger.warning("--use_cache: nothing is cached, because an argument of the model is not stable: {}", error)
    else:
        logger.warning("--use_cache: nothing is cached, because the model object has no identity(): let it return one")
    arguments = _arguments(config, collected)
    named = (arguments.get(key) for key in ("model_version", "model", "pretrained", "path"))
    weights = next((value for value in named if isinstance(value, str)), config.model)
    name = redact_text(f"{collected.choice.backend} {weights}".strip())
    cache = ResponseCache(CacheFile(cache_path(config.use_cache)), keys, name, arguments)
    opened.callback(cache.close)
    return cache


def model_identity(config: RunConfig, collected: Collected) -> dict[str, Any]:
    """Return what determines the model's answers: back end, arguments (without secrets), weights and code."""
    options, arguments = answer_options(config), _arguments(config, collected)
    return {
        "version": package_version("lmms_eval") or "",
        "backend": collected.choice.backend,
        "model": collected.choice.model_id or collected.choice.name,
        "arguments": arguments,
        "files": {name: _stamps(value) for name, value in arguments.items() if isinstance(value, str)},
        "source": _source(type(collected.model)),
        "identity": dict(collected.model.identity()),
        "rendering": {name: options[name] for name in RENDERING},
    }


def log_cache(config: RunConfig, counts: Mapping[str, int]) -> None:
    """Log the file and the counts."""
    if config.use_cache and counts:
        from lmms_eval.engine.response_cache import cache_path

        listed = ", ".join(f"{number} {name}" for name, number in counts.items())
        logger.info("response cache {}: {}", cache_path(config.use_cache), listed)


def cache_part(config: RunConfig, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return ``cache`` of the results document, which is empty without ``--use_cache``."""
    if not config.use_cache:
        return {}
    from lmms_eval.engine.response_cache import cache_path

    return {"path": str(cache_path(config.use_cache)), **counts}


def _is_known(collected: Collected) -> bool:
    """Return whether the model is identified. A model object may hold any weights, so it must identify itself."""
    choice = collected.choice
    return choice.object is None or (not choice.legacy and bool(collected.model.identity()))


def _arguments(config: RunConfig, collected: Collected) -> dict[str, Any]:
    arguments: dict[str, Any] = answer_options(config, collected.choice.ignored_arguments)["model_args"]
    return {name: _USER_INFO.sub("", value) if isinstance(value, str) else value for name, value in arguments.items()}


def _stamps(value: str) -> list[list[Any]]:
    """Return names, sizes and times of the local files that an argument names. Weights may be overwritten in place."""
    try:
        root = Path(value).expanduser()
        files = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
        stats = [(path, path.stat()) for path in files] if value and root != Path() else []
    except (OSError, ValueError):  # not a path
        return []
    return [[str(path.relative_to(root)), stat.st_size, stat.st_mtime_ns] for path, stat in stats]


def _source(cls: type[Any]) -> str:
    """Return the digest of the code of a model's class, or an empty text if it has no file."""
    try:
        name = inspect.getsourcefile(cls)
        return hashlib.sha256(Path(name).read_bytes()).hexdigest() if name else ""
    except (TypeError, OSError):  # defined in an interactive session
        return ""
