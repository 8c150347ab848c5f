package baseline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"

	"github.com/veneer-skins/veneer/bench/loopback"
)

var haproxyProgram = Program{
	Name: "haproxy", ComparedFor: "nothing: it balances several edges",
	Install: "apt-get install haproxy, and have /usr/sbin in PATH", version: versionFromOutput(regexp.MustCompile(`HAProxy version (\S+)`), "haproxy", "-v"),
}

// Backend is a server behind a balancer: its address, and that of its readiness check.
type Backend struct{ Address, Operators string }

// UnboundedLoad is in the environment of a haproxy with Veneer's configuration, which otherwise
// limits the load's address to 256 open requests.
const UnboundedLoad = "VENEER_TRUSTED_PROXIES=127.0.0.1"

// StartHaproxy starts haproxy in front of edges, with the configuration in a file, but with those
// edges instead of its own, and nothing behind the API.
func StartHaproxy(ctx context.Context, env Env, file string, edges []Backend) (*Server, error) {
	version, err := haproxyProgram.Version(ctx)
	if err != nil {
		return nil, err
	}
	address, err := loopback.FreeAddress()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	config, err := haproxyConfig(string(content), address, edges)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	path, err := env.writeFile("haproxy", "haproxy.cfg", config)
	if err != nil {
		return nil, err
	}
	p, err := Run(env, "haproxy", nil, []string{UnboundedLoad}, "haproxy", "-db", "-f", path)
	if err != nil {
		return nil, err
	}
	return (&Server{Name: "haproxy", Version: version, Process: p, Address: address}).awaitListening(ctx)
}

var (
	haproxyBind = regexp.MustCompile(`(?m)^( *bind) .*$`)
	haproxyAPI  = regexp.MustCompile(`(?m)^ *server core .*\n`)
	haproxyTime = regexp.MustCompile(`(?m)^( *timeout) connect .*$`)
	haproxyEdge = regexp.MustCompile(`(?m)^ *server edge-\d+ .*\n`)
)

// haproxyConfig replaces the address and the edges of a configuration.
func haproxyConfig(config, address string, edges []Backend) (string, error) {
	first := haproxyEdge.FindStringIndex(config)
	if first == nil || !haproxyBind.MatchString(config) || !haproxyTime.MatchString(config) {
		return "", errors.New("it has no edges, no timeouts or binds nothing")
	}
	var servers strings.Builder
	for i, edge := range edges {
		_, port, err := net.SplitHostPort(edge.Operators)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&servers, "  server edge-%d %s check port %s\n", i+1, edge.Address, port)
	}
	config = config[:first[0]] + servers.String() + haproxyEdge.ReplaceAllString(config[first[0]:], "")
	config = haproxyBind.ReplaceAllString(config, "${1} "+address)
	// Without this a check has the second between two of them. Edges share the machine with the load,
	// so that a busy one would be down, and answered for with 503.
	config = haproxyTime.ReplaceAllString(config, "$0\n$1 check 10s")
	return haproxyAPI.ReplaceAllString(config, ""), nil
}
