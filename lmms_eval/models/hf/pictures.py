"""A cache of processed pictures, so that repeated ones are processed once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from lmms_eval.media.originals import ByteLRU

_INDEPENDENT = ("Qwen2VLImageProcessor", "GotOcr2ImageProcessor", "CLIPImageProcessor", "LlavaImageProcessor",
                "SiglipImageProcessor")  # fmt: skip
"""Image processors that process each picture independently and concatenate the results."""
_MAX_LOOKS = 1 << 16
_LOOK_SIZE = (8, 8)
_NEAREST = 0
"""Pillow's number of the nearest-neighbour filter."""


class _NotJoinableError(Exception):
    """The results of single pictures cannot be joined."""


class CachedPictures:
    """Wraps an image processor so that repeated pictures are processed once. The results are joined.

    Consecutive new pictures are processed together: most are never repeated, and processing each alone takes half as
    long again. Pictures that occur twice in a call, or look like an earlier one, are processed alone and cached.
    Thread-safe if the processor is.

    Args:
        part: an image processor with a true :func:`is_independent`.
        cache: results of the processor by picture and options.
        seen: the looks of earlier pictures.
    """

    def __init__(self, part: Any, cache: ByteLRU[Mapping[str, Any]], seen: ByteLRU[bool] | None = None) -> None:
        self._part = part
        self._cache = cache
        self._seen = seen or ByteLRU(_MAX_LOOKS, lambda _: 1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_part":
            raise AttributeError(name)
        return getattr(self._part, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> CachedPictures:
        """Copy the processor for a thread. The cache is shared."""
        import copy

        return CachedPictures(copy.deepcopy(self._part, memo), self._cache, self._seen)

    def __call__(self, images: Any, *arguments: Any, **options: Any) -> Any:
        from transformers import BatchFeature

        pictures = list(_flat(images))
        if arguments or not pictures or not all(hasattr(one, "mode") and hasattr(one, "resize") for one in pictures):
            return self._part(images, *arguments, **options)
        # A look is a few bytes that differ between most pictures, at a negligible cost.
        looks = [(picture.mode, picture.size, picture.resize(_LOOK_SIZE, _NEAREST).tobytes()) for picture in pictures]
        counts = Counter(looks)
        comes_again = [self._seen.get(look) is not None or counts[look] > 1 for look in looks]
        for look in counts:
            self._seen.put(look, True)
        if not any(comes_again):
            return self._part(images, **options)
        results: list[Mapping[str, Any]] = []
        for again, run in groupby(zip(comes_again, pictures, strict=True), key=itemgetter(0)):
            together = [picture for _, picture in run]
            if again or len(together) == 1:
                results += [self._single(picture, options) for picture in together]
            else:
                results.append(self._part(together, **options))
        try:
            return BatchFeature(data={name: _join([result[name] for result in results]) for name in results[0]})
        except _NotJoinableError:
            return self._part(images, **options)

    def _single(self, picture: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
        state = hashlib.sha256(f"{picture.mode} {picture.size}\0".encode())
        state.update(picture.tobytes())
        key = (state.hexdigest(), repr(sorted(options.items(), key=lambda item: item[0])))
        found = self._cache.get(key)
        if found is None:
            found = dict(self._part([picture], **options))
            self._cache.put(key, found)
        return found


def cache_pictures(processor: Any, max_bytes: int) -> ByteLRU[Mapping[str, Any]] | None:
    """Add a cache to a processor, and return it; ``None`` if its image part does not support that."""
    part = getattr(processor, "image_processor", None)
    if part is None or not max_bytes or not is_independent(part):
        return None
    cache: ByteLRU[Mapping[str, Any]] = ByteLRU(max_bytes, _size)
    processor.image_processor = CachedPictures(part, cache)
    return cache


def is_independent(part: Any) -> bool:
    """Return whether the result of a picture does not depend on the others of a batch."""
    return type(part).__name__.removesuffix("Pil").removesuffix("Fast") in _INDEPENDENT


def _flat(images: Any) -> Iterator[Any]:
    if isinstance(images, list | tuple):
        for item in images:
            yield from _flat(item)
    elif images is not None:
        yield images


def _join(values: Sequence[Any]) -> Any:
    import torch

    if all(isinstance(value, torch.Tensor) and value.dim() for value in values):
        if len({value.shape[1:] for value in values}) == 1:
            return torch.cat(list(values))
    elif all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    raise _NotJoinableError


def _size(result: Mapping[str, Any]) -> int:
    return sum(int(getattr(value, "nbytes", 64)) for value in result.values())
