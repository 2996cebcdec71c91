"""Weights of networks, in the run's folder of weights or, if that is allowed, on the hub; pictures as tensors.

A network whose weights or packages are missing makes its task *not evaluated*: the error here names the metric, the
task, what is missing and the setting that supplies it. Nothing is downloaded unless ``Context.download`` is set.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import ConfigError
from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures.contract import Context

FILE_ENDINGS = (".safetensors", ".pth", ".pt", ".bin", ".npz", ".ckpt")
"""Endings, after the network's key, of weights that are one file."""
_Loaded = TypeVar("_Loaded")


class Network(Struct, frozen=True):
    """A network of metrics."""

    key: str
    """Name of its sub-folder (as ``save_pretrained`` writes it) or of its file in the folder of weights."""
    model_id: str = ""
    """Repository on the hub, or empty if the network is missing."""
    package: str = "torch transformers"
    """Names of the required modules, separated by spaces."""


def locate(network: Network, context: Context, item: Item) -> Path | str:
    """Return the source to load a network from: a path in ``context.weights`` (``<key>``, or ``<key>`` with an ending
    of ``FILE_ENDINGS``), else, if ``context.download`` is set, its name on the hub.

    Raises ``NotEvaluated`` if its packages or its weights are missing.
    """
    missing = [f"the package {name}" for name in network.package.split() if not _is_installed(name)]
    if missing:
        raise not_evaluated(item, f"{' and '.join(missing)} ({network.key})", f"pip install {network.package}")
    if context.weights is not None:
        for ending in ("", *FILE_ENDINGS):
            if (path := context.weights / (network.key + ending)).exists():
                return path
    if context.download and network.model_id:
        return network.model_id
    place = "no folder of weights is given" if context.weights is None else f"not at {context.weights / network.key}"
    raise not_evaluated(item, f"the weights {network.model_id or network.key} ({place})", _remedy(network))


def loaded(load: Callable[[str, str], _Loaded], network: Network, context: Context, item: Item) -> _Loaded:
    """Return ``load(source, device)`` for the source of a network. Cache ``load`` (``functools.lru_cache``).

    Raises:
        NotEvaluated: packages or weights are missing, or cannot be loaded.
        ConfigError: the device is missing.
    """
    source = locate(network, context, item)
    try:
        return load(str(source), usable_device(context))
    except load_errors() as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise not_evaluated(
            item, f"usable weights of {network.key}: {source} cannot be loaded ({reason})", _remedy(network)
        ) from error


def opener(network: Network) -> Callable[[Callable[[str, str], _Loaded]], Callable[[Context, Item], _Loaded]]:
    """Turn ``load(source, device)`` into a function of context and item, which loads the network once.

    The function raises the errors of ``loaded``.
    """

    def decorated(load: Callable[[str, str], _Loaded]) -> Callable[[Context, Item], _Loaded]:
        once = functools.lru_cache(maxsize=1)(load)

        def opened(context: Context, item: Item) -> _Loaded:
            return loaded(once, network, context, item)

        opened.__doc__ = load.__doc__
        return opened

    return decorated


def not_evaluated(item: Item, missing: str, remedy: str) -> NotEvaluated:
    """Return the error about a missing part. It names the metric, the task, what is missing and how to supply it."""
    return NotEvaluated(f"{item.facts.metric} of {item.facts.name.strip()!r} needs {missing}: {remedy}")


def load_errors() -> tuple[type[Exception], ...]:
    """Return the errors of loading weights from files that are missing, damaged or of another network."""
    errors = (OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError, TypeError, EOFError)
    if not _is_installed("safetensors"):
        return (*errors, pickle.UnpicklingError)
    from safetensors import SafetensorError

    return (*errors, pickle.UnpicklingError, SafetensorError)


def usable_device(context: Context) -> str:
    """Return the device of a run. Raises ``ConfigError`` if torch does not know it, or it is missing."""
    import torch

    try:
        torch.empty(0, device=context.device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"networks of metrics cannot run on device {context.device!r}: {error}") from error
    return context.device


@contextlib.contextmanager
def inference() -> Iterator[None]:
    """Run forward passes with numbers that do not depend on the run: no gradients, full float32, fixed kernels."""
    import torch

    with (
        torch.inference_mode(),
        torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
    ):
        yield


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _remedy(network: Network) -> str:
    local = f"put them at FOLDER/{network.key} and name FOLDER with the setting `weights`"
    return f"{local}, or allow fetching them with `download`" if network.model_id else local


if TYPE_CHECKING:
    import torch
    from PIL import Image

Floats = npt.NDArray[np.float32]
BATCH = 16
"""Pictures in one forward pass."""
_WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
_MAX_ASPECT = 8
_Value = TypeVar("_Value")


Colours = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Mean and standard deviation of red, green and blue (0 to 1) that a network was trained with."""
OPENAI: Colours = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
"""Colours of CLIP."""
IMAGENET: Colours = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
KINETICS: Colours = ((0.43216, 0.394666, 0.37645), (0.22803, 0.22145, 0.216989))
HALF: Colours = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
"""Scaling to -1 to 1."""


def batches(values: Iterable[_Value], size: int = BATCH) -> Iterator[list[_Value]]:
    """Yield consecutive parts of at most ``size`` values, reading the values lazily."""
    source = iter(values)
    while part := list(itertools.islice(source, size)):
        yield part


def resize_short_side(image: Image.Image, size: int, *, bicubic: bool = False) -> Image.Image:
    """Scale a picture until its shorter side has ``size`` pixels and its longer one at most 8 times as many."""
    from PIL import Image

    scale = size / min(image.size)
    width, height = (min(max(size, round(side * scale)), _MAX_ASPECT * size) for side in image.size)
    return image.resize((width, height), Image.Resampling.BICUBIC if bicubic else Image.Resampling.BILINEAR)


def centre_crop(image: Image.Image, size: int) -> Image.Image:
    """Return the middle square of ``size`` pixels of a picture that is not smaller."""
    left, top = (image.width - size) // 2, (image.height - size) // 2
    return image.crop((left, top, left + size, top + size))


def stack(images: Sequence[Image.Image], colours: Colours) -> torch.Tensor:
    """Return RGB pictures of one size as a normalised tensor ``(pictures, 3, height, width)``."""
    import torch

    array = np.stack([np.asarray(image.convert("RGB"), dtype=np.float32) for image in images]) / 255
    mean, deviation = (np.asarray(part, np.float32) for part in colours)
    array = (array - mean) / deviation
    return torch.from_numpy(np.ascontiguousarray(array.transpose(0, 3, 1, 2)))


def numpy_rows(parts: Sequence[torch.Tensor]) -> Floats:
    """Join parts of rows to one float32 array. Raises ``ValueError`` for damaged weights: a number is not finite."""
    rows: Floats = np.concatenate([part.float().cpu().numpy() for part in parts])
    if not math.isfinite(float(np.sum(rows, dtype=np.float64))):
        raise ValueError("the network gives numbers that are not finite: check its weights")
    return rows


def unit_rows(rows: torch.Tensor) -> torch.Tensor:
    """Scale each row to length 1."""
    import torch

    return torch.nn.functional.normalize(rows, dim=-1)


def read_weights(source: str) -> dict[str, torch.Tensor]:
    """Read the tensors of a file of weights, or of the one in a folder, by name. They are float32 on the CPU. Nothing
    in the file is executed.

    Raises:
        OSError: there is no such file.
        ValueError: it holds no table of tensors.
        Exception: others of ``load_errors()``, for a damaged file.
    """
    import torch

    path = Path(source)
    if path.is_dir():
        known = next((path / name for name in _WEIGHT_FILES if (path / name).is_file()), None)
        if known is None:
            raise FileNotFoundError(f"{path} does not hold any of {', '.join(_WEIGHT_FILES)}")
        path = known
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        found: object = load_file(path)
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    else:
        found = torch.load(path, map_location="cpu", weights_only=True)
    for name in ("state_dict", "model"):
        if isinstance(found, dict) and isinstance(found.get(name), dict):
            found = found[name]
    if not isinstance(found, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in found.values()):
        raise ValueError(f"{path} holds no table of tensors")
    return {str(name): one.float() if one.is_floating_point() else one for name, one in found.items()}


def need(weights: dict[str, torch.Tensor], names: Sequence[str], device: str = "cpu") -> dict[str, torch.Tensor]:
    """Return the tensors of a network, moved to a device. Raises ``KeyError`` if a tensor is missing."""
    missing = [name for name in names if name not in weights]
    if missing:
        raise KeyError(f"{len(missing)} tensors are missing, the first are {', '.join(missing[:3])}")
    return {name: weights[name].to(device) for name in names}


def pretrained(kind: Any, source: str, device: str, ignored: str = "", **options: Any) -> Any:
    """Load a network of transformers by its class ``kind``, as float32.

    Raises ``ValueError`` if parts of the network have no weights, other than those whose name holds ``ignored``.
    """
    local = Path(source).exists()
    model, report = kind.from_pretrained(source, local_files_only=local, output_loading_info=True, **options)
    absent = sorted(name for name in report["missing_keys"] if not ignored or ignored not in name)
    if absent:
        raise ValueError(f"{len(absent)} parts of the network have no weights, the first are {', '.join(absent[:3])}")
    return model.float().eval().to(device)


class LoadedNetwork(Struct, frozen=True, eq=False):
    """A network in memory."""

    model: Any
    """The network as its package has it, or the table of its weights."""
    device: str

    def rows_of(
        self, values: Iterable[_Value], run: Callable[[list[_Value]], torch.Tensor], size: int = BATCH
    ) -> Floats:
        """Return the rows that ``run`` computes for batches of values, reading the values lazily."""
        with inference():
            return numpy_rows([run(part) for part in batches(values, size)])


class TextTower(LoadedNetwork, frozen=True, eq=False):
    """A loaded network of two towers, as transformers has them, and its tokenizer."""

    tokenizer: Any
    longest: int
    """Texts are cut after so many tokens."""

    def texts(self, texts: Sequence[str]) -> Floats:
        """``(texts, dimensions)``, each of length 1."""

        def run(part: list[str]) -> torch.Tensor:
            made = self.tokenizer(part, padding=True, truncation=True, max_length=self.longest, return_tensors="pt")
            tokens = made.to(self.device)
            seen = self.model.text_model(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"])
            return unit_rows(self.model.text_projection(seen.pooler_output))

        return self.rows_of(texts, run)
