package blobstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
)

// Ready returns the error of Check, explained. A directory must also be writable, unless the
// store is read-only.
func (s *Store) Ready(ctx context.Context) error {
	err := s.Check(ctx)
	if d, ok := s.backend.(*dirBackend); ok && err == nil && !s.readOnly {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		err = d.checkWritable(ctx)
	}
	return s.Explain(err)
}

// IsDirectory reports whether the backend is a directory.
func (s *Store) IsDirectory() bool {
	_, ok := s.backend.(*dirBackend)
	return ok
}

// Explain returns an error of a Store in words for operators: it begins with the name of the
// setting that it is about, and says what to do. It is a config.Error, which
// is final if only another setting can fix it. ErrNotInitialized is not, since core migrate fixes that.
func (s *Store) Explain(err error) error {
	if err == nil {
		return nil
	}
	b, isBucket := s.backend.(*s3Backend)
	notInitialized := errors.Is(err, ErrNotInitialized)
	err = fault.CauseOf(err)
	switch {
	case isBucket && (errors.Is(err, errNotS3) || isNotS3(err)):
		return config.Finalf("ENDPOINT", "is %q, where no S3 store answers: %w", b.client.EndpointURL(), err)
	case isBucket && notInitialized:
		return bucketError("is %s, where no texture store was prepared; run core migrate; if it was run, this is another bucket or prefix (%w)", s.url, err)
	case notInitialized:
		return config.Errorf("URL", "is %s, where no texture store was prepared; run core migrate; if it was run, this is another directory, or a disk that is not mounted (%w)", s.url, err)
	case isBucket:
		return b.explain(s.url, err)
	}
	return explainDirError(s.url, err)
}

// bucketError returns an error about the URL of a bucket.
func bucketError(format string, args ...any) error {
	return &config.Error{Setting: "URL", Cause: fmt.Errorf(format, args...), Example: "s3://veneer"}
}

// explainDirError returns a final error for all errors but timeouts: only a network mount
// recovers without the operator of this machine.
func explainDirError(url string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return config.Errorf("URL", "is %s, a directory that does not answer; check the disk or the server that it is mounted from, or choose another: %w", url, err)
	}
	if errors.Is(err, errNotWritable) {
		return config.Finalf("URL", "is %s, a directory that this user cannot write to; change its owner to the user that runs this, or choose another: %w", url, err)
	}
	return config.Finalf("URL", "is %s, a directory that this user cannot use: %w", url, err)
}

// explain returns a final error for errors about the request, and no final one for errors about the
// state of the store.
func (b *s3Backend) explain(url string, err error) error {
	response, answered := errors.AsType[minio.ErrorResponse](err)
	if !answered || response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
		return config.Errorf("ENDPOINT", "is %q, where the store does not answer; start it, or correct the address: %w", b.client.EndpointURL(), err)
	}
	switch response.Code {
	case minio.NoSuchBucket:
		return bucketError("is %s, but there is no such bucket; run core migrate, which creates it, or choose another: %w", url, ErrNotInitialized)
	case "InvalidAccessKeyId":
		return config.Finalf("ACCESS_KEY", "is none that the store at %q knows: %w", b.client.EndpointURL(), err)
	case "SignatureDoesNotMatch":
		return config.Finalf("SECRET_KEY", "is not the one of the access key, says the store at %q: %w", b.client.EndpointURL(), err)
	case "AuthorizationHeaderMalformed":
		return config.Finalf("REGION", "is not that of the store at %q: %w", b.client.EndpointURL(), err)
	case minio.AccessDenied:
		return config.Finalf("ACCESS_KEY", "may not do that at %s; its policy must allow it, or the bucket is another: %w", url, err)
	default:
		return config.Finalf("ENDPOINT", "is %q, which rejects %s: %w", b.client.EndpointURL(), url, err)
	}
}
