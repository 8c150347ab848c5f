// Package cdnpurge posts purges to a webhook, which purges a site's content delivery networks:
// a small program of the operator, or a cloud function.
//
// The body is JSON: the cursor in the stream of changes up to which it purges, and the tags
// to purge, or all set to true when everything must be purged:
//
//	{"epoch":"8f9c…","revision":1042,"tags":["player-5","name-steve","texture-12"]}
//	{"epoch":"0b3e…","revision":1100,"all":true}
//
// A status 2xx acknowledges a purge; after any other, or an error, it is posted again. It may
// also be posted again after a 2xx, when core crashes at that time: delivery is at least once.
//
// Two headers authenticate a post. X-Veneer-Timestamp is the time in Unix seconds; a receiver
// should reject one that is some minutes old. X-Veneer-Signature is "sha256=" and the
// hexadecimal HMAC-SHA256, with the shared secret, of the timestamp, a full stop and the body.
package cdnpurge

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/veneer-skins/veneer/shared/config"
)

// Headers that authenticate a post.
const (
	HeaderTimestamp = "X-Veneer-Timestamp"
	HeaderSignature = "X-Veneer-Signature"
)

// Config has the settings of the webhook. Without a URL there are no purges.
// Its settings are CORE_PURGE_URL, CORE_PURGE_SECRET, CORE_PURGE_TIMEOUT.
type Config struct {
	URL     string        `env:"URL" example:"https://hooks.example.org/purge" needs:"SECRET" help:"webhook that gets the tags to purge from content delivery networks, as in https://hooks.example.org/purge; the same at every core; empty: no purges"`
	Secret  string        `env:"SECRET" random:"true" example:"$(head -c 32 /dev/urandom | base64)" needs:"URL" help:"secret of at least 32 bytes that signs requests to the webhook"`
	Timeout time.Duration `env:"TIMEOUT" envDefault:"5s" above:"0s" help:"timeout of a request to the webhook"`
}

// minSecret is the length of the digest, as RFC 2104 recommends for keys.
const minSecret = sha256.Size

// maxResponseBytes bounds how much of a response is read for its connection to be reused. The
// content is ignored.
const maxResponseBytes = 64 << 10

// Webhook posts purges to a URL.
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
}

var _ CDN = (*Webhook)(nil)

// Check validates the settings. Its error begins with the name of a setting. Without a URL they
// are valid.
func (c Config) Check() error {
	_, ok := config.ParseURL(c.URL)
	switch {
	case c.URL != "" && !ok:
		return config.Errorf("URL", "must look like http://host/path or https://host/path") // without the value, which may contain a token
	case c.URL != "" && len(c.Secret) < minSecret:
		return config.Errorf("SECRET", "has %d bytes, but must have at least %d", len(c.Secret), minSecret)
	default:
		return nil
	}
}

// New returns the webhook at a URL. It does not connect yet.
func New(cfg Config) (*Webhook, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	target, ok := config.ParseURL(cfg.URL)
	if !ok {
		return nil, config.Errorf("URL", "must be set")
	}
	return &Webhook{
		url:    target.String(),
		secret: []byte(cfg.Secret),
		client: &http.Client{
			Transport: &http.Transport{
				DialContext:       (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext,
				ForceAttemptHTTP2: true,
				MaxConnsPerHost:   1, // one purge at a time
				IdleConnTimeout:   30 * time.Second,
			},
			// Redirects are not followed: a post is signed for one receiver.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Purge posts a purge. The context bounds the request.
func (w *Webhook) Purge(ctx context.Context, purge Purge) error {
	body, err := json.Marshal(struct {
		Epoch    string   `json:"epoch"`
		Revision int64    `json:"revision"`
		All      bool     `json:"all,omitempty"`
		Tags     []string `json:"tags,omitempty"`
	}{purge.Epoch, purge.Revision, purge.All, purge.Tags})
	if err != nil {
		return fmt.Errorf("encode the body: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("create the request: %w", err)
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "veneer-core")
	request.Header.Set(HeaderTimestamp, timestamp)
	request.Header.Set(HeaderSignature, w.sign(timestamp, body))
	response, err := w.client.Do(request)
	if err != nil {
		// url.Error contains the URL, which may contain a token.
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		return fmt.Errorf("post to the webhook: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, maxResponseBytes)
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook returned %d", response.StatusCode)
	}
	return nil
}

// sign returns the value of HeaderSignature.
func (w *Webhook) sign(timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, w.secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
