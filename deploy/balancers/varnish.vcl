# Varnish as the load balancer and cache: the site's pages, the API and the console go to
# core, everything else to the edges. It caches what Cache-Control allows until it is purged:
#
#   varnishd -a :8080 -f /etc/varnish/varnish.vcl -s malloc,1g
vcl 4.1;

import directors;
import std;

backend core { .host = "core"; .port = "8080"; .connect_timeout = 1s; .first_byte_timeout = 12s; } # core's own limit is 10 s

# Requests beyond max_connections go to the next edge.
backend edge_1 { .host = "edge-1"; .port = "8081"; .connect_timeout = 1s; .first_byte_timeout = 3s; .max_connections = 2048; }
backend edge_2 { .host = "edge-2"; .port = "8081"; .connect_timeout = 1s; .first_byte_timeout = 3s; .max_connections = 2048; }

# Varnish probes a backend at the port that requests go to, but edges report readiness at
# another port. So each edge has a second backend there, by which it is chosen. An edge is
# unhealthy after two failed probes in a row, and healthy again after one success.
probe ready { .url = "/readyz"; .interval = 1s; .timeout = 1s; .window = 2; .threshold = 1; .initial = 1; }
backend edge_1_ready { .host = "edge-1"; .port = "9081"; .probe = ready; }
backend edge_2_ready { .host = "edge-2"; .port = "9081"; .probe = ready; }

sub vcl_init {
  new edges = directors.shard();
  edges.add_backend(edge_1_ready);
  edges.add_backend(edge_2_ready);
}

# Addresses that may purge.
acl purgers {
  "localhost";
}

sub vcl_recv {
  # A purge is: curl -X BAN -H @FILE -H 'Tag: player-5' http://…; or of everything: 'Tag: all'. FILE has the line
  # "Authorization: Bearer " with the PURGE_SECRET of Varnish's environment, without which all purges are refused: other
  # users' programs are on localhost, too.
  if (req.method == "BAN") {
    # Not through a proxy: all of its clients have the proxy's address.
    if (client.ip !~ purgers || req.http.X-Forwarded-For != "" + client.ip) {
      return (synth(403));
    }
    if (req.http.Authorization !~ "^Bearer ." || req.http.Authorization != "Bearer " + std.getenv("PURGE_SECRET")) {
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

  # Only the address that Varnish itself sees is forwarded. With a proxy of yours in
  # front, omit this line, as Varnish has appended that address already, and add the
  # proxy's network to CORE_TRUSTED_PROXIES and EDGE_TRUSTED_PROXIES.
  set req.http.X-Forwarded-For = client.ip;
  # Clients must not decide what is traced; omit these behind a proxy that traces.
  unset req.http.traceparent;
  unset req.http.tracestate;

  # Below /api/yggdrasil/skins/ are files for games, which edges have.
  if (req.url ~ "^/((api|console|p|t|site)(/[^?]*)?|robots[.]txt|manifest[.]webmanifest|favicon[.]ico|apple-touch-icon[.]png|[.]well-known/change-password)?([?]|$)" && req.url !~ "^/api/yggdrasil/skins/") {
    set req.backend_hint = core;
    return (pass);
  }
  set req.backend_hint = edge_1; # vcl_backend_fetch chooses which one
  # A proxy that compresses appends the coding's name to entity tags.
  if (req.http.If-None-Match) {
    set req.http.If-None-Match = regsuball(req.http.If-None-Match, {"(--?|;)(gzip|br|zstd)""}, {"""});
  }
  # Pictures do not depend on the client. Varnish would not cache responses to requests
  # with a cookie.
  unset req.http.Cookie;
  unset req.http.Authorization;
  if (req.method != "GET" && req.method != "HEAD") {
    return (pass);
  }
  # Edges accept names of players, suffixes and parameters in any case, so only the lower
  # case form is cached. They accept all before a name in its own case only. The answer of
  # heads.json has the names of the query as they are there.
  if (req.url !~ "^/heads[.]json") {
    set req.url = regsub(req.url, "^([^?]*/)?.*$", "\1") + std.tolower(regsub(req.url, "^([^?]*/)?", ""));
  }
}

sub vcl_backend_fetch {
  if (bereq.backend != core) {
    # All pictures of a player or texture come from the same edge, so that each is
    # rendered and cached once.
    #
    # The subject of a path is its last segment without a suffix, or the one before a size
    # or a side: a name, in any case, a UUID, with or without hyphens, a number or a hash.
    # Two paths have the name as a parameter, and DiscordSRV has it before the view. The whole query stands for a list of players.
    # docs/operations/balancers.md explains the expression.
    set bereq.http.X-Shard = std.tolower(regsub(bereq.url, "[?].*", ""));
    set bereq.http.X-Shard = regsub(bereq.http.X-Shard, "^/([^/]+)/(head|helm|overlay|skull|bust|body|texture(?:[.][^/]*)?$|player$)([./].*)?$", "/\2/\1\3");
    set bereq.http.X-Shard = regsub(bereq.http.X-Shard, "^(?:.*/(?:player|uuid|user|hash|texture)|/(?:face|front|frontfull|full)/[0-9]{1,4}|(?:/[^/]+){1,4}?)?/([^/.]*)(?:[.][^/]*)?(?:/(?:left|right|nohelm|hat|helm|overlay|isometric|3d|full|bust|face|head|default|processed|barebones|undefined|nan|null|none|[-+]?[0-9]{1,4}(?:px)?(?:x[0-9]+|@[0-9.]+x)?)(?:[.][^/]*)?){0,4}/?$", "\1");
    if (bereq.url ~ "^/(skins|cloaks|head|head[.]png)[?](.*&)?name=") {
      set bereq.http.X-Shard = regsub(bereq.url, "^[^?]*[?](?:.*&)?name=([^&.]*).*$", "\1");
    } elsif (bereq.url ~ "^/(sprite/|heads[.]json)") {
      set bereq.http.X-Shard = std.tolower(regsub(bereq.url, "^[^?]*", ""));
    }
    set bereq.http.X-Shard = regsuball(bereq.http.X-Shard, "-", "");
    set bereq.backend = edges.backend(by=KEY, alt=bereq.retries, healthy=ALL, key=edges.key(bereq.http.X-Shard));
    # With only one edge ready there is no alternative; the edge that has just failed may
    # not be ready any more.
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
  # Expired objects are revalidated by their ETag.
  set beresp.keep = 1d;
  # A failed revalidation does not replace a stale object.
  if (beresp.status >= 500 && bereq.is_bgfetch) {
    return (abandon);
  }
}

# A request that fails at an edge is retried at another one.
sub vcl_backend_error {
  if (bereq.backend != core && bereq.retries < 2) {
    return (retry);
  }
}
