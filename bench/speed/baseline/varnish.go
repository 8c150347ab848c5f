package baseline

import (
	"context"
	_ "embed" // for varnish.vcl
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/veneer-skins/veneer/bench/loopback"
)

//go:embed varnish.vcl
var varnishVCL string

// varnishSilence removes all records of requests from Varnish's shared memory log, which is always
// on otherwise and has no reader here.
const varnishSilence = "-Begin,-End,-Link,-SessOpen,-SessClose,-Timestamp,-Hit,-HitMiss,-TTL,-Storage,-Filters,-Length,-Fetch_Body," +
	"-ReqStart,-ReqMethod,-ReqURL,-ReqProtocol,-ReqHeader,-ReqUnset,-ReqAcct,-VCL_call,-VCL_return,-VCL_use," +
	"-RespProtocol,-RespStatus,-RespReason,-RespHeader,-RespUnset,-BackendOpen,-BackendClose," +
	"-BereqMethod,-BereqURL,-BereqProtocol,-BereqHeader,-BereqUnset,-BereqAcct,-BerespProtocol,-BerespStatus,-BerespReason,-BerespHeader,-BerespUnset"

// StartVarnish starts Varnish as a cache in front of the server at an address, with up to so many
// bytes of responses in memory.
func StartVarnish(ctx context.Context, env Env, upstream string, bytes int64) (*Server, error) {
	version, err := varnishProgram.Version(ctx)
	if err != nil {
		return nil, err
	}
	address, err := loopback.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(upstream)
	if err != nil {
		return nil, err
	}
	program, err := env.writeFile("varnish", "edge.vcl", strings.NewReplacer("{host}", host, "{port}", port).Replace(varnishVCL))
	if err != nil {
		return nil, err
	}
	p, err := Run(env, "varnish", nil, nil, "varnishd",
		"-F",         // in the foreground,
		"-j", "none", // without a jail: another user could not enter the directory
		"-n", filepath.Join(filepath.Dir(program), "instance"),
		"-T", "none",
		"-a", address,
		"-f", program,
		"-s", fmt.Sprintf("malloc,%db", bytes),
		"-p", "default_ttl=0", // only what Cache-Control allows is cached
		"-p", "timeout_idle=3600",
		"-p", "vsl_mask="+varnishSilence,
	)
	if err != nil {
		return nil, err
	}
	return (&Server{Name: "Varnish", Version: version, Process: p, Address: address, OwnTags: true}).awaitListening(ctx)
}
