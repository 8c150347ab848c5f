package core

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/sieve"
)

// Token is the content of a bearer token. Signing it is deterministic.
type Token struct {
	User     UserID
	Session  uuid.UUID
	ID       uuid.UUID // jti
	IssuedAt time.Time // whole seconds
}

// claims is the payload of a token. The order of its fields is part of the signature.
type claims struct {
	Issuer    string  `json:"iss"`
	Subject   string  `json:"sub"`
	Session   string  `json:"sid"`
	ID        string  `json:"jti"`
	IssuedAt  seconds `json:"iat"`
	NotBefore seconds `json:"nbf"`
	ExpiresAt seconds `json:"exp"`
}

// seconds is a time in whole seconds since 1970; 0 stands for none. It is parsed several times as
// fast as the library's own type, and every request parses three.
type seconds int64

func (s seconds) date() (*jwt.NumericDate, error) {
	if s == 0 {
		return nil, nil
	}
	return &jwt.NumericDate{Time: time.Unix(int64(s), 0)}, nil
}

func (c claims) GetIssuer() (string, error)                   { return c.Issuer, nil }
func (c claims) GetSubject() (string, error)                  { return c.Subject, nil }
func (c claims) GetAudience() (jwt.ClaimStrings, error)       { return nil, nil }
func (c claims) GetIssuedAt() (*jwt.NumericDate, error)       { return c.IssuedAt.date() }
func (c claims) GetNotBefore() (*jwt.NumericDate, error)      { return c.NotBefore.date() }
func (c claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.ExpiresAt.date() }

// KeyRing signs tokens with its first key and verifies with all of them, so that keys can be
// rotated without ending sessions.
type KeyRing struct {
	first string
	keys  map[string][]byte // by kid
}

// minKey is the least length of a key in bytes: as of a SHA-256.
const minKey = 32

// UnmarshalText parses "id:base64,id:base64,…".
func (k *KeyRing) UnmarshalText(text []byte) error {
	k.keys = map[string][]byte{}
	for entry := range strings.SplitSeq(string(text), ",") {
		kid, encoded, _ := strings.Cut(strings.TrimSpace(entry), ":")
		key, err := base64.StdEncoding.DecodeString(encoded)
		switch {
		case kid == "" || encoded == "":
			return errors.New("must have keys of the form id:base64, separated by commas")
		case err != nil:
			return fmt.Errorf("has the key %.100q, which is no base64", kid)
		case len(key) < minKey:
			return fmt.Errorf("has the key %.100q of %d bytes, but each must have at least %d", kid, len(key), minKey)
		case k.keys[kid] != nil:
			return fmt.Errorf("has the key %.100q twice", kid)
		}
		if k.first == "" {
			k.first = kid
		}
		k.keys[kid] = key
	}
	return nil
}

// Tokens signs and verifies bearer tokens: JWTs with HMAC-SHA-256.
type Tokens struct {
	ring   KeyRing
	issuer string
	ttl    time.Duration
	now    Clock
	parser *jwt.Parser
	cache  tokenCache
}

// NewTokens returns a signer of tokens that expire after ttl.
func NewTokens(ring KeyRing, issuer string, ttl time.Duration, now Clock) *Tokens {
	return &Tokens{ring: ring, issuer: issuer, ttl: ttl, now: now, cache: tokenCache{tokens: sieve.New[string, cachedToken](maxCachedTokens)}, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(issuer), jwt.WithExpirationRequired(), jwt.WithNotBeforeRequired(), jwt.WithIssuedAt(), jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(now), jwt.WithLeeway(clockSkew),
	)}
}

// Sign returns the compact form of a token.
func (t *Tokens) Sign(token Token) (string, error) {
	issued := seconds(token.IssuedAt.Unix())
	unsigned := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		Issuer: t.issuer, Subject: strconv.FormatInt(int64(token.User), 10), Session: token.Session.String(), ID: token.ID.String(),
		IssuedAt: issued, NotBefore: issued, ExpiresAt: seconds(token.IssuedAt.Add(t.ttl).Unix()),
	})
	unsigned.Header["kid"] = t.ring.first
	signed, err := unsigned.SignedString(t.ring.keys[t.ring.first])
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return signed, nil
}

// clockSkew is how far the clocks of cores may differ: a token from a core with a clock that is
// ahead is not rejected as not yet valid. Tokens also work that much longer than they say.
const clockSkew = 5 * time.Second

var errKey = errors.New("signed with an unknown key")

// Verify returns the content of a compact token. Whether its session is live is not checked. With
// allowExpired a token that is only expired is returned; any other flaw is an error.
func (t *Tokens) Verify(compact string, allowExpired bool) (Token, error) {
	if token, ok := t.cache.get(compact, t.now()); ok {
		return token, nil
	}
	var c claims
	_, err := t.parser.ParseWithClaims(compact, &c, func(token *jwt.Token) (any, error) {
		kid, _ := token.Header["kid"].(string)
		if key := t.ring.keys[kid]; key != nil {
			return key, nil
		}
		return nil, errKey
	})
	if err != nil && (!allowExpired || !onlyExpired(err)) {
		return Token{}, fmt.Errorf("verify a token: %w", err)
	}
	valid := err == nil

	if c.IssuedAt == 0 {
		return Token{}, errors.New("a token does not say when it was issued")
	}
	uid, err := strconv.ParseInt(c.Subject, 10, 64)
	if err != nil {
		return Token{}, fmt.Errorf("read a token's subject: %w", err)
	}
	token := Token{User: UserID(uid), IssuedAt: time.Unix(int64(c.IssuedAt), 0)}
	if token.Session, err = uuid.Parse(c.Session); err != nil {
		return Token{}, fmt.Errorf("read a token's session: %w", err)
	}
	if token.ID, err = uuid.Parse(c.ID); err != nil {
		return Token{}, fmt.Errorf("read a token's id: %w", err)
	}
	if valid {
		t.cache.add(compact, cachedToken{
			Token: token, validFrom: time.Unix(int64(max(c.IssuedAt, c.NotBefore)), 0).Add(-clockSkew), validUntil: time.Unix(int64(c.ExpiresAt), 0).Add(clockSkew),
		})
	}
	return token, nil
}

// onlyExpired reports whether a token is only expired. The signature is verified before the claims,
// and all claims are verified.
func onlyExpired(err error) bool {
	return errors.Is(err, jwt.ErrTokenExpired) &&
		!errors.Is(err, jwt.ErrTokenRequiredClaimMissing) && !errors.Is(err, jwt.ErrTokenNotValidYet) && !errors.Is(err, jwt.ErrTokenUsedBeforeIssued) && !errors.Is(err, jwt.ErrTokenInvalidIssuer)
}
