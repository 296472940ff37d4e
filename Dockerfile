# Two targets, one recipe: `docker build --target cpu .` (the default serves on the CPU) and `--target cuda`.
# Neither image holds torch: the service needs numpy, onnxruntime, gRPC and SentencePiece only.

FROM python:3.11-slim AS build-cpu
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY service service
RUN python -m venv /opt/nmt \
    && /opt/nmt/bin/pip install --no-cache-dir --constraint constraints.txt '.[cpu]'

FROM nvidia/cuda:12.9.1-cudnn-runtime-ubuntu24.04 AS cuda
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /nonexistent nmt
WORKDIR /srv
COPY pyproject.toml constraints.txt README.md LICENSE /build/
COPY service /build/service
RUN python3 -m venv /opt/nmt \
    && /opt/nmt/bin/pip install --no-cache-dir --constraint /build/constraints.txt '/build[gpu]' \
    && rm -rf /build
USER 10001
EXPOSE 50051 9464
ENV NMT_MODELS=/models NMT_HOST=0.0.0.0 NMT_DEVICE=cuda
ENTRYPOINT ["/opt/nmt/bin/python", "-m", "service"]
CMD ["serve"]

FROM python:3.11-slim AS cpu
RUN useradd --system --uid 10001 --home-dir /nonexistent nmt
COPY --from=build-cpu /opt/nmt /opt/nmt
COPY models /models
USER 10001
EXPOSE 50051 9464
ENV NMT_MODELS=/models NMT_HOST=0.0.0.0
ENTRYPOINT ["/opt/nmt/bin/python", "-m", "service"]
CMD ["serve"]
