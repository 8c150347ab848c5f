// Package hook posts purges to whatever tells a site's content delivery networks
// what to forget: a small program of the operator's, or a function in the cloud.
//
// A post is JSON: the position up to which changes are purged, and their tags, or
// all set to true when everything must be forgotten:
//
//	{"epoch":"8f9c…","revision":1042,"tags":["player-5","name-steve","texture-12"]}
//	{"epoch":"0b3e…","revision":1100,"all":true}
//
// Any answer of the class 2xx says that the purge is in good hands; after any
// other, or none, the post comes again. It may also come again after a 2xx,
// when core dies at that moment. Purging twice does no harm.
//
// Two headers prove where a post comes from. X-Veneer-Timestamp is the time in
// Unix seconds; a receiver refuses what is a few minutes old. X-Veneer-Signature
// is "sha256=" and the hexadecimal HMAC-SHA256, by the shared secret, of the
// timestamp, a full stop and the body.
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

// The headers of a post that say when and by whom it was sent.
const (
	HeaderTimestamp = "X-Veneer-Timestamp"
	HeaderSignature = "X-Veneer-Signature"
)

// Config says where purges go. Without a URL there are none.
type Config struct {
	URL     string        `env:"URL" example:"https://hooks.example.org/purge" needs:"SECRET" help:"where tags are posted that content delivery networks must forget, as in https://hooks.example.org/purge; the same at every core; empty: nowhere"`
	Secret  string        `env:"SECRET" random:"true" example:"$(head -c 32 /dev/urandom | base64)" needs:"URL" help:"secret of at least 32 bytes that signs those posts"`
	Timeout time.Duration `env:"TIMEOUT" envDefault:"5s" help:"longest time that one such post may take"`
}

// minSecret is as long as the digest that it is mixed into.
const minSecret = sha256.Size

// maxResponseBytes is how much of an answer is read, so that its connection can be used
// again. Nothing in it matters.
const maxResponseBytes = 64 << 10

// Webhook is where purges are posted.
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
}

var _ CDN = (*Webhook)(nil)

// Check returns an error that names a setting which makes no sense. That there is no URL
// makes sense where nothing is purged.
func (c Config) Check() error {
	_, ok := config.ParseURL(c.URL)
	switch {
	case c.URL != "" && !ok:
		return errors.New("URL must look like http://host/path or https://host/path") // it may hold a token, and is not shown
	case c.URL != "" && len(c.Secret) < minSecret:
		return fmt.Errorf("SECRET has %d bytes, but must have at least %d", len(c.Secret), minSecret)
	case c.Timeout <= 0:
		return fmt.Errorf("TIMEOUT is %s, but must be longer than 0", c.Timeout)
	default:
		return nil
	}
}

// New returns the hook at a URL. It reaches nothing yet.
func New(cfg Config) (*Webhook, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	target, ok := config.ParseURL(cfg.URL)
	if !ok {
		return nil, errors.New("URL must be set")
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
			// What is signed for one receiver goes to nobody that it may name.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Purge posts a purge. The context bounds how long that may take.
func (h *Webhook) Purge(ctx context.Context, purge Purge) error {
	body, err := json.Marshal(struct {
		Epoch    string   `json:"epoch"`
		Revision int64    `json:"revision"`
		All      bool     `json:"all,omitempty"`
		Tags     []string `json:"tags,omitempty"`
	}{purge.Epoch, purge.Revision, purge.All, purge.Tags})
	if err != nil {
		return fmt.Errorf("write the body: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "veneer-core")
	request.Header.Set(HeaderTimestamp, timestamp)
	request.Header.Set(HeaderSignature, h.sign(timestamp, body))
	response, err := h.client.Do(request)
	if err != nil {
		// The error around it quotes the URL, which may hold a token.
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		return fmt.Errorf("post to the hook: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, maxResponseBytes)
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the hook answers %d", response.StatusCode)
	}
	return nil
}

// sign returns the value of the signature's header.
func (h *Webhook) sign(timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, h.secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
