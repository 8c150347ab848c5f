package core

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/sieve"
)

// PlayerCertificate is a key with which a player signs chat messages, certified by the site's key.
type PlayerCertificate struct {
	// PrivateKey and PublicKey are in the PEM that games parse.
	PrivateKey, PublicKey string
	// SignatureV1 is for games of version 1.19, SignatureV2 for later ones. Both are empty on a site
	// that does not sign keys.
	SignatureV1, SignatureV2 string
	ExpiresAt, RefreshAfter  time.Time
}

const (
	// Lifetimes that games expect.
	certificateTTL     = 48 * time.Hour
	certificateRefresh = 36 * time.Hour
	// playerKeyBits is the only size that games accept.
	playerKeyBits = 2048
	// maxCertificates bounds the cache to about 4 MiB.
	maxCertificates = 1024
	// certificateWaiters is how many keys may wait for each processor: some seconds' work.
	certificateWaiters = 32
)

// PlayerCertificates issues keys to players. A key takes a tenth of a second of a processor, so each
// core gives the same one until it must be replaced to a player, as long as the player has the same
// owner and the launcher has not signed in anew: a key ends with the tokens that got it.
type PlayerCertificates struct {
	key     *ProfileKey
	signed  bool
	now     Clock
	limiter *cpuLimiter

	mu     sync.Mutex
	issued *sieve.Cache[certificateKey, PlayerCertificate]
}

// certificateKey is what a certificate belongs to.
type certificateKey struct {
	player   uuid.UUID
	owner    UserID
	signedIn int64 // in nanoseconds since 1970
}

// NewPlayerCertificates returns certificates of a key, with signatures or without.
func NewPlayerCertificates(key *ProfileKey, signed bool, now Clock) *PlayerCertificates {
	return &PlayerCertificates{
		key: key, signed: signed, now: now, issued: sieve.New[certificateKey, PlayerCertificate](maxCertificates),
		limiter: newCPULimiter(max(1, runtime.GOMAXPROCS(0)-1), certificateWaiters, "Too many keys are being made at the moment. Please try again."),
	}
}

// Issue returns a certificate for the player of a token. It returns an Unavailable fault if too many are
// being made.
func (c *PlayerCertificates) Issue(ctx context.Context, user LauncherUser) (PlayerCertificate, error) {
	key := certificateKey{user.Player.UUID, user.ID, user.SignedIn.UnixNano()}
	if certificate, ok := c.cached(key); ok {
		return certificate, nil
	}
	var certificate PlayerCertificate
	var err error
	if busy := c.limiter.do(ctx, func() {
		// Another request of the player may have made one meanwhile.
		var ok bool
		if certificate, ok = c.cached(key); !ok {
			certificate, err = c.issue(key)
		}
	}); busy != nil {
		return PlayerCertificate{}, busy
	}
	return certificate, err
}

// cached returns the certificate that a player has, unless it must be replaced.
func (c *PlayerCertificates) cached(key certificateKey) (PlayerCertificate, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	certificate := c.issued.Get(key)
	if certificate == nil || !c.now().Before(certificate.RefreshAfter) {
		return PlayerCertificate{}, false
	}
	return *certificate, true
}

// issue makes a key, signs it, and caches it.
func (c *PlayerCertificates) issue(key certificateKey) (PlayerCertificate, error) {
	private, err := rsa.GenerateKey(rand.Reader, playerKeyBits)
	if err != nil {
		return PlayerCertificate{}, fmt.Errorf("make a key: %w", err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return PlayerCertificate{}, fmt.Errorf("encode a key: %w", err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return PlayerCertificate{}, fmt.Errorf("encode a key: %w", err)
	}
	now := c.now().Truncate(time.Millisecond)
	certificate := PlayerCertificate{
		PrivateKey: gamePEM("RSA PRIVATE KEY", privateDER), PublicKey: gamePEM("RSA PUBLIC KEY", publicDER),
		ExpiresAt: now.Add(certificateTTL), RefreshAfter: now.Add(certificateRefresh),
	}
	if c.signed {
		if err := c.sign(&certificate, key.player, publicDER); err != nil {
			return PlayerCertificate{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.issued.Put(key, certificate, 1)
	return certificate, nil
}

// sign signs a certificate in both versions.
func (c *PlayerCertificates) sign(certificate *PlayerCertificate, player uuid.UUID, publicDER []byte) (err error) {
	expires := certificate.ExpiresAt.UnixMilli()
	if certificate.SignatureV1, err = c.key.sign(strconv.FormatInt(expires, 10) + certificate.PublicKey); err != nil {
		return err
	}
	signed := binary.BigEndian.AppendUint64(player[:len(player):len(player)], uint64(expires))
	certificate.SignatureV2, err = c.key.sign(string(append(signed, publicDER...)))
	return err
}

// pemLine is the length of a line of base64 in the PEM of games; package encoding/pem has 64.
const pemLine = 76

// gamePEM returns a key in the PEM of games. Its types do not fit the formats of the keys, PKCS #8
// and SubjectPublicKeyInfo.
func gamePEM(kind string, der []byte) string {
	var text strings.Builder
	fmt.Fprintf(&text, "-----BEGIN %s-----\n", kind)
	for encoded := base64.StdEncoding.EncodeToString(der); encoded != ""; {
		line := encoded[:min(pemLine, len(encoded))]
		encoded = encoded[len(line):]
		text.WriteString(line + "\n")
	}
	fmt.Fprintf(&text, "-----END %s-----\n", kind)
	return text.String()
}
