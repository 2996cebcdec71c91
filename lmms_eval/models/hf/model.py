"""``hf``: one wrapper for all image-text-to-text models of transformers. See ``docs/models/hf.md``."""

from __future__ import annotations

import gc
import hashlib
import inspect
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.models.hf.answering import Answerer, Job
from lmms_eval.models.hf.batching import Failed, HalvingRunner, Shape, plan_batches
from lmms_eval.models.hf.folder import local_folder, stamps
from lmms_eval.models.hf.inputs import InputBuilder, Prepared
from lmms_eval.models.hf.options import HFOptions
from lmms_eval.models.hf.settings import DEFAULT_MAX_NEW_TOKENS, read_settings

if TYPE_CHECKING:
    from lmms_eval.models.hf.load import Loaded


class HuggingFace(Model):
    """A local model that pulls a batch and yields a batch. Arguments: the fields of :class:`HFOptions`.

    Raises:
        ModelError: an unknown argument, or a model that cannot be loaded.
    """

    kinds: frozenset[RequestKind] = frozenset({"generate_until", "loglikelihood"})
    __signature__: ClassVar[inspect.Signature] = inspect.signature(HFOptions)

    def __init__(self, **arguments: Any) -> None:
        from transformers import GenerationConfig

        from lmms_eval.models.hf.load import load

        self.options = HFOptions.from_arguments(arguments)
        self.concurrency = self.options.batch_size
        self.loaded: Loaded = load(self.options)
        self._inputs = InputBuilder(self.loaded, self.options)
        self._answerer = Answerer(self.loaded, self.generate, self.options.use_cache)
        self._runner: HalvingRunner[Job, Response] = HalvingRunner(self._answerer.answer, self._release)
        self._generation_names = frozenset(GenerationConfig().to_dict())
        self._max_tokens = float(self.options.max_batch_tokens or "inf")

    def prepare(self, request: Request) -> Request:
        return self._inputs.prepare(request)

    def generate(self, **arguments: Any) -> Any:
        """Token ids, prompt included. Every generation of this back end goes through here."""
        import torch

        with torch.inference_mode():
            return self.loaded.model.generate(**arguments)

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(self.concurrency):
            taken = time.perf_counter()
            for response in self._answer(requests):
                yield replace(response, latency=time.perf_counter() - taken)

    def _answer(self, requests: Sequence[Request]) -> Iterator[Response]:
        jobs = []
        for request in requests:
            job = self._job(request)
            if isinstance(job, Response):
                yield job
            else:
                jobs.append(job)
        shape: Shape[Job] = Shape(_batch_key, _tokens, self.options.batch_size, self._max_tokens)
        for batch in plan_batches(jobs, shape):
            for outcome in self._runner.run(batch, self._shrink):
                if isinstance(outcome, Failed):
                    yield Response.failure(outcome.item.request.id, outcome.kind, outcome.message)
                else:
                    yield from outcome

    def _job(self, request: Request) -> Job | Response:
        prepared = request.payload
        if not isinstance(prepared, Prepared):
            raise TypeError(f"request {request.id} was not prepared by this model")
        if prepared.error is not None:
            return Response.failure(request.id, prepared.error.kind, prepared.error.message)
        if request.kind == "loglikelihood":
            return Job(request, prepared, None)
        try:
            return Job(request, prepared, read_settings(request.generation, self._generation_names))
        except (TypeError, ValueError) as error:
            return Response.failure(request.id, "bad_request", f"generation options: {error}")

    def _shrink(self, batch: Sequence[Job]) -> None:
        """A batch did not fit: later ones of its size are halved before they are tried."""
        self._max_tokens = min(self._max_tokens, len(batch) * max(map(_tokens, batch)) / 2)

    def _release(self) -> None:
        import torch

        gc.collect()
        if self.loaded.device.type == "cuda":
            torch.cuda.empty_cache()

    def identity(self) -> Mapping[str, Any]:
        folder = local_folder(self.options.pretrained)
        config = self.loaded.model.config
        source: dict[str, Any]
        if folder is not None:
            source = {"files": [asdict(stamp) for stamp in stamps(folder)]}
        else:
            commit = getattr(config, "_commit_hash", None)
            source = {"repository": self.options.pretrained, "revision": self.options.revision, "commit": commit}
        return {
            **source,
            "class": type(self.loaded.model).__name__,
            "dtype": self.loaded.dtype,
            "attn_implementation": _attention(config),
            "system_prompt": _digest(self._inputs.system_prompt),
            "chat_template": _digest(self._inputs.chat_template),
        }

    def describe(self) -> Mapping[str, Any]:
        import torch
        import transformers

        model, device = self.loaded.model, self.loaded.device
        finite = self._max_tokens != float("inf")
        return {
            "model_class": type(model).__name__,
            "processor_class": type(self.loaded.processor).__name__,
            "processor_without_video_part": self.loaded.image_only,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "device": str(device),
            "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
            "dtype": self.loaded.dtype,
            "attn_implementation": _attention(model.config),
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "batch_size": self.options.batch_size,
            "max_batch_tokens": self._max_tokens if finite else None,
            "out_of_memory_batches": self._runner.out_of_memory,
            "default_max_new_tokens": DEFAULT_MAX_NEW_TOKENS,
            "generation_config": _public(model.generation_config.to_diff_dict()),
            "peak_memory_bytes": _peak_memory(device),
        }

    def close(self) -> None:
        """Free the weights."""
        del self._answerer, self._runner, self._inputs
        release, device = gc.collect, self.loaded.device
        del self.loaded
        release()
        if device.type == "cuda":
            import torch

            torch.cuda.empty_cache()


def _batch_key(job: Job) -> tuple[str, bool, str]:
    """A sampled answer is generated alone, so that its seed decides it."""
    if job.settings is None:
        return ("likelihood", bool(job.prepared.images), "")
    return (job.settings.key, bool(job.prepared.images), job.request.id if job.settings.sampled else "")


def _tokens(job: Job) -> float:
    return job.prepared.tokens


def _attention(config: Any) -> str | None:
    return getattr(config, "_attn_implementation", None)


def _public(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not name.startswith("_")}


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _peak_memory(device: Any) -> int | None:
    """Bytes: of the device's allocator, or of the process where the model is on the CPU."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    if device.type != "cpu" or sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
