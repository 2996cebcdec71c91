"""Opening of the text-to-image model that ``--t2i`` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval.models.text_to_image.protocol import TextToImage

PROVIDERS = ("images", "diffusers")


def open_text_to_image(name: str, arguments: Mapping[str, Any], device: str | None = None) -> TextToImage:
    """``NAME`` or ``images:NAME``: a model on a server with an images API; ``diffusers:PATH``: a local pipeline.

    Raises:
        ModelError: wrong arguments, an absent package, or a pipeline that cannot be loaded.
    """
    head, found, rest = name.partition(":")
    provider, model = (head, rest) if found and head in PROVIDERS else ("images", name)
    if provider == "diffusers":
        from lmms_eval.models.text_to_image.diffusion import DiffusersPipeline

        return DiffusersPipeline(model, arguments, device)
    from lmms_eval.models.text_to_image.images_api import ImagesApi

    return ImagesApi(model, arguments)
