vcl 4.1;

# Varnish's built-in rules do the rest: caching and freshness follow Cache-Control,
# including stale-while-revalidate.
backend edge {
  .host = "{host}";
  .port = "{port}";
}

sub vcl_backend_response {
  # Expired objects are kept for revalidation by entity tag.
  set beresp.keep = 1d;
}
