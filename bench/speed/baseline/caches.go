package baseline

import (
	_ "embed" // for varnish.vcl
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

//go:embed varnish.vcl
var varnishVCL string

// varnishSilence removes all records of requests from Varnish's shared memory log, which is always
// on otherwise and has no reader here.
const varnishSilence = "-Begin,-End,-Link,-SessOpen,-SessClose,-Timestamp,-Hit,-HitMiss,-TTL,-Storage,-Filters,-Length,-Fetch_Body," +
	"-ReqStart,-ReqMethod,-ReqURL,-ReqProtocol,-ReqHeader,-ReqUnset,-ReqAcct,-VCL_call,-VCL_return,-VCL_use," +
	"-RespProtocol,-RespStatus,-RespReason,-RespHeader,-RespUnset,-BackendOpen,-BackendClose," +
	"-BereqMethod,-BereqURL,-BereqProtocol,-BereqHeader,-BereqUnset,-BereqAcct,-BerespProtocol,-BerespStatus,-BerespReason,-BerespHeader,-BerespUnset"

// StartVarnish starts Varnish as a cache in front of the server at an address, with at most these
// bytes of responses in memory.
func StartVarnish(tb testing.TB, upstream string, bytes int64) *Server {
	tb.Helper()
	host, port := stack.HostPort(upstream)
	rules := strings.NewReplacer("{host}", host, "{port}", port).Replace(varnishVCL)
	s := newServer(tb, "Varnish")
	s.OwnTags = true
	return s.start(tb, nil, "varnishd",
		"-F",         // in the foreground,
		"-j", "none", // without a jail: another user could not enter the directory
		"-n", tb.TempDir(),
		"-T", "none",
		"-a", s.Address,
		"-f", stack.WriteFile(tb, tb.TempDir(), "edge.vcl", rules),
		"-s", fmt.Sprintf("malloc,%db", bytes),
		"-p", "default_ttl=0", // only what Cache-Control allows is cached
		"-p", "timeout_idle=3600",
		"-p", "vsl_mask="+varnishSilence,
	)
}

// StartHaproxy starts haproxy in front of edges, with the configuration of docker compose in a repository,
// but with those edges instead of its own, and nothing behind the API.
func StartHaproxy(tb testing.TB, root string, edges []*Server) *Server {
	tb.Helper()
	var servers strings.Builder
	for i, edge := range edges {
		_, port := stack.HostPort(edge.Operators)
		fmt.Fprintf(&servers, "  server edge-%d %s check port %s\n", i+1, edge.Address, port)
	}
	s := newServer(tb, "haproxy")
	// Edges share the machine with the load. A busy one would be answered for with 504, and be down for
	// a check, which has the second between two of them, so that others get its requests.
	wait := regexp.MustCompile(`(?m)^( *timeout server|.* set-timeout server) \d+s`)
	config := wait.ReplaceAllString(stack.ComposeHaproxy(tb, root, s.Address, "", servers.String()), "$1 60s")
	config = strings.Replace(config, "timeout connect 1s", "timeout connect 1s\n  timeout check 10s", 1)
	path := stack.WriteFile(tb, tb.TempDir(), "haproxy.cfg", config)
	return s.start(tb, []string{stack.UnboundedLoad}, "haproxy", "-db", "-f", path)
}
