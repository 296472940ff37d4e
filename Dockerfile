# Two images from one recipe: `docker build .` serves on the CPU, `docker build --target cuda .` on an
# NVIDIA GPU. Neither holds torch, a compiler or pip; every library is one of deploy/locks, by its hash.

# The service itself, as pip installs it: a layer of its own, since it changes most often. Its kernels
# are optional elsewhere; an image has them, or isn't built.
FROM python:3.11-slim-bookworm AS service
RUN apt-get update \
    && apt-get install --yes --no-install-recommends 'gcc=4:12.*' 'libc6-dev=2.36-*' \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY deploy/locks/build.txt ./
RUN python3 -m venv tools \
    && tools/bin/pip install --no-cache-dir --require-hashes --requirement build.txt
COPY pyproject.toml README.md LICENSE ./
COPY service service
RUN tools/bin/pip install --no-cache-dir --no-deps --no-build-isolation --target /service . \
    && ls /service/service/session/kernels/*.so

FROM python:3.11-slim-bookworm AS cpu-libraries
COPY deploy/locks/cpu.txt /build/cpu.txt
RUN python3 -m venv --without-pip /opt/nmt \
    && python3 -m pip --python /opt/nmt/bin/python install \
        --no-cache-dir --require-hashes --requirement /build/cpu.txt \
    && find /opt/nmt -type d -name tests -prune -exec rm -r {} +

# The CUDA libraries and cuDNN come as wheels of the versions that onnxruntime-gpu asks for.
FROM python:3.11-slim-bookworm AS cuda-libraries
COPY deploy/locks/gpu.txt /build/gpu.txt
RUN python3 -m venv --without-pip /opt/nmt \
    && python3 -m pip --python /opt/nmt/bin/python install \
        --no-cache-dir --require-hashes --requirement /build/gpu.txt \
    && find /opt/nmt -type d -name tests -prune -exec rm -r {} +

# What both have in common. Nothing is written at run time: the root file system may be read-only.
FROM python:3.11-slim-bookworm AS runtime
LABEL org.opencontainers.image.title="attention-nmt" \
      org.opencontainers.image.licenses="Apache-2.0"
# onnxruntime would otherwise send usage data to its vendor.
ENV PATH=/opt/nmt/bin:$PATH NMT_MODELS=/models NMT_HOST=0.0.0.0 ORT_DISABLE_TELEMETRY=1
WORKDIR /srv
COPY models /models
USER 10001:10001
EXPOSE 50051 50053 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/opt/nmt/bin/python", "-m", "service", "health"]
ENTRYPOINT ["/opt/nmt/bin/python", "-m", "service"]
CMD ["serve"]

FROM runtime AS cuda
ENV NMT_DEVICE=cuda \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    LD_LIBRARY_PATH=/opt/nmt/lib/python3.11/site-packages/nvidia/cu13/lib:/opt/nmt/lib/python3.11/site-packages/nvidia/cudnn/lib
COPY --from=cuda-libraries /opt/nmt /opt/nmt
COPY --from=service /service /opt/nmt/lib/python3.11/site-packages

FROM runtime AS cpu
COPY --from=cpu-libraries /opt/nmt /opt/nmt
COPY --from=service /service /opt/nmt/lib/python3.11/site-packages
