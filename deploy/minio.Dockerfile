# MinIO and its client, in the versions that Veneer is tested with: MinIO no longer
# publishes images. Built from the root of the repository:
#   docker build -f deploy/minio.Dockerfile -t veneer-minio .
FROM golang:1.26.8-bookworm AS build
WORKDIR /veneer
RUN --mount=type=bind,source=deploy/dev,target=deploy/dev --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build deploy/dev/tools minio mc

FROM debian:bookworm-20260803-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /veneer/.dev/bin/minio@* /usr/local/bin/minio
COPY --from=build /veneer/.dev/bin/mc@* /usr/local/bin/mc
COPY deploy/minio /usr/local/share/veneer
RUN install -d -o 10001 -g 10001 /data

# Both programs write their configuration to HOME, here a tmpfs.
ENV HOME=/tmp MINIO_BROWSER=off MINIO_UPDATE=off
EXPOSE 9000
USER 10001:10001
ENTRYPOINT ["minio"]
LABEL org.opencontainers.image.title="MinIO for Veneer"
CMD ["server", "/data"]
