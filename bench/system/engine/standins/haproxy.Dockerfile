# Stands in for the official image, made of Debian's package: the same user and command.
ARG DEBIAN
FROM $DEBIAN
RUN apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends haproxy && rm -rf /var/lib/apt/lists/* && \
    groupmod --gid 99 haproxy && usermod --uid 99 haproxy
STOPSIGNAL SIGUSR1
USER haproxy
CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
