# core, built from the root of the repository:
#   docker build -f deploy/core.Dockerfile -t veneer-core .
#
# Tags of base images can be moved. For reproducible builds, add digests to both tags,
# as in debian:bookworm-…@sha256:…, which
# "docker buildx imagetools inspect TAG" prints.

# The same stage as in edge.Dockerfile, so that Docker builds it once for both.
FROM golang:1.26.8-bookworm AS build
WORKDIR /veneer
COPY go.work ./
RUN --mount=type=bind,source=deploy/dev,target=deploy/dev deploy/dev/install to-build
COPY . .
ARG REVISION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build deploy/dev/build

# core backup and core restore run the programs of PostgreSQL. The directory of backups is root's.
FROM postgres:15.19-bookworm AS backup
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /veneer/.dev/bin/core /usr/local/bin/
RUN ["core", "help"]
ENTRYPOINT ["core"]
CMD ["backup", "-every", "24h", "/backup"]
ARG REVISION
LABEL org.opencontainers.image.title="Veneer backup" org.opencontainers.image.revision="$REVISION"

FROM debian:bookworm-20260803-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /veneer/.dev/bin/core /usr/local/bin/
RUN ["core", "help"]

# A listener on a container's loopback cannot be reached from outside.
ENV CORE_LISTEN=0.0.0.0:8080 CORE_EDGES_LISTEN=0.0.0.0:9090 CORE_OPS_LISTEN=0.0.0.0:9080
EXPOSE 8080 9090 9080
# It writes no files, so the root file system can be read-only. With file:// textures,
# their directory is a volume that this user owns.
USER 10001:10001
ENTRYPOINT ["core"]
CMD ["serve"]
ARG REVISION
LABEL org.opencontainers.image.title="Veneer core" org.opencontainers.image.revision="$REVISION"
# It drains on SIGTERM: the stop timeout must be longer than CORE_DRAIN_WAIT plus
# CORE_DRAIN_TIMEOUT.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=60s --retries=3 CMD ["core", "health"]
