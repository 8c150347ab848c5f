package blobstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/blobstore"
)

func TestNewNamesInvalidSetting(t *testing.T) {
	t.Parallel()
	good := blobstore.Config{
		URL: "s3://textures/prefix", Endpoint: "https://s3.example.org", AccessKey: "access", SecretKey: "secret",
		Region: "us-east-1", Timeout: time.Second,
	}
	if _, err := blobstore.New(good); err != nil {
		t.Fatalf("good settings: %v", err)
	}

	f := func(setting string, change func(c *blobstore.Config)) {
		t.Helper()
		cfg := good
		change(&cfg)
		_, err := blobstore.New(cfg)
		switch {
		case err == nil:
			t.Errorf("accepts %+v", cfg)
		case !strings.HasPrefix(err.Error(), setting+" ") || strings.Contains(err.Error(), "\n"):
			t.Errorf("got %q, want a line about %s", err, setting)
		}
	}
	f("URL", func(c *blobstore.Config) { c.URL = "" })
	f("URL", func(c *blobstore.Config) { c.URL = "/var/lib/textures" })
	f("URL", func(c *blobstore.Config) { c.URL = "file://" })
	f("URL", func(c *blobstore.Config) { c.URL = "https://s3.example.org/textures" })
	f("URL", func(c *blobstore.Config) { c.URL = "s3://" })
	f("URL", func(c *blobstore.Config) { c.URL = "s3://No Bucket" })
	f("ENDPOINT", func(c *blobstore.Config) { c.Endpoint = "" })
	f("ENDPOINT", func(c *blobstore.Config) { c.Endpoint = "127.0.0.1:9000" })
	f("ENDPOINT", func(c *blobstore.Config) { c.Endpoint = "s3.example.org" })
	f("ENDPOINT", func(c *blobstore.Config) { c.Endpoint = "ftp://s3.example.org" })
	f("ENDPOINT", func(c *blobstore.Config) { c.Endpoint = "https://s3.example.org/textures" })
	f("ENDPOINT", func(c *blobstore.Config) { c.Endpoint = "https://s3 example" })
	f("ACCESS_KEY", func(c *blobstore.Config) { c.AccessKey = "" })
	f("SECRET_KEY", func(c *blobstore.Config) { c.SecretKey = "" })
	f("CA", func(c *blobstore.Config) { c.CA = "/nowhere/ca.pem" })
	f("CA", func(c *blobstore.Config) { c.CA = "/dev/null" })
	f("REGION", func(c *blobstore.Config) { c.Region = "" })
}
