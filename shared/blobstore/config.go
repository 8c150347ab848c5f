package blobstore

import (
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/veneer-skins/veneer/shared/breaker"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/tlsreload"
)

// Config configures a Store.
type Config struct {
	URL       string        `env:"URL,required,notEmpty" example:"file:///var/lib/veneer/textures" help:"where texture files are stored: file:///absolute/directory, file://relative/directory, s3://bucket or s3://bucket/prefix"`
	Endpoint  string        `env:"ENDPOINT" example:"http://127.0.0.1:9000" help:"address of the S3 store, as in https://s3.example.org or http://127.0.0.1:9000 (s3:// only)"`
	AccessKey string        `env:"ACCESS_KEY" example:"veneer" needs:"SECRET_KEY" help:"access key of the S3 store; one that only reads needs GetObject and, to tell a missing file from a forbidden one, ListBucket (s3:// only)"`
	SecretKey string        `env:"SECRET_KEY" example:"the-secret-key-of-that-access-key" needs:"ACCESS_KEY" help:"secret key of the S3 store (s3:// only)"`
	CA        string        `env:"CA" example:"/etc/ssl/certs/ca-certificates.crt" help:"path of a PEM file with the authorities that are trusted for the S3 store's certificate; empty: the system's (s3:// only)"`
	Region    string        `env:"REGION" envDefault:"us-east-1" help:"region of the S3 store (s3:// only)"`
	Timeout   time.Duration `env:"TIMEOUT" envDefault:"5s" above:"0s" help:"longest time of a request to the texture store"`

	// ReadOnly rejects all writes. It is set by the program, not by a setting.
	ReadOnly bool
}

// New returns the store of a configuration. It does not connect, so that a program starts
// although its store is down.
func New(cfg Config) (*Store, error) {
	backend, err := newBackend(cfg)
	if err != nil {
		return nil, err
	}
	return &Store{
		backend: backend, url: config.QuoteRedacted(cfg.URL), timeout: cfg.Timeout, readOnly: cfg.ReadOnly,
		limiter: newCallLimiter(), breaker: breaker.New(dependency),
	}, nil
}

func newBackend(cfg Config) (backend, error) {
	scheme, rest, _ := strings.Cut(cfg.URL, "://")
	switch scheme {
	case "file":
		path, err := url.PathUnescape(rest)
		if err != nil || path == "" {
			return nil, config.Errorf("URL", "is %s, but must name a directory or a bucket", config.QuoteRedacted(cfg.URL))
		}
		// An absolute path, in case the program changes its working directory.
		root, err := filepath.Abs(path)
		if err != nil {
			return nil, config.Errorf("URL", "is %s, and the directory that it is relative to is not known: %w", config.QuoteRedacted(cfg.URL), err)
		}
		return newDirBackend(root), nil
	case "s3":
		return newS3Backend(cfg, rest)
	default:
		return nil, config.Errorf("URL", "is %s, but must begin with file:// or s3://", config.QuoteRedacted(cfg.URL))
	}
}

func newS3Backend(cfg Config, rest string) (*s3Backend, error) {
	name, prefix, _ := strings.Cut(rest, "/")
	if err := s3utils.CheckValidBucketNameStrict(name); err != nil {
		return nil, config.Errorf("URL", "is %s, but a bucket has 3 to 63 lower-case letters, digits and hyphens", config.QuoteRedacted(cfg.URL))
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	endpoint, ok := config.ParseURL(cfg.Endpoint)
	switch {
	case cfg.Endpoint == "":
		return nil, config.Errorf("ENDPOINT", "must be set for a bucket")
	case !ok || endpoint.User != nil:
		return nil, config.Errorf("ENDPOINT", "is %s, but must look like https://host or http://host:port", config.QuoteRedacted(cfg.Endpoint))
	case strings.Trim(endpoint.Path, "/") != "":
		return nil, config.Errorf("ENDPOINT", "is %s, but must have no path", config.QuoteRedacted(cfg.Endpoint))
	case cfg.AccessKey == "":
		return nil, config.Errorf("ACCESS_KEY", "must be set for a bucket")
	case cfg.SecretKey == "":
		return nil, config.Errorf("SECRET_KEY", "must be set for a bucket")
	case cfg.Region == "":
		return nil, config.Errorf("REGION", "must be set for a bucket")
	}
	tlsConfig, err := tlsreload.ClientConfig(cfg.CA)
	if err != nil {
		return nil, config.Errorf("CA", "%w", err)
	}
	client, err := minio.NewCore(endpoint.Host, clientOptions(cfg, endpoint.Scheme == "https", tlsConfig))
	if err != nil {
		return nil, config.Errorf("ENDPOINT", "is %s, which cannot be used: %w", config.QuoteRedacted(cfg.Endpoint), err)
	}
	return &s3Backend{client: client, name: name, prefix: prefix}, nil
}
