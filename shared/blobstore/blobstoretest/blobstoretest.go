// Package objectstest holds one suite that every kind of texture store must
// pass, and makes stores for other tests.
package blobstoretest

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Backend is somewhere that no Store has prepared yet, with a way in behind the
// Store's back.
type Backend struct {
	Config blobstore.Config
	// Write makes or replaces what has the name.
	Write func(t *testing.T, name string, content []byte)
	// Remove removes what has the name.
	Remove func(t *testing.T, name string)
}

// NewStore returns a store in a directory that ends with the test, ready for
// use. Other packages test with it.
func NewStore(tb testing.TB) *blobstore.Store {
	tb.Helper()
	return openInit(tb, Directory(tb).Config)
}

// Directory returns a place on the disk that ends with the test.
func Directory(tb testing.TB) Backend {
	tb.Helper()
	root := filepath.Join(tb.TempDir(), "textures")
	return Backend{
		Config: blobstore.Config{URL: "file://" + root, Timeout: time.Minute},
		Write: func(t *testing.T, name string, content []byte) {
			t.Helper()
			path := filepath.Join(root, name)
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must(t, os.WriteFile(path, content, 0o600))
		},
		Remove: func(t *testing.T, name string) {
			t.Helper()
			must(t, os.Remove(filepath.Join(root, name)))
		},
	}
}

// Bucket returns a place in the S3 store that TEST_S3_ENDPOINT (host:port, plain
// HTTP), TEST_S3_ACCESS_KEY and TEST_S3_SECRET_KEY name. It ends with the test.
// Without such a store the test is skipped.
func Bucket(tb testing.TB) Backend {
	tb.Helper()
	endpoint, accessKey, secretKey := os.Getenv("TEST_S3_ENDPOINT"), os.Getenv("TEST_S3_ACCESS_KEY"), os.Getenv("TEST_S3_SECRET_KEY")
	if endpoint == "" {
		testenv.Skip(tb, "TEST_S3_ENDPOINT is not set; make test sets it")
	}
	client, err := minio.New(endpoint, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, "")})
	must(tb, err)

	name := "test-" + strings.ToLower(rand.Text())
	tb.Cleanup(func() {
		ctx := context.WithoutCancel(tb.Context()) // which has ended by now
		exists, err := client.BucketExists(ctx, name)
		if err != nil {
			tb.Errorf("look for bucket %s: %v", name, err)
		}
		if !exists {
			return
		}
		for err := range client.RemoveObjects(ctx, name, client.ListObjects(ctx, name, minio.ListObjectsOptions{Recursive: true}), minio.RemoveObjectsOptions{}) {
			tb.Errorf("empty bucket %s: %v", name, err.Err)
		}
		if err := client.RemoveBucket(ctx, name); err != nil {
			tb.Errorf("remove bucket %s: %v", name, err)
		}
	})
	return Backend{
		Config: blobstore.Config{
			URL: "s3://" + name + "/some/where", Endpoint: "http://" + endpoint,
			AccessKey: accessKey, SecretKey: secretKey, Region: "us-east-1", Timeout: time.Minute,
		},
		Write: func(t *testing.T, key string, content []byte) {
			t.Helper()
			_, err := client.PutObject(t.Context(), name, "some/where/"+key, bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
			must(t, err)
		},
		Remove: func(t *testing.T, key string) {
			t.Helper()
			must(t, client.RemoveObject(t.Context(), name, "some/where/"+key, minio.RemoveObjectOptions{}))
		},
	}
}

// Open returns the store that a configuration describes, unprepared.
func Open(tb testing.TB, cfg blobstore.Config) *blobstore.Store {
	tb.Helper()
	store, err := blobstore.New(cfg)
	must(tb, err)
	return store
}

func openInit(tb testing.TB, cfg blobstore.Config) *blobstore.Store {
	tb.Helper()
	store := Open(tb, cfg)
	must(tb, store.Init(tb.Context()))
	return store
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
