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
		inImage = "the image does that, and the containers around it connect to its port."
		plain   = "the containers are connected without TLS, on networks of one machine."
		mounted = "the container has no such file. docker-compose.override.yml can mount one and set this."
		secret  = "its value is the file deploy/compose/secrets/"
	)
	configtest.EnvFile[settings](t, "../../../deploy/compose/core.env.example", prefix, map[string]string{
		"CORE_PUBLIC_URL":       "http://127.0.0.1:8081",
		"CORE_OBJECTS_URL":      "s3://veneer",
		"CORE_OBJECTS_ENDPOINT": "http://minio:9000",
		"CORE_TRUSTED_PROXIES":  "10.213.30.0/24",
		"CORE_DRAIN_WAIT":       "4s",
		"CORE_MAX_CONNECTIONS":  "4096",
	}, map[string]string{
		"CORE_LISTEN":               inImage,
		"CORE_EDGES_LISTEN":         inImage,
		"CORE_OPS_LISTEN":           inImage,
		"CORE_TLS_CERT":             plain,
		"CORE_TLS_KEY":              plain,
		"CORE_EDGES_TLS_CERT":       plain,
		"CORE_EDGES_TLS_KEY":        plain,
		"CORE_DATABASE_URL":         secret + "database_url.",
		"CORE_OWNER_DATABASE_URL":   secret + "owner_database_url, which only the container migrate has.",
		"CORE_LIBRARY_DATABASE_URL": "there is no standby.",
		"CORE_LISTEN_DATABASE_URL":  "there is no pooler in front of PostgreSQL.",
		"CORE_OBJECTS_ACCESS_KEY":   secret + "s3_writer_access_key.",
		"CORE_OBJECTS_SECRET_KEY":   secret + "s3_writer_secret_key.",
		"CORE_OBJECTS_CA":           mounted,
		"CORE_TOKEN_KEYS":           secret + "token_keys.",
		"CORE_EDGE_SECRETS":         secret + "edge_secrets.",
		"CORE_YGGDRASIL_KEY_FILE":   secret + "yggdrasil_key.",
		"CORE_PURGE_SECRET":         secret + "purge_secret.",
		"CORE_SMTP_PASSWORD":        secret + "smtp_password.",
		"CORE_SMTP_CA":              mounted,
	}, []string{"CORE_DATABASE_URL=postgres://veneer@postgres/veneer", "CORE_TOKEN_KEYS=" + keys(), "CORE_EDGE_SECRETS=" + edgeSecret})
}

func TestSettingsPage(t *testing.T) {
	t.Parallel()
	configtest.Document[settings](t, "../../../docs/settings.md", "core", prefix)
}
