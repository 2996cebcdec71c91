"""From options to a model and its processor, with messages that say what is wrong and what to do."""

from __future__ import annotations

import copy
import importlib.util
import logging
import os
from dataclasses import dataclass, replace
from typing import Any

from lmms_eval.errors import ModelError
from lmms_eval.models.hf.folder import local_folder
from lmms_eval.models.hf.options import HFOptions
from lmms_eval.models.hf.processors import LoadedProcessor, load_processor, location, sampling_rate, source
from lmms_eval.models.hf.profile import Profile
from lmms_eval.utils.launch import local_processes

log = logging.getLogger(__name__)
_SHOWN_KEYS = 3
SPREADING = ("auto", "balanced", "balanced_low_0", "sequential")
"""Values of ``device_map`` that take every GPU in sight."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model that is ready to answer."""

    model: Any
    processor: Any
    tokenizer: Any
    device: Any
    """Device of the inputs (``torch.device``)."""
    dtype: str
    native_pixels: bool
    """The processor takes ``min_pixels`` and ``max_pixels`` itself."""
    absent_parts: frozenset[str]
    """Parts that the processor was built without, because torchvision is absent."""
    sampling_rate: int | None
    """Samples per second of sounds, where the model takes any."""
    flat_images: bool = False
    """The processor takes the pictures of a batch as one list, not one for each prompt."""


def load(options: HFOptions, profile: Profile | None = None) -> Loaded:
    """Load processor and model.

    Raises:
        ModelError: a folder or package is missing, or the files do not make a working model.
    """
    profile = profile or Profile()
    local_folder(options.pretrained, profile.parts)
    _check_packages(profile)
    check_processes(options)
    log.info("loading %s; the first time after an installation takes longest", options.pretrained)
    device = resolve_device(options.device)
    _check_type(options, profile)
    parts = _load_processor(options, profile)
    model = _load_model(options, profile, device)
    model.eval()
    if options.torch_compile:
        _compile(model, options)
    embedded_on = model.get_input_embeddings().weight.device  # with a ``device_map`` perhaps not the one asked for
    return Loaded(
        model=model,
        processor=parts.processor,
        tokenizer=parts.processor.tokenizer,
        device=device if embedded_on.type == "meta" else embedded_on,
        dtype=str(model.dtype).removeprefix("torch."),
        native_pixels=parts.native_pixels,
        absent_parts=parts.absent,
        sampling_rate=sampling_rate(parts.processor),
    )


def copies(loaded: Loaded, options: HFOptions) -> list[Loaded]:
    """``loaded`` once for each thread that encodes: with a processor and tokenizer of its own."""
    result = []
    for _ in range(options.preprocess_workers):
        processor = copy.deepcopy(loaded.processor)
        result.append(replace(loaded, processor=processor, tokenizer=processor.tokenizer))
    return result


def resolve_device(name: str) -> Any:
    """``auto`` takes the accelerator that is there; ``cuda`` under a launcher takes the process's own one.

    Raises:
        ModelError: no such device, or it is not available.
    """
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ModelError(f"hf: device={name!r} is not a device of torch: {error}") from error
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ModelError(f"hf: device={name} was asked for, but torch {torch.__version__} finds none")
        if device.index is None:
            rank = os.environ.get("LOCAL_RANK", "0")
            index = int(rank) % torch.cuda.device_count() if rank.isdigit() else 0
            device = torch.device("cuda", index)
    return device


def _check_packages(profile: Profile) -> None:
    absent = [name for name in profile.packages if importlib.util.find_spec(name) is None]
    if absent:
        raise ModelError(f"{profile.name} needs {' and '.join(absent)}: pip install {' '.join(absent)}")


def check_processes(options: HFOptions) -> None:
    """Raises ``ModelError`` where each of several processes would spread its model over the same GPUs."""
    import torch

    processes = local_processes(os.environ)
    if options.device_map in SPREADING and processes > 1 and torch.cuda.is_available():
        raise ModelError(
            f"hf: device_map={options.device_map} spreads one model over all GPUs, and each of the {processes} "
            "processes on this machine would do so: start one process (plain `python -m lmms_eval`), leave device_map "
            "out so that each process takes one GPU, or show each process its own GPUs (CUDA_VISIBLE_DEVICES)"
        )


def _load_processor(options: HFOptions, profile: Profile) -> LoadedProcessor:
    try:
        return load_processor(options, profile)
    except ModelError:
        raise
    except Exception as error:  # whatever transformers or a repository's own code raises
        raise _explain(options, profile, "processor", error) from error


def _check_type(options: HFOptions, profile: Profile) -> None:
    """A named family takes its own checkpoints only: another's prompts and pictures might be handled wrongly."""
    import transformers

    if not profile.model_types:
        return
    try:
        config = transformers.AutoConfig.from_pretrained(source(options), **location(options))
    except Exception as error:  # whatever transformers or a repository's own code raises
        raise _explain(options, profile, "configuration", error) from error
    classes = getattr(config, "architectures", None) or []
    if classes and not any(hasattr(transformers, name) for name in classes):
        raise ModelError(
            f"{profile.name}: {options.pretrained} is made for the code of its authors ({', '.join(classes)}), which "
            f"transformers has not; take the checkpoint that was converted for it, {_like(profile)}"
        )
    if config.model_type not in profile.model_types:
        raise ModelError(
            f"{profile.name}: {options.pretrained} holds a model of type {config.model_type!r}, "
            f"not {' or '.join(profile.model_types)}; use the wrapper of its family, or --model hf"
        )


def _like(profile: Profile) -> str:
    return f"as {profile.defaults['pretrained']} is" if "pretrained" in profile.defaults else "where there is one"


def _load_model(options: HFOptions, profile: Profile, device: Any) -> Any:
    import transformers

    arguments = {**location(options), dtype_keyword(): options.dtype}
    if options.attn_implementation:
        arguments["attn_implementation"] = options.attn_implementation
    if options.device_map is not None or device.type != "cpu":
        arguments["device_map"] = options.device_map if options.device_map is not None else {"": device}
    try:
        model, report = getattr(transformers, profile.loader).from_pretrained(
            source(options), output_loading_info=True, **arguments
        )
    except Exception as error:  # whatever transformers or a repository's own code raises
        raise _explain(options, profile, "model", error) from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise ModelError(
            f"hf: {options.pretrained} lacks {len(missing)} of the weights that its config.json describes "
            f"({', '.join(missing[:_SHOWN_KEYS])}, ...); they would be random. Is the checkpoint complete?"
        )
    return model


def dtype_keyword() -> str:
    """The name by which ``from_pretrained`` of the installed transformers takes the precision."""
    import transformers
    from packaging.version import Version

    return "dtype" if Version(transformers.__version__) >= Version("4.56") else "torch_dtype"


def _compile(model: Any, options: HFOptions) -> None:
    import torch

    backend = {} if options.torch_compile is True else {"backend": options.torch_compile}
    try:
        model.forward = torch.compile(model.forward, **backend)
    except Exception as error:  # an unknown backend has an exception of torch's own
        raise ModelError(f"hf: torch_compile={options.torch_compile} is not possible: {error}") from error


def _explain(options: HFOptions, profile: Profile, part: str, error: Exception) -> ModelError:
    name, text = options.pretrained, f"{type(error).__name__}: {error}".strip()
    if "connect to" in text or "offline" in text.lower() or "LocalEntryNotFound" in text:
        hint = "is no folder here, and the hub cannot be reached (or HF_HUB_OFFLINE is set) and its cache lacks it"
        return ModelError(f"hf: {name} {hint}. Give a local folder, or fetch it first with: hf download {name}")
    if "not a local folder and is not a valid model identifier" in text:
        return ModelError(f"hf: {name} is neither a folder here nor a repository of the hub that you may read")
    if "does not recognize this architecture" in text:
        return ModelError(
            f"{profile.name}: {name} holds a model of a type that transformers has not; {profile.name} takes "
            f"{profile.architecture} in the form of transformers, {_like(profile)}: {text.splitlines()[0]}"
        )
    if "trust_remote_code" in text:
        return ModelError(
            f"hf: {name} ships code of its own, which is not run unless you give trust_remote_code=true; "
            "read that code first"
        )
    if "Unrecognized configuration class" in text:
        return ModelError(f"hf: {name} is not {profile.architecture} of transformers: {text.splitlines()[0]}")
    if isinstance(error, ImportError):
        return ModelError(f"hf: the {part} of {name} needs a package that is not installed: {' '.join(text.split())}")
    return ModelError(f"hf: the {part} of {name} cannot be loaded: {text}")
