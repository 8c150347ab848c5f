# edge, built from the root of the repository:
#   docker build -f deploy/edge.Dockerfile -t veneer-edge .
#
# Tags of base images can be moved. For reproducible builds, add digests to both tags,
# as in debian:bookworm-…@sha256:…, which
# "docker buildx imagetools inspect TAG" prints.

# The same stage as in core.Dockerfile, so that Docker builds it once for both.
FROM golang:1.26.8-bookworm AS build
WORKDIR /veneer
COPY go.work ./
RUN --mount=type=bind,source=deploy/dev,target=deploy/dev deploy/dev/install to-build
COPY . .
ARG REVISION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build deploy/dev/build

# libvips is linked with libraries for every image format, 87 MB of them. Debian's package
# would install 300 MB: it depends on programs and plug-ins for more formats, such as
# ImageMagick and PDF, which would only add attack surface to an edge.
FROM build AS linked
RUN deploy/linked .dev/bin/edge /linked

FROM debian:bookworm-20260803-slim
COPY --from=linked /linked /
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /veneer/.dev/bin/edge /usr/local/bin/
RUN ["edge", "help"]

# A listener on a container's loopback cannot be reached from outside.
ENV EDGE_LISTEN=0.0.0.0:8081 EDGE_OPS_LISTEN=0.0.0.0:9081
# glibc keeps freed memory in one arena for every few threads: what libvips frees, which makes
# exact sizes, would stay in all of them. Two arenas cost no CPU time, and jemalloc saves nothing:
#
#   glibc's default             197 MiB  1269 µs CPU
#   MALLOC_ARENA_MAX=2          206 MiB  1214 µs CPU
#   jemalloc 5.3                196 MiB  1228 µs CPU
#
# Means of two runs of 15,000 pictures each: resident memory at the end, and CPU time of a
# picture; two cores, "go test -bench Allocator ./bench/speed/compare". Single runs differ by 15 % in
# memory.
ENV MALLOC_ARENA_MAX=2
EXPOSE 8081 9081
# It writes no files but in EDGE_CACHE_DIR, so the root file system can be read-only.
USER 10001:10001
ENTRYPOINT ["edge"]
CMD ["serve"]
ARG REVISION
LABEL org.opencontainers.image.title="Veneer edge" org.opencontainers.image.revision="$REVISION"
# It drains on SIGTERM: the stop timeout must be longer than EDGE_DRAIN_WAIT plus
# EDGE_DRAIN_TIMEOUT, and ten seconds more with EDGE_CACHE_DIR.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=60s --retries=3 CMD ["edge", "health"]
