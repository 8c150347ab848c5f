# Makes of compose/haproxy.cfg what a balancer on many machines does for visitors; the
# command is in docs/operations/machines.md. Addresses are those of its table.

1,/^$/c\
# Made of compose/haproxy.cfg by machines/haproxy.sed, and machines/haproxy.cfg behind it.\


# Debian starts haproxy as root, so that it may have ports 80 and 443.
/^global$/a\
  user haproxy\
  group haproxy\
  chroot /var/lib/haproxy

# No name has to be looked up here.
s/ resolvers containers .*//
/^# Containers that are made anew/,/^$/d

# What visitors say goes over TLS only. The certificate is a file of it, of those above it and
# of its key, one behind the other. At loopback veneer-certificate looks when it ends.
/^  bind :8080$/c\
  bind 203.0.113.5:80\
  bind 203.0.113.5:443,127.0.0.1:443 ssl crt /etc/haproxy/site.pem alpn h2,http/1.1\
  # Connections to the database, to MinIO and to cores are within the maxconn of the section\
  # global as well: visitors leave them a thousand.\
  maxconn 7168\
  # An office behind one address is let in, a program that opens thousands is not. A CDN has\
  # few addresses, too: its networks go behind the last line, as !{ src 198.51.100.0/24 }.\
  stick-table type ipv6 size 200k expire 1m store conn_cur\
  tcp-request connection track-sc0 src\
  tcp-request connection reject if { sc0_conn_cur gt 256 }\
  http-request redirect scheme https unless { ssl_fc }

/^  server core /c\
  server core-1 10.0.0.41:8080 check port 9080\
  server core-2 10.0.0.42:8080 check port 9080
/^  server edge-2 /d
/^  server edge-1 /c\
  server edge-1 10.0.0.51:8081 check port 9081\
  server edge-2 10.0.0.52:8081 check port 9081\
  server edge-3 10.0.0.53:8081 check port 9081
