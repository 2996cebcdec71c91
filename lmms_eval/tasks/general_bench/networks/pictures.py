"""Networks of pictures: CLIP, DINO, InceptionV3, a classifier, LAION's aesthetic predictor, and MUSIQ.

InceptionV3 gives 2048 numbers for a picture, for the Frechet inception distance (Heusel et al., 2017). The network is
that of TensorFlow's 2015 graph: its average pools leave out the padding, and its last block pools by the maximum. The
weights are the usual port of that graph to torch (``pt_inception-2015-12-05-6726825d.pth``). Pictures are scaled to
299 x 299 as in TensorFlow 1 (bilinear between the corner pixels, without smoothing), then ``(x - 128) / 128``; other
ways to scale change a FID by whole points. The network is written over the table of weights and does not need
torchvision.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from lmms_eval.tasks.general_bench.networks import base

if TYPE_CHECKING:
    import torch
    from PIL import Image

    from lmms_eval.tasks.general_bench.items import Item
    from lmms_eval.tasks.general_bench.measures.contract import Context

Floats = npt.NDArray[np.float32]
FID_INCEPTION = base.Network("inception-v3-fid", package="torch")
SIDE = 299
_EPSILON = 1e-3
_PARTS = ("conv.weight", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")

Chain = tuple[str, ...]


class Block(Struct, frozen=True):
    """A block of parallel chains of convolutions, joined by channel."""

    name: str
    chains: tuple[Chain, ...]
    """A last name with ``|`` names two parallel convolutions."""
    pool: str
    """``mean`` or ``max`` (both keep the size, a convolution follows), or ``halve`` (maximum, nothing follows)."""


STEM = ("Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", "Conv2d_3b_1x1", "Conv2d_4a_3x3")
_DOUBLE = ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3")
_SEVEN = ("branch7x7_1", "branch7x7_2", "branch7x7_3")
_SEVENS = tuple(f"branch7x7dbl_{number}" for number in range(1, 6))
_A: tuple[Chain, ...] = (("branch1x1",), ("branch5x5_1", "branch5x5_2"), _DOUBLE)
_C: tuple[Chain, ...] = (("branch1x1",), _SEVEN, _SEVENS)
_E: tuple[Chain, ...] = (
    ("branch1x1",),
    ("branch3x3_1", "branch3x3_2a|branch3x3_2b"),
    ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3a|branch3x3dbl_3b"),
)
_D: tuple[Chain, ...] = (
    ("branch3x3_1", "branch3x3_2"),
    ("branch7x7x3_1", "branch7x7x3_2", "branch7x7x3_3", "branch7x7x3_4"),
)
BLOCKS = (
    *(Block(f"Mixed_5{letter}", _A, "mean") for letter in "bcd"),
    Block("Mixed_6a", (("branch3x3",), _DOUBLE), "halve"),
    *(Block(f"Mixed_6{letter}", _C, "mean") for letter in "bcde"),
    Block("Mixed_7a", _D, "halve"),
    Block("Mixed_7b", _E, "mean"),
    Block("Mixed_7c", _E, "max"),
)


class Inception(base.LoadedNetwork, frozen=True, eq=False):
    """InceptionV3. ``model`` is the table of its weights."""

    def pictures(self, images: Iterable[Image.Image]) -> npt.NDArray[np.float32]:
        """Return the features ``(pictures, 2048)`` of RGB pictures of any size."""
        import torch

        def run(part: list[Image.Image]) -> torch.Tensor:
            pixels = np.stack([scale_as_tensorflow(np.asarray(image.convert("RGB"))) for image in part])
            tensor = torch.from_numpy(np.ascontiguousarray((pixels - 128).transpose(0, 3, 1, 2) / 128))
            return inception_forward(tensor.to(self.device), self.model)

        return self.rows_of(images, run)


def convolutions() -> list[str]:
    """Return the names of all 94 convolutions."""
    names = list(STEM)
    for block in BLOCKS:
        chained = [part for chain in block.chains for name in chain for part in name.split("|")]
        pooled = [] if block.pool == "halve" else ["branch_pool"]
        names += [f"{block.name}.{name}" for name in (*chained, *pooled)]
    return names


def scale_as_tensorflow(pixels: npt.NDArray[np.uint8], side: int = SIDE) -> npt.NDArray[np.float32]:
    """Scale a picture to ``(side, side, 3)``. Output pixel ``i`` lies at ``i * size / side``, between two pixels."""
    (top, bottom, down), (left, right, across) = (_positions(size, side) for size in pixels.shape[:2])
    upper, lower = pixels[top].astype(np.float32), pixels[bottom].astype(np.float32)
    tall = upper + (lower - upper) * down[:, None, None]
    scaled: npt.NDArray[np.float32] = tall[:, left] + (tall[:, right] - tall[:, left]) * across[None, :, None]
    return scaled


def inception_forward(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return ``(pictures, 2048)`` for ``(pictures, 3, 299, 299)``: the mean of the last block over the picture."""
    import torch.nn.functional as nn

    x = _convolve(x, "Conv2d_1a_3x3", weights, 2, padded=False)
    x = _convolve(x, "Conv2d_2a_3x3", weights, padded=False)
    x = nn.max_pool2d(_convolve(x, "Conv2d_2b_3x3", weights), 3, 2)
    x = _convolve(x, "Conv2d_3b_1x1", weights)
    x = nn.max_pool2d(_convolve(x, "Conv2d_4a_3x3", weights, padded=False), 3, 2)
    for block in BLOCKS:
        x = _block(x, block, weights)
    return x.mean(dim=(2, 3))


def _block(x: torch.Tensor, block: Block, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    import torch
    import torch.nn.functional as nn

    halve = block.pool == "halve"
    parts = []
    for chain in block.chains:
        last = x
        for name in chain[:-1]:
            last = _convolve(last, f"{block.name}.{name}", weights)
        if halve:
            parts.append(_convolve(last, f"{block.name}.{chain[-1]}", weights, 2, padded=False))
        else:
            parts += [_convolve(last, f"{block.name}.{name}", weights) for name in chain[-1].split("|")]
    if halve:
        parts.append(nn.max_pool2d(x, 3, 2))
    else:
        by_max = block.pool == "max"
        pooled = nn.max_pool2d(x, 3, 1, 1) if by_max else nn.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        parts.append(_convolve(pooled, f"{block.name}.branch_pool", weights))
    return torch.cat(parts, dim=1)


def _convolve(
    x: torch.Tensor, name: str, weights: dict[str, torch.Tensor], stride: int = 1, *, padded: bool = True
) -> torch.Tensor:
    """Apply convolution, batch normalisation with the running values, and ReLU. ``padded`` keeps the size."""
    import torch.nn.functional as nn

    kernel, scale, shift, mean, variance = (weights[f"{name}.{part}"] for part in _PARTS)
    padding = (kernel.shape[2] // 2, kernel.shape[3] // 2) if padded else (0, 0)
    x = nn.conv2d(x, kernel, None, stride, padding)
    return nn.relu(nn.batch_norm(x, mean, variance, scale, shift, False, 0.0, _EPSILON))


def _positions(size: int, side: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the pixels below and above each output pixel along a side, and its share of the way between them."""
    places = np.arange(side, dtype=np.float32) * np.float32(size / side)
    low = np.minimum(places.astype(np.int64), size - 1)
    return low, np.minimum(low + 1, size - 1), (places - low).astype(np.float32)


@base.opener(FID_INCEPTION)
def inception(source: str, device: str) -> Inception:
    """Load the network."""
    names = [f"{name}.{part}" for name in convolutions() for part in _PARTS]
    return Inception(base.need(base.read_weights(source), names, device), device)


B32 = base.Network("clip-vit-base-patch32", "openai/clip-vit-base-patch32")
L14 = base.Network("clip-vit-large-patch14", "openai/clip-vit-large-patch14")
AESTHETIC = base.Network("laion-aesthetic-vit-l-14-linear", package="torch")
"""``sa_0_4_vit_l_14_linear.pth`` of LAION's aesthetic predictor, under this name."""
VIT_B16 = base.Network("dino-vitb16", "facebook/dino-vitb16")
VIT_IMAGENET = base.Network("vit-base-patch16-224", "google/vit-base-patch16-224")
KONIQ = base.Network("musiq-koniq", package="torch pyiqa")
"""pyiqa's weights ``musiq_koniq_ckpt-e95806b9.pth``, under this name."""
SPAQ = base.Network("musiq-spaq", package="torch pyiqa")
"""pyiqa's weights ``musiq_spaq_ckpt-358bb6af.pth``, under this name."""


class Clip(base.TextTower, frozen=True, eq=False):
    """CLIP: pictures and texts as vectors of one space (Radford et al., 2021). Their cosines are the CLIP scores.

    As in CLIP's training, pictures are scaled (bicubic) until the shorter side has the network's size, and cropped to
    the middle square. Texts are cut at the longest length that the network takes. The processing is our own, so that
    numbers do not depend on installed packages.
    """

    def pictures(self, images: Iterable[Image.Image]) -> Floats:
        """Return the vectors of pictures, ``(pictures, dimensions)``, each of length 1."""
        size = int(self.model.config.vision_config.image_size)

        def run(part: list[Image.Image]) -> torch.Tensor:
            cut = [base.centre_crop(base.resize_short_side(image, size, bicubic=True), size) for image in part]
            pooled = self.model.vision_model(pixel_values=base.stack(cut, base.OPENAI).to(self.device)).pooler_output
            return base.unit_rows(self.model.visual_projection(pooled))

        return self.rows_of(images, run)


def clip(network: base.Network, context: Context, item: Item) -> Clip:
    """Open ``B32`` or ``L14``, which is loaded once. Raises ``NotEvaluated`` if its packages or weights are missing."""
    return base.loaded(_load_clip, network, context, item)


@functools.lru_cache(maxsize=2)
def _load_clip(source: str, device: str) -> Clip:
    from transformers import CLIPModel, CLIPTokenizer

    model = base.pretrained(CLIPModel, source, device, "position_ids")
    tokenizer = CLIPTokenizer.from_pretrained(source, local_files_only=Path(source).exists())
    return Clip(model, device, tokenizer, int(model.config.text_config.max_position_embeddings))


def ratings(vectors: Floats, context: Context, item: Item) -> list[float]:
    """Return the rating of each picture by LAION's aesthetic predictor, nominally 1 to 10, from CLIP L/14 vectors of
    length 1.

    The predictor is a linear layer that was trained on ratings from 1 to 10. Raises ``NotEvaluated`` if it is missing,
    or its size is not that of the vectors.
    """
    layer = _aesthetic_layer(context, item)
    if layer.shape[0] - 1 != vectors.shape[1]:
        raise base.not_evaluated(
            item,
            f"vectors of {layer.shape[0] - 1} dimensions for {AESTHETIC.key}, not of {vectors.shape[1]}",
            "use CLIP ViT-L/14 for the features and its own layer",
        )
    rows = np.asarray(vectors, dtype=np.float64)
    return [float(value) for value in rows @ layer[:-1] + layer[-1]]


@base.opener(AESTHETIC)
def _aesthetic_layer(source: str, device: str) -> npt.NDArray[np.float64]:  # noqa: ARG001 - so small that it runs on the CPU
    """Return the layer's weights followed by its bias."""
    layer = [tensor.numpy().reshape(-1) for tensor in base.need(base.read_weights(source), ("weight", "bias")).values()]
    if layer[1].size != 1:
        raise ValueError(f"{source}: a layer with one output is wanted, not with {layer[1].size}")
    return np.concatenate(layer).astype(np.float64)


class Dino(base.LoadedNetwork, frozen=True, eq=False):
    """DINO (Caron et al., 2021): the class token of a self-supervised ViT, which describes the subject of a picture.

    Pictures are scaled (bilinear) until the shorter side has the network's size, and are not cropped: position
    encodings are interpolated if a picture is not square.
    """

    def pictures(self, images: Iterable[Image.Image]) -> Floats:
        """Return the class tokens after the last normalisation, ``(pictures, dimensions)``."""
        size = int(self.model.config.image_size)
        found = []
        with base.inference():
            for part in base.batches(images):
                scaled = [base.resize_short_side(image, size) for image in part]
                for _, alike in itertools.groupby(scaled, lambda image: image.size):
                    pixels = base.stack(list(alike), base.IMAGENET).to(self.device)
                    out = self.model(pixel_values=pixels, interpolate_pos_encoding=True)
                    found.append(out.last_hidden_state[:, 0])
        return base.numpy_rows(found)


@base.opener(VIT_B16)
def dino(source: str, device: str) -> Dino:
    """Load DINO ViT-B/16."""
    from transformers import ViTModel

    return Dino(base.pretrained(ViTModel, source, device, add_pooling_layer=False), device)


class Classifier(base.LoadedNetwork, frozen=True, eq=False):
    """A classifier of pictures (ViT-B/16 with ImageNet's 1000 classes), which names the class of a generated one."""

    def classify(self, image: Image.Image) -> int:
        """Return the number of the most likely class."""
        from PIL import Image

        size = int(self.model.config.image_size)
        square = image.resize((size, size), Image.Resampling.BILINEAR)
        with base.inference():
            scores = self.model(pixel_values=base.stack([square], base.HALF).to(self.device)).logits[0]
            return int(scores.argmax())

    def find(self, label: str | int) -> int | None:
        """Return the class of a number or of a name, or ``None`` if there is no such class.

        A name is one in the checkpoint's ``id2label``, or one of several that an entry lists between commas. Case does
        not matter.
        """
        names: dict[int, str] = self.model.config.id2label
        if isinstance(label, int) or label.strip().isdigit():
            return int(label) if int(label) in names else None
        wanted = _fold(label)
        matching = (number for number, name in names.items() if wanted in (_fold(name), *map(_fold, name.split(","))))
        return next(matching, None)


@base.opener(VIT_IMAGENET)
def classifier(source: str, device: str) -> Classifier:
    """Load the classifier."""
    from transformers import ViTForImageClassification

    return Classifier(base.pretrained(ViTForImageClassification, source, device), device)


def _fold(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


class Musiq(base.LoadedNetwork, frozen=True, eq=False):
    """MUSIQ (Ke et al., 2021): quality of a picture without a reference, 0 to 100. Needs the package pyiqa.

    The licence of pyiqa forbids commercial use, so no extra requires it: users who may use it install it themselves.
    Without it, the scores of frames can be computed elsewhere and given with the prediction.
    """

    def pictures(self, images: Iterable[Image.Image], longest: int | None = None) -> list[float]:
        """Return the quality of each picture. A picture with a side above ``longest`` is shrunk to it.

        Raises ``ValueError`` if a score is not finite: the weights are damaged.
        """
        import torch

        from lmms_eval.media.image import shrink

        found = []
        with base.inference():
            for image in images:
                pixels = np.array(shrink(image, max_side=longest).convert("RGB"), dtype=np.float32) / 255
                tensor = torch.from_numpy(pixels).permute(2, 0, 1)[None].to(self.device)
                found.append(float(self.model(tensor)))
        if not all(map(math.isfinite, found)):
            raise ValueError("MUSIQ gives scores that are not finite: check its weights")
        return found


def musiq(network: base.Network, context: Context, item: Item) -> Musiq:
    """Open ``KONIQ`` or ``SPAQ``, which is loaded once. Raises ``NotEvaluated`` if pyiqa or the weights are missing."""
    name = {KONIQ: "musiq", SPAQ: "musiq-spaq"}[network]
    return base.loaded(lambda source, device: _load_musiq(source, device, name), network, context, item)


@functools.lru_cache(maxsize=2)
def _load_musiq(source: str, device: str, name: str) -> Musiq:
    if not Path(source).is_file():
        raise FileNotFoundError(f"{source} is no file of weights")
    pyiqa = importlib.import_module("pyiqa")
    return Musiq(pyiqa.create_metric(name, device=device, pretrained_model_path=source), device)
