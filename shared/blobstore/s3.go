package blobstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/veneer-skins/veneer/shared/skin"
)

const (
	// maxAttempts is how often a request is sent: twice, since an idle connection may have
	// been closed by the server; not more, as the client pauses after each failure.
	maxAttempts = 2
	// idleTimeout is how long an unused connection is kept open.
	idleTimeout = 30 * time.Second
	// pageSize is the most names in a page, a limit of S3.
	pageSize = 1000
)

// s3Backend stores files in a bucket of an S3 store.
type s3Backend struct {
	client *minio.Core
	name   string
	prefix string // empty, or ends in a slash
}

var _ backend = (*s3Backend)(nil)

func clientOptions(cfg Config, secure bool, tlsConfig *tls.Config) *minio.Options {
	return &minio.Options{
		Creds:      credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, ""),
		Secure:     secure,
		Region:     cfg.Region, // otherwise the client looks it up first
		MaxRetries: maxAttempts,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			// Dialling and the handshake continue after their request was abandoned.
			DialContext:         (&net.Dialer{Timeout: cfg.Timeout}).DialContext,
			TLSClientConfig:     tlsConfig,
			TLSHandshakeTimeout: cfg.Timeout,
			MaxConnsPerHost:     maxCalls,
			MaxIdleConnsPerHost: maxCalls,
			// Shorter than the idle timeouts of stores and balancers, so that they seldom
			// close the connection first.
			IdleConnTimeout: idleTimeout,
			// Decompression would change the bytes, and so the hash.
			DisableCompression: true,
		},
	}
}

func (b *s3Backend) create(ctx context.Context) error {
	exists, err := b.client.BucketExists(ctx, b.name)
	if err != nil || exists {
		return err
	}
	err = b.client.MakeBucket(ctx, b.name, minio.MakeBucketOptions{})
	if minio.ToErrorResponse(err).Code == minio.BucketAlreadyOwnedByYou {
		return nil // another program was faster
	}
	return err
}

// read uses GetObject of minio.Core, which sends exactly one request. GetObject of
// minio.Client sends it at the first Read, in a goroutine.
func (b *s3Backend) read(ctx context.Context, name string) ([]byte, error) {
	body, _, _, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if isNotS3(err) {
		return nil, errNotS3
	}
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return readCapped(body)
}

// isNotS3 reports whether a 404 has none of the fields of an S3 error. The client turns such
// a response into NoSuchKey or NoSuchBucket.
func isNotS3(err error) bool {
	response, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && response.StatusCode == http.StatusNotFound && response.RequestID == "" && response.HostID == "" && response.Resource == ""
}

// write sends the digest, so that the store rejects what is damaged on the way. S3 responds
// once the object is durable. A status of 500 or more is transient, and so is no response,
// but not 507 (Insufficient Storage).
func (b *s3Backend) write(ctx context.Context, name string, file []byte) error {
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(file), int64(len(file)),
		"", skin.HashOf(file).String(), minio.PutObjectOptions{
			ContentType: contentType(name),
			// The digest of the whole file replaces the digests of its chunks.
			DisableContentSha256: true,
		})
	if status := minio.ToErrorResponse(err).StatusCode; err != nil && status != http.StatusInsufficientStorage && (status == 0 || status >= 500) {
		return transientError{err}
	}
	return err
}

// remove relies on S3 to report success if there is no such object.
func (b *s3Backend) remove(ctx context.Context, name string) error {
	return b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
}

func (b *s3Backend) page(ctx context.Context, after string) ([]entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var page []entry
	for object := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{
		Prefix: b.prefix, StartAfter: b.prefix + after, Recursive: true, MaxKeys: pageSize,
	}) {
		if object.Err != nil {
			return nil, object.Err
		}
		page = append(page, entry{
			name: strings.TrimPrefix(object.Key, b.prefix), size: object.Size, modified: object.LastModified,
		})
		if len(page) == pageSize {
			break
		}
	}
	// The iterator ends without an error when the context ends.
	return page, ctx.Err()
}

// tempFiles returns none, since a file is put in one request.
func (b *s3Backend) tempFiles(context.Context, bool) ([]entry, error) { return nil, nil }

func contentType(name string) string {
	if name == marker {
		return "text/plain; charset=utf-8"
	}
	return "image/png"
}
