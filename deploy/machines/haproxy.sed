# Converts compose/haproxy.cfg to the public part of the configuration of a balancer on many
# machines; the command is in docs/operations/machines.md, and so is the table of addresses.

1,/^$/c\
# Generated from compose/haproxy.cfg by machines/haproxy.sed, with machines/haproxy.cfg appended.\


# Debian starts haproxy as root, so that it can bind ports 80 and 443.
/^global$/a\
  user haproxy\
  group haproxy\
  chroot /var/lib/haproxy

# Servers are given by address, so there is nothing to resolve.
s/ resolvers containers .*//
/^# A name has the addresses/,/^$/d

# Clients are served over TLS only. The file has the certificate, its chain and its key, in
# this order. veneer-certificate connects to the loopback address to read the expiry date.
/^  bind :8080$/c\
  bind 203.0.113.5:80\
  bind 203.0.113.5:443,127.0.0.1:443 ssl crt /etc/haproxy/site.pem alpn h2,http/1.1\
  # The maxconn of the section global includes connections to the database, to MinIO and to\
  # cores: clients leave a thousand for them.\
  maxconn 7168\
  # An office behind one address is admitted, a program with thousands of connections is not.\
  # A CDN has few addresses, too: append its networks to the reject rule, as\
  # !{ src 198.51.100.0/24 }.\
  stick-table type ipv6 size 200k expire 1m store conn_cur\
  tcp-request connection track-sc0 src\
  tcp-request connection reject if { sc0_conn_cur gt 256 }\
  http-request redirect scheme https unless { ssl_fc }\
  http-after-response set-header Strict-Transport-Security max-age=31536000 if { ssl_fc }

/^  server-template core- .* core:8080 /c\
  server core-1 10.0.0.41:8080 check port 9080\
  server core-2 10.0.0.42:8080 check port 9080
/^  bind :9090$/c\
  bind 10.0.0.5:9090
/^  server-template core- .* core:9090 /c\
  server core-1 10.0.0.41:9090 check port 9080\
  server core-2 10.0.0.42:9090 check port 9080\

/^  server-template edge- /c\
  server edge-1 10.0.0.51:8081 check port 9081\
  server edge-2 10.0.0.52:8081 check port 9081\
  server edge-3 10.0.0.53:8081 check port 9081
