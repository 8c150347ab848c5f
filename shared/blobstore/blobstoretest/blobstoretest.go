// Package blobstoretest has the test suite of all backends of a texture store, and stores for
// other tests.
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

// Backend is an uninitialized store, with direct access to its files.
type Backend struct {
	Config blobstore.Config
	// Write creates or replaces a file.
	Write func(t *testing.T, name string, content []byte)
	// Remove removes a file.
	Remove func(t *testing.T, name string)
}

// NewStore returns an initialized store in a directory that is removed after the test.
func NewStore(tb testing.TB) *blobstore.Store {
	tb.Helper()
	return OpenInit(tb, Directory(tb).Config)
}

// Directory returns a backend in a directory that is removed after the test.
func Directory(tb testing.TB) Backend {
	tb.Helper()
	root := filepath.Join(tb.TempDir(), "textures")
	return Backend{
		Config: blobstore.Config{URL: "file://" + root, Timeout: time.Minute},
		Write: func(t *testing.T, name string, content []byte) {
			t.Helper()
			path := filepath.Join(root, name)
			testenv.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
			testenv.Do(t, os.WriteFile(path, content, 0o600))
		},
		Remove: func(t *testing.T, name string) {
			t.Helper()
			testenv.Do(t, os.Remove(filepath.Join(root, name)))
		},
	}
}

// Bucket returns a backend in the S3 store that TEST_S3_ENDPOINT (host:port, plain HTTP),
// TEST_S3_ACCESS_KEY and TEST_S3_SECRET_KEY name. It is removed after the test. Without such
// a store the test is skipped.
func Bucket(tb testing.TB) Backend {
	tb.Helper()
	endpoint, accessKey, secretKey := os.Getenv("TEST_S3_ENDPOINT"), os.Getenv("TEST_S3_ACCESS_KEY"), os.Getenv("TEST_S3_SECRET_KEY")
	if endpoint == "" {
		testenv.Skip(tb, "TEST_S3_ENDPOINT is not set; make test sets it")
	}
	client, err := minio.New(endpoint, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, "")})
	testenv.Do(tb, err)

	name := "test-" + strings.ToLower(rand.Text())
	tb.Cleanup(func() {
		ctx := context.WithoutCancel(tb.Context()) // the test's own has ended
		exists, err := client.BucketExists(ctx, name)
		testenv.Check(tb, err == nil, "look for bucket %s: %v", name, err)
		if !exists {
			return
		}
		for err := range client.RemoveObjects(ctx, name, client.ListObjects(ctx, name, minio.ListObjectsOptions{Recursive: true}), minio.RemoveObjectsOptions{}) {
			tb.Errorf("empty bucket %s: %v", name, err.Err)
		}
		testenv.Is(tb, client.RemoveBucket(ctx, name), nil, "remove bucket %s", name)
	})
	return Backend{
		Config: blobstore.Config{
			URL: "s3://" + name + "/some/where", Endpoint: "http://" + endpoint,
			AccessKey: accessKey, SecretKey: secretKey, Region: "us-east-1", Timeout: time.Minute,
		},
		Write: func(t *testing.T, key string, content []byte) {
			t.Helper()
			_, err := client.PutObject(t.Context(), name, "some/where/"+key, bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
			testenv.Do(t, err)
		},
		Remove: func(t *testing.T, key string) {
			t.Helper()
			testenv.Do(t, client.RemoveObject(t.Context(), name, "some/where/"+key, minio.RemoveObjectOptions{}))
		},
	}
}

// Open returns the store of a configuration, uninitialized.
func Open(tb testing.TB, cfg blobstore.Config) *blobstore.Store {
	tb.Helper()
	return testenv.Must(blobstore.New(cfg))(tb)
}

// OpenInit returns the store of a configuration, initialized.
func OpenInit(tb testing.TB, cfg blobstore.Config) *blobstore.Store {
	tb.Helper()
	store := Open(tb, cfg)
	testenv.Do(tb, store.Init(tb.Context()))
	return store
}
