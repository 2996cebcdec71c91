"""A model name after look-up: its manifest, the path of its class, and the import of that class."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.registry import ModelManifest
from lmms_eval.errors import ModelError
from lmms_eval.utils.absent_names import absent_name, told

Kind = Literal["chat", "simple"]
INSTALL_NAMES = {
    "vllm": "lmms_eval[vllm]",
    "sglang": "lmms_eval[sglang]",
    "anthropic": "lmms_eval[anthropic]",
    "google": "lmms_eval[gemini]",
    "litellm": "lmms_eval[litellm]",
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Package to install, by module, where the names differ."""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model name after look-up. The class is imported by ``load``."""

    manifest: ModelManifest
    class_path: str
    kind: Kind

    def load(self) -> type[Any]:
        """Import the class and check it.

        Raises:
            ModelError: a package is missing, the path is wrong, the class is no model or of the other interface.
        """
        model_id = self.manifest.model_id
        cls = _import_class(model_id, self.class_path)
        if not isinstance(cls, type) or not issubclass(cls, lmms | Model):
            raise ModelError(
                f"model {model_id!r}: {self.class_path} is no subclass of lmms_eval.api.model.Model or "
                "lmms_eval.api.model.lmms"
            )
        is_simple = bool(getattr(cls, "is_simple", False))
        if is_simple != (self.kind == "simple"):
            raise ModelError(
                f"model {model_id!r}: {self.class_path} has is_simple={is_simple}, but its manifest gives it as "
                f"{self.kind}_class_path; make the two agree"
            )
        return cls


def _import_class(model_id: str, path: str) -> Any:
    module_name, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    try:
        value: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(f"{missing}."):
            raise ModelError(f"model {model_id!r} is registered as {path}, but there is no module {missing}") from error
        if absent_name(error):
            raise ModelError(f"model {model_id!r} ({path}) cannot be imported: {told(error)}") from error
        root = missing.partition(".")[0]
        hint = f"pip install '{INSTALL_NAMES.get(root, root)}'"
        raise ModelError(f"model {model_id!r} needs the package {missing!r}: {hint}") from error
    except ImportError as error:
        raise ModelError(f"model {model_id!r} ({path}) cannot be imported: {told(error)}") from error
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise ModelError(f"model {model_id!r} is registered as {path}, but {module_name} has no {attribute!r}")
        value = getattr(value, part)
    return value
