package objects

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/veneer-skins/veneer/shared/breaker"
	"github.com/veneer-skins/veneer/shared/certificate"
)

// Config says where texture files are kept.
type Config struct {
	URL       string        `env:"URL,required,notEmpty" help:"where texture files are kept: file:///absolute/directory, file://relative/directory, s3://bucket or s3://bucket/prefix"`
	Endpoint  string        `env:"ENDPOINT" help:"address of the S3 store, as in https://s3.example.org or http://127.0.0.1:9000 (s3:// only)"`
	AccessKey string        `env:"ACCESS_KEY" help:"access key of the S3 store; one that only reads needs GetObject and, to tell a missing file from a forbidden one, ListBucket (s3:// only)"`
	SecretKey string        `env:"SECRET_KEY" help:"secret key of the S3 store (s3:// only)"`
	CA        string        `env:"CA" help:"path of a PEM file with the authorities that the S3 store's certificate may come from; empty: the system's (s3:// only)"`
	Region    string        `env:"REGION" envDefault:"us-east-1" help:"region of the S3 store (s3:// only)"`
	Timeout   time.Duration `env:"TIMEOUT" envDefault:"5s" help:"the longest that a texture file is waited for"`

	// ReadOnly refuses all writing. It is no setting: the program knows.
	ReadOnly bool
}

// New returns the store that the configuration describes. It reaches nothing
// yet, so a program starts although its store is down.
func New(config Config) (*Store, error) {
	if config.Timeout <= 0 {
		return nil, fmt.Errorf("TIMEOUT is %s, but must be longer than 0", config.Timeout)
	}
	place, err := newPlace(config)
	if err != nil {
		return nil, err
	}
	return &Store{
		place: place, timeout: config.Timeout, readOnly: config.ReadOnly,
		pool: newPool(), breaker: breaker.New(dependency),
	}, nil
}

func newPlace(config Config) (place, error) {
	scheme, rest, _ := strings.Cut(config.URL, "://")
	switch scheme {
	case "file":
		path, err := url.PathUnescape(rest)
		if err != nil || path == "" {
			return nil, errors.New("URL names no directory")
		}
		// The place must not move if the program changes its directory.
		root, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("URL names no directory: %w", err)
		}
		return newDirectory(root), nil
	case "s3":
		return newBucket(config, rest)
	default:
		return nil, fmt.Errorf("URL is %q, but must begin with file:// or s3://", config.URL)
	}
}

func newBucket(config Config, rest string) (*bucket, error) {
	name, prefix, _ := strings.Cut(rest, "/")
	if err := s3utils.CheckValidBucketNameStrict(name); err != nil {
		return nil, fmt.Errorf("URL names the bucket %q: %w", name, err)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	endpoint, err := url.Parse(config.Endpoint)
	switch {
	case config.Endpoint == "":
		return nil, errors.New("ENDPOINT is not set")
	case err != nil || endpoint.Host == "" || (endpoint.Scheme != "http" && endpoint.Scheme != "https"):
		return nil, errors.New("ENDPOINT must look like https://host or http://host:port")
	case strings.Trim(endpoint.Path, "/") != "":
		return nil, errors.New("ENDPOINT must have no path: the bucket belongs into URL")
	case config.AccessKey == "":
		return nil, errors.New("ACCESS_KEY is not set")
	case config.SecretKey == "":
		return nil, errors.New("SECRET_KEY is not set")
	case config.Region == "":
		return nil, errors.New("REGION is not set")
	}
	verified, err := certificate.Client(config.CA)
	if err != nil {
		return nil, fmt.Errorf("CA %w", err)
	}
	client, err := minio.NewCore(endpoint.Host, clientOptions(config, endpoint.Scheme == "https", verified))
	if err != nil {
		return nil, fmt.Errorf("ENDPOINT is of no use: %w", err)
	}
	return &bucket{client: client, name: name, prefix: prefix}, nil
}
