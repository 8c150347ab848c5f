package baseline

import (
	"context"
	_ "embed" // for nginx-cache.conf
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/veneer-skins/veneer/bench/loopback"
)

//go:embed nginx-cache.conf
var nginxCacheConf string

// StartNginxCache starts nginx as a cache in front of the server at an address, with up to so many
// bytes of responses in files.
func StartNginxCache(ctx context.Context, env Env, upstream string, bytes int64) (*Server, error) {
	version, err := nginxProgram.Version(ctx)
	if err != nil {
		return nil, err
	}
	address, err := loopback.FreeAddress()
	if err != nil {
		return nil, err
	}
	open, err := RaiseFileLimit()
	if err != nil {
		return nil, err
	}
	work, err := env.mkdir("nginx-cache")
	if err != nil {
		return nil, err
	}
	// Its worker would run as a user without access to the directory.
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	config := filepath.Join(work, "nginx.conf")
	if err := os.WriteFile(config, []byte(strings.NewReplacer(
		"{user}", user, "{work}", work, "{address}", address, "{upstream}", upstream, "{bytes}", strconv.FormatInt(bytes, 10), "{open}", strconv.Itoa(open),
	).Replace(nginxCacheConf)), 0o600); err != nil {
		return nil, err
	}
	const name = "nginx proxy_cache"
	p, err := Run(env, name, nil, nil, "nginx", "-c", config)
	if err != nil {
		return nil, err
	}
	return (&Server{Name: name, Version: version, Process: p, Address: address, OwnTags: true}).awaitListening(ctx)
}
