package main

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/config/configtest"
)

// The example file of deploy/compose lists all settings. Settings of docker-compose.yml itself
// are marked, so that enabling a line breaks nothing.
func TestEnvFile(t *testing.T) {
	t.Parallel()
	const (
		inCompose = "docker-compose.yml does that."
		inImage   = "the image does that, and the containers around it connect to its port."
		plain     = "the containers are connected without TLS, on networks of one machine."
		mounted   = "the container has no such file. docker-compose.override.yml can mount one and set this."
		secret    = "its value is the file deploy/compose/secrets/"
	)
	configtest.EnvFile[settings](t, "../../../deploy/compose/edge.env.example", prefix, map[string]string{
		"EDGE_OBJECTS_URL":      "s3://veneer",
		"EDGE_OBJECTS_ENDPOINT": "http://minio:9000",
		"EDGE_TRUSTED_PROXIES":  "10.213.30.0/24",
		"EDGE_MAX_CONNECTIONS":  "4096",
		"EDGE_RENDER_WORKERS":   "2",
		"EDGE_DRAIN_WAIT":       "4s",
		"EDGE_YGGDRASIL_URL":    "/api/yggdrasil/",
	}, map[string]string{
		"EDGE_LISTEN":             inImage,
		"EDGE_OPS_LISTEN":         inImage,
		"EDGE_TLS_CERT":           plain,
		"EDGE_TLS_KEY":            plain,
		"EDGE_CORE_URL":           inCompose,
		"EDGE_CORE_SECRETS":       secret + "edge_secrets.",
		"EDGE_CORE_CA":            plain,
		"EDGE_OBJECTS_ACCESS_KEY": secret + "s3_reader_access_key.",
		"EDGE_OBJECTS_SECRET_KEY": secret + "s3_reader_secret_key.",
		"EDGE_OBJECTS_CA":         mounted,
		"EDGE_API_UPSTREAM":       inCompose,
		"EDGE_CACHE_DIR":          "the root file system is read-only, and all edges would share a directory.",
		"EDGE_API_CA":             plain,
	}, []string{"EDGE_CORE_URL=http://core:9090", "EDGE_CORE_SECRETS=a-secret-of-the-edges"})
}

func TestSettingsPage(t *testing.T) {
	t.Parallel()
	configtest.Document[settings](t, "../../../docs/settings.md", "edge", prefix)
}
