package core

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/text/unicode/norm"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Bounds of a password's length, in characters.
const (
	MinPassword = 8
	MaxPassword = 128
)

// Check returns an Invalid fault with a field for a password that is too short or long, or easily guessed.
// names are the user's, as far as the caller knows them.
func (p *Passwords) Check(field, password string, names ...string) error {
	switch n := utf8.RuneCountInString(password); {
	case !utf8.ValidString(password):
		return fault.Field(field, "The password must be valid UTF-8.")
	case n < MinPassword || n > MaxPassword && utf8.RuneCountInString(normalPassword(password)) > MaxPassword:
		return fault.Field(field, "The password has %d characters, but must have %d to %d.", n, MinPassword, MaxPassword)
	default:
		return checkCommon(field, password, append(names, p.site)...)
	}
}

// Cost of argon2id: 19 MiB of memory, two passes, one lane (the first recommendation of the
// OWASP Password Storage Cheat Sheet).
const (
	argonMemory  = 19 * 1024 // KiB
	argonPasses  = 2
	argonLanes   = 1
	argonSalt    = 16 // bytes
	argonKey     = 32 // bytes
	argonVersion = argon2.Version
)

// verifiers lists the hash schemes that the database may hold, by the prefix of their hashes. A
// successful log-in replaces a hash of any other than the first.
var verifiers = []struct {
	prefix string
	verify func(hash, password string) (bool, error)
}{
	{"$argon2id$", verifyArgon2id},
	{"$2a$", verifyBcrypt},
	{"$2b$", verifyBcrypt},
	{"$2y$", verifyBcrypt},
}

// Passwords hashes and verifies passwords, at most GOMAXPROCS at a time: a hash takes 19 MiB and a
// processor for a while, so more at a time would only take memory.
type Passwords struct {
	*cpuLimiter
	memory uint32 // of a hash, in KiB
	prefix string // of hashes of the present scheme and cost
	dummy  string // a hash that matches no password, and takes as long to verify as any other one
	site   string // the name of the site, which no password may be
}

// waitersPerWorker is how many callers may wait for each processor: about a second's work.
const waitersPerWorker = 32

// NewPasswords returns a hasher for a site of a name, which may be empty.
func NewPasswords(site string) *Passwords {
	p := NewPasswordsOf(argonMemory)
	p.site = site
	return p
}

// NewPasswordsOf returns a hasher whose hashes take other memory, in KiB. Tests save time with little:
// a hash of 19 MiB takes 20 ms.
func NewPasswordsOf(memory uint32) *Passwords {
	p := &Passwords{memory: memory, prefix: fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$", argonVersion, memory, argonPasses, argonLanes)}
	p.dummy = p.format(make([]byte, argonSalt), make([]byte, argonKey))
	p.cpuLimiter = newCPULimiter(runtime.GOMAXPROCS(0), waitersPerWorker, "Too many people are signing in at the moment. Please try again.")
	return p
}

// Hash returns the hash of a password in PHC string format. It returns an Unavailable fault at once
// when the queue is full.
func (p *Passwords) Hash(ctx context.Context, password string) (hash string, err error) {
	err = p.do(ctx, func() { hash = p.encode(normalPassword(password)) })
	return hash, err
}

// Verify reports whether a password matches a hash, and returns a new hash if the stored one has an
// outdated scheme or cost. The empty hash of an account that does not exist matches no password.
// All cases compute one argon2id hash of the present cost, or two if normalising changes the password,
// so that the duration does not reveal whether there is an account; an outdated hash takes its own time
// on top, until the next log-in.
// Verify waits as long as it takes: the caller must have been admitted.
func (p *Passwords) Verify(ctx context.Context, hash, password string) (ok bool, newHash string, err error) {
	release, err := p.acquire(ctx)
	if err != nil {
		return false, "", err
	}
	defer release()

	normal := normalPassword(password)
	if ok, newHash, err = p.verify(hash, normal); ok || err != nil || normal == password {
		return ok, newHash, err
	}
	// The hash may be from before passwords were normalised.
	if ok, newHash, err = p.verify(hash, password); ok && newHash == "" && !keepsHash(hash, password) {
		newHash = p.encode(normal)
	}
	return ok, newHash, err
}

// keepsHash reports whether a hash stays though its scheme is outdated: bcrypt ignores the end of a long
// password, which must not become part of it.
func keepsHash(hash, password string) bool {
	return strings.HasPrefix(hash, "$2") && len(password) > bcryptBytes
}

// verify is Verify for one form of a password.
func (p *Passwords) verify(hash, password string) (ok bool, newHash string, err error) {
	if strings.HasPrefix(hash, p.prefix) {
		ok, err = verifyArgon2id(hash, password)
		return ok, "", err
	}
	for _, v := range verifiers {
		if strings.HasPrefix(hash, v.prefix) {
			if ok, err = v.verify(hash, password); err != nil {
				return false, "", err
			}
			break
		}
	}
	if !ok {
		_, err = verifyArgon2id(p.dummy, password)
		return false, "", err
	}
	if keepsHash(hash, password) {
		return true, "", nil
	}
	return true, p.encode(normalPassword(password)), nil
}

// normalPassword returns a password as it is hashed, so that it is the same from every keyboard: with
// plain spaces for all others, in Unicode's normal form C. That is the mapping of RFC 8265's
// OpaqueString, without its refusals.
func normalPassword(password string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return ' '
		}
		return r
	}, password))
}

// encode returns a new hash of a password.
func (p *Passwords) encode(password string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails
	return p.format(salt, argon2.IDKey([]byte(password), salt, argonPasses, p.memory, argonLanes, argonKey))
}

func (p *Passwords) format(salt, key []byte) string {
	return p.prefix + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(key)
}

var errHash = errors.New("the stored password hash is malformed")

func verifyArgon2id(hash, password string) (bool, error) {
	parts := strings.Split(hash, "$") // "", argon2id, v=, m=,t=,p=, salt, key
	if len(parts) != 6 {
		return false, errHash
	}
	var version int
	var memory, passes uint32
	var lanes uint8
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &passes, &lanes); err != nil || version != argonVersion {
		return false, errHash
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, errHash
	}
	key, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(key) == 0 || passes == 0 || lanes == 0 {
		return false, errHash
	}
	got := argon2.IDKey([]byte(password), salt, passes, memory, lanes, uint32(len(key)))
	return subtle.ConstantTimeCompare(got, key) == 1, nil
}

// bcryptBytes is how many bytes of a password bcrypt reads.
const bcryptBytes = 72

func verifyBcrypt(hash, password string) (bool, error) {
	// Older systems silently truncate longer passwords before hashing.
	password = password[:min(len(password), bcryptBytes)]
	// PHP writes $2y$ where others write $2b$.
	if rest, ok := strings.CutPrefix(hash, "$2y$"); ok {
		hash = "$2b$" + rest
	}
	switch err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)); {
	case err == nil:
		return true, nil
	case errors.Is(err, bcrypt.ErrMismatchedHashAndPassword):
		return false, nil
	default:
		return false, errHash
	}
}
