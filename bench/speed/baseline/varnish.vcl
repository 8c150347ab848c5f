vcl 4.1;

# Varnish's own rules do the rest: what may be kept, and for how long, is what an
# answer's Cache-Control says, stale-while-revalidate included.
backend edge {
  .host = "{host}";
  .port = "{port}";
}

sub vcl_backend_response {
  # What has expired is asked for by its tag.
  set beresp.keep = 1d;
}
