# edge, built from the repository's top:
#   docker build -f deploy/edge.Dockerfile -t veneer-edge .
#
# Tags of base images can be moved. For builds that repeat to the byte, add digests
# behind both tags, as in debian:bookworm-…@sha256:…, which
# "docker buildx imagetools inspect TAG" prints.

# The same stage as in core.Dockerfile, so that it is built once for both.
FROM golang:1.26.8-bookworm AS build
WORKDIR /veneer
COPY go.work ./
COPY deploy/dev deploy/dev
RUN deploy/dev/install to-build
COPY . .
ARG REVISION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build deploy/dev/build

# libvips is linked with libraries for every kind of picture there is, 87 MB of them.
# Debian's package would bring 300 MB: it wants programs and plug-ins for further
# kinds, such as ImageMagick and PDF, which an edge had better not have.
FROM build AS linked
RUN deploy/linked .dev/bin/edge /linked

FROM debian:bookworm-20260803-slim
COPY --from=linked /linked /
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /veneer/.dev/bin/edge /usr/local/bin/
RUN ["edge", "help"]

# Nobody else can reach what listens on a container's loopback.
ENV EDGE_LISTEN=0.0.0.0:8081 EDGE_OPS_LISTEN=0.0.0.0:9081
# glibc keeps freed memory apart for every few threads. With two such arenas an edge
# takes a sixth less memory where libvips writes the pictures, and no more time, and
# with our own encoders the same. jemalloc saves less and takes longer:
#
#                                    own encoders            libvips
#   glibc as it comes           197 MiB  1269 µs CPU    222 MiB  4170 µs CPU
#   MALLOC_ARENA_MAX=2          206 MiB  1214 µs CPU    183 MiB  4112 µs CPU
#   jemalloc 5.3                196 MiB  1228 µs CPU    214 MiB  4398 µs CPU
#
# Means of two runs of 15,000 pictures each, resident at their end, and the
# processors' time of a picture; two cores, "go test -bench Allocator ./bench".
# Single runs differ by 15 % in memory with our own encoders and with jemalloc, by
# 2 % in all else.
ENV MALLOC_ARENA_MAX=2
EXPOSE 8081 9081
# It writes no file, so the root file system can be read-only.
USER 10001:10001
ENTRYPOINT ["edge"]
CMD ["serve"]
# On TERM it drains; give it longer than EDGE_DRAIN_WAIT and EDGE_DRAIN_TIMEOUT.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=60s --retries=3 CMD ["edge", "health"]
