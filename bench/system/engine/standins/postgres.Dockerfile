# Stands in for the official image, made of Debian's packages: the same user, directories and entrypoint.
ARG DEBIAN
FROM $DEBIAN
RUN groupadd --system --gid 999 postgres && useradd --system --uid 999 --gid 999 --home-dir /var/lib/postgresql --create-home postgres && \
    install -d /etc/postgresql-common && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf && \
    apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends postgresql-15 && rm -rf /var/lib/apt/lists/* && \
    sed -i "s/^#listen_addresses.*/listen_addresses = '*'/" /usr/share/postgresql/15/postgresql.conf.sample && \
    install -d -o postgres -g postgres /var/lib/postgresql/data && install -d -o postgres -g postgres -m 3777 /var/run/postgresql
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PGDATA=/var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
COPY postgres-entrypoint /usr/local/bin/docker-entrypoint.sh
ENTRYPOINT ["docker-entrypoint.sh"]
STOPSIGNAL SIGINT
CMD ["postgres"]
