# Varnish as the balancer: the API goes to core, all else to the edges. It is a cache
# as well, which keeps what Cache-Control allows until it is told to forget it:
#
#   varnishd -a :8080 -f /etc/varnish/varnish.vcl -s malloc,1g
vcl 4.1;

import directors;
import std;

backend core { .host = "core"; .port = "8080"; .connect_timeout = 1s; .first_byte_timeout = 12s; } # core bounds its own work at 10 s

# What would be more requests at once than that goes to the next edge.
backend edge_1 { .host = "edge-1"; .port = "8081"; .connect_timeout = 1s; .first_byte_timeout = 3s; .max_connections = 2048; }
backend edge_2 { .host = "edge-2"; .port = "8081"; .connect_timeout = 1s; .first_byte_timeout = 3s; .max_connections = 2048; }

# Varnish asks after a backend where its requests go, but edges tell whether they are
# ready at another port. So each has a second backend there, by which it is chosen. It
# counts as ready until two answers in a row say otherwise, and again after one that
# says it is.
probe ready { .url = "/readyz"; .interval = 1s; .timeout = 1s; .window = 2; .threshold = 1; .initial = 1; }
backend edge_1_ready { .host = "edge-1"; .port = "9081"; .probe = ready; }
backend edge_2_ready { .host = "edge-2"; .port = "9081"; .probe = ready; }

sub vcl_init {
  new edges = directors.shard();
  edges.add_backend(edge_1_ready);
  edges.add_backend(edge_2_ready);
}

# Who may say what is to be forgotten.
acl purgers {
  "localhost";
}

sub vcl_recv {
  # A purge is: curl -X BAN -H 'Tag: player-5' http://…; or of everything: 'Tag: all'.
  if (req.method == "BAN") {
    # Nobody may by way of a proxy, whose visitor it would be.
    if (client.ip !~ purgers || req.http.X-Forwarded-For != "" + client.ip) {
      return (synth(403));
    }
    if (req.http.Tag == "all") {
      set req.http.Tag = "obj.status != 0";
    } elsif (req.http.Tag ~ "^[a-z]+-[!-\[\]-~]+$") {
      set req.http.Tag = "obj.http.Cache-Tag ~ (^|,)\Q" + req.http.Tag + "\E(,|$)";
    } else {
      return (synth(400));
    }
    if (!std.ban(req.http.Tag)) {
      return (synth(400, std.ban_error()));
    }
    return (synth(200));
  }

  # Only what Varnish itself has seen is told of a client's address. With a proxy of
  # yours in front, leave out this line, as Varnish has added that address already, and
  # add the proxy's network to CORE_TRUSTED_PROXIES and EDGE_TRUSTED_PROXIES.
  set req.http.X-Forwarded-For = client.ip;
  # Nor do visitors choose what is traced; leave these out behind a proxy that traces.
  unset req.http.traceparent;
  unset req.http.tracestate;

  if (req.url ~ "^/api([/?]|$)") {
    set req.backend_hint = core;
    return (pass);
  }
  set req.backend_hint = edge_1; # which one it is, vcl_backend_fetch finds out
  # Pictures are the same for everybody. Varnish would not keep them for somebody with a
  # cookie.
  unset req.http.Cookie;
  unset req.http.Authorization;
  if (req.method != "GET" && req.method != "HEAD") {
    return (pass);
  }
  # Edges understand names of players, suffixes and parameters in any case, so one case
  # is kept. They are asked in that case, too: what they say of a path that they know in
  # lower case only must not be kept for that path.
  if (std.tolower(req.url) ~ "^/(avatar|preview|textures|skin|cape|csl)/") {
    set req.url = std.tolower(req.url);
  }
}

sub vcl_backend_fetch {
  if (bereq.backend != core) {
    # Of one player, or texture, all pictures come from the same edge, so that each is
    # made once, and room is taken once. What a path is about is its last part without
    # a suffix: a name, which may be written in any case, a number or a hash.
    set bereq.http.X-Shard = std.tolower(regsub(bereq.url, "^[^?]*/([^/?.]*).*$", "\1"));
    set bereq.backend = edges.backend(by=KEY, alt=bereq.retries, healthy=ALL, key=edges.key(bereq.http.X-Shard));
    # There is no other one when only one is ready, which the one that has just failed
    # may not be any more.
    if (!bereq.backend) {
      set bereq.backend = edges.backend(by=KEY, healthy=ALL, key=edges.key(bereq.http.X-Shard));
    }
    unset bereq.http.X-Shard;
    if (bereq.backend == edge_1_ready) {
      set bereq.backend = edge_1;
    } elsif (bereq.backend == edge_2_ready) {
      set bereq.backend = edge_2;
    }
  }
}

sub vcl_backend_response {
  # What has expired is asked for by its tag.
  set beresp.keep = 1d;
  # While there is something to show, a failure does not take its place.
  if (beresp.status >= 500 && bereq.is_bgfetch) {
    return (abandon);
  }
}

# What an edge did not answer is asked of another one.
sub vcl_backend_error {
  if (bereq.backend != core && bereq.retries < 2) {
    return (retry);
  }
}
