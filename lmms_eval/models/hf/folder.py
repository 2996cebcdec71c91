"""The content of a local model folder, and its gaps. Reads names only; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_eval.errors import ModelError

_ALWAYS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("the model's configuration (config.json)", ("config.json",)),
    ("weights (*.safetensors or pytorch_model*.bin)", ("*.safetensors", "*.bin")),
)
_PREPROCESSOR = ("preprocessor_config.json", "processor_config.json", "image_processor_config.json")
_PARTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tokenizer": (
        "a tokenizer (tokenizer.json, tokenizer.model or vocab.json)",
        ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json"),
    ),
    "image_processor": ("an image processor (preprocessor_config.json or processor_config.json)", _PREPROCESSOR),
    "feature_extractor": ("a feature extractor (preprocessor_config.json or processor_config.json)", _PREPROCESSOR),
    "audio_processor": ("an audio processor (preprocessor_config.json or processor_config.json)", _PREPROCESSOR),
}
VISION_PARTS = ("tokenizer", "image_processor")
EMBEDDED = "embedded"
"""Names the model that the package ships."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Identity of one file of a model folder."""

    name: str
    size: int
    modified_ns: int


def model_location(pretrained: str) -> str:
    """The package's own folder for ``embedded``; any other name stands for itself (``./embedded`` for a local one)."""
    return str(Path(__file__).parents[1] / EMBEDDED) if pretrained == EMBEDDED else pretrained


def local_folder(pretrained: str, parts: Sequence[str] = VISION_PARTS) -> Path | None:
    """The folder that ``pretrained`` names, or ``None`` where it is the name of a repository on the hub.

    Raises:
        ModelError: it is written like a path and there is no such folder, or the folder lacks a part.
    """
    path = Path(pretrained).expanduser()
    if path.is_dir():
        check_folder(path, parts)
        return path
    if path.exists():
        raise ModelError(f"hf: pretrained={pretrained} is a file; give the folder that holds the model")
    if path.is_absolute() or pretrained.startswith((".", "~")) or pretrained.count("/") > 1:
        near = next((parent for parent in path.absolute().parents if parent.is_dir()), Path("/"))
        raise ModelError(
            f"hf: model folder {pretrained} does not exist (the nearest folder that does is {near}); "
            "give the folder that holds config.json and the weights with --model_args pretrained=DIR"
        )
    return None


def check_folder(folder: Path, parts: Sequence[str] = VISION_PARTS) -> None:
    """Raises ``ModelError`` naming the folder and every part that it lacks."""
    needed = [*_ALWAYS, *(_PARTS[part] for part in parts)]
    lacking = [part for part, patterns in needed if not any(any(folder.glob(pattern)) for pattern in patterns)]
    if not lacking:
        return
    message = f"hf: {folder} is not a complete model folder: it lacks {', '.join(lacking)}"
    if (folder / "adapter_config.json").is_file():
        message += ". It is an adapter: merge it into its base model first"
    else:
        inner = sorted(found.parent.name for found in folder.glob("*/config.json"))
        if inner:
            message += f". Did you mean one of its folders: {', '.join(inner[:5])}?"
    raise ModelError(message)


def stamps(folder: Path) -> tuple[FileStamp, ...]:
    """All files that can change the answers, by name; hidden ones are left out."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            status = path.stat()
            found.append(FileStamp(name.as_posix(), status.st_size, status.st_mtime_ns))
    return tuple(found)
