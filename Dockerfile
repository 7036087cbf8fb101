# rekka in a container, as a user without rights, with the tables of the folder it is called in:
#
#   docker build -t rekka .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" rekka demo
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" rekka compare inspections.csv --out run
#
# The page of `rekka app` listens on 127.0.0.1 alone and has no accounts, so it stays on this machine: the container takes
# the network of the host, and no port is published.
#
#   docker run --rm -it --network host --user "$(id -u):$(id -g)" -v "$PWD:/data" rekka app --no-open
#
# No other command needs a network: add --network none.

FROM python:3.12-slim
WORKDIR /source
COPY pyproject.toml README.md LICENSE THIRD_PARTY.md ./
COPY src ./src
# not pinned: it is this folder, whose version is its own
# hadolint ignore=DL3013
RUN pip install --no-cache-dir ".[app]" \
    && useradd --create-home --uid 10001 rekka \
    && mkdir -m 1777 /kernels /data
ENV NUMBA_CACHE_DIR=/kernels
USER 10001
# compiles the kernels, and shows that what was installed works; numba takes kept kernels only from folders that can be
# written, and --user names any user
RUN rekka demo --folder /tmp/demo && rm -r /tmp/demo && chmod -R a+rwX /kernels/*
WORKDIR /data
ENTRYPOINT ["rekka"]
CMD ["--help"]
