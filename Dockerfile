# syntax=docker/dockerfile:1
# docker build -t lmms-eval:cuda .
# docker build -t lmms-eval:cpu --build-arg VARIANT=cpu --build-arg TORCH_INDEX=ADDRESS .
# TORCH_INDEX: the index of torch's builds for CPUs, which pytorch.org names; the usual ones bring CUDA along.
# EXTRAS: extras of the package to install as well. Keys are given when a container is started, never when it is built.
ARG VARIANT=cuda
ARG PYTHON=3.12

FROM python:${PYTHON}-slim-bookworm AS build
ARG VARIANT
ARG EXTRAS=math,metrics,plots
ARG TORCH_INDEX=
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/lmms-eval
ENV PATH=/opt/lmms-eval/bin:$PATH
WORKDIR /source
COPY pyproject.toml README.md LICENSE NOTICE constraints.txt ./
COPY lmms_eval ./lmms_eval
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN case "$VARIANT" in \
      cpu) pip install --index-url "${TORCH_INDEX:?address of the index of torch for CPUs}" --no-deps -c constraints.txt torch ;; \
      cuda) pip install -c constraints.txt torch ;; \
      *) echo "VARIANT is cpu or cuda, not $VARIANT" >&2; exit 1 ;; \
    esac \
    && pip install -c constraints.txt ".[$EXTRAS]"

FROM python:${PYTHON}-slim-bookworm
# libgomp: torch; a compiler is left out, so that torch.compile has none.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 1000 eval && useradd --uid 1000 --gid eval --create-home eval \
    && install -d -o eval -g eval /data
COPY --from=build /opt/lmms-eval /opt/lmms-eval
ENV PATH=/opt/lmms-eval/bin:$PATH \
    HF_HOME=/data/huggingface \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /data
VOLUME /data
STOPSIGNAL SIGTERM
ENTRYPOINT ["lmms-eval"]
CMD ["--help"]
