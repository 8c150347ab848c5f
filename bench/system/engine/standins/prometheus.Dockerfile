# Stands in for the official image, made of Debian's package: the same user, directories and command.
ARG DEBIAN
FROM $DEBIAN
RUN apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends prometheus && rm -rf /var/lib/apt/lists/* && \
    install -d -o nobody -g nogroup /etc/prometheus /prometheus
USER nobody
VOLUME /prometheus
ENTRYPOINT ["prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
