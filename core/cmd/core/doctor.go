package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/mail"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/skin"
)

// doctorTimeout bounds a check.
const doctorTimeout = 15 * time.Second

// Bounds of what is well.
const (
	maxClockDifference = 2 * time.Second
	maxLag             = time.Minute
	maxBackupAge       = 48 * time.Hour
	minFreeShare       = 0.1
)

// finding is a line of the report.
type finding struct {
	Check string `json:"check"`
	// State is ok, warning, failed, or skipped.
	State  string `json:"state"`
	Detail string `json:"detail"`
}

// warning is an error with which a site works.
type warning struct{ error }

// skipped says that a site does not have what a check is about.
type skipped string

func (s skipped) Error() string { return string(s) }

// doctor checks a site.
type doctor struct {
	settings
	environ []string
	db      *postgres.DB
	files   *blobstore.Store
}

// doctorCommand checks what a site needs. It changes nothing but for a file that it stores and removes.
func doctorCommand(ctx context.Context, i cli.Invocation) error {
	flags := cli.Flags("core doctor")
	isJSON := flags.Bool("json", false, "write an array of JSON objects with check, state and detail")
	if _, err := i.ParseArg(flags, ""); err != nil {
		return err
	}
	findings, failed := diagnose(ctx, i.Environ)
	if *isJSON {
		if err := json.NewEncoder(i.Stdout).Encode(findings); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			fmt.Fprintf(i.Stdout, "%-8s %-15s %s\n", f.State, f.Check, f.Detail)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}

// diagnose runs all checks. Without valid settings there is one finding.
func diagnose(ctx context.Context, environ []string) (findings []finding, failed int) {
	d := doctor{environ: environ}
	report := func(check string, run func(ctx context.Context) (string, error)) {
		ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
		defer cancel()
		detail, err := run(ctx)
		f := finding{check, "ok", detail}
		if err != nil {
			f.Detail = strings.Join(strings.Fields(config.Explain[settings](prefix, err).Error()), " ")
		}
		switch _, isWarning := errors.AsType[warning](err); {
		case errors.As(err, new(skipped)):
			f.State = "skipped"
		case isWarning:
			f.State = "warning"
		case err != nil:
			f.State = "failed"
			failed++
		}
		findings = append(findings, f)
	}
	report("settings", func(ctx context.Context) (string, error) { return "valid", d.open(ctx) })
	if d.db == nil {
		return findings, failed
	}
	defer d.db.Close()
	for _, check := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{"database", d.database},
		{"schema", d.schema},
		{"lists", d.lists},
		{"texture store", d.store},
		{"mail", d.mail},
		{"clock", d.clock},
		{"public URL", d.publicURL},
		{"proxies", d.proxies},
		{"key files", d.keyFiles},
		{"disk", d.disk},
		{"backup", d.backup},
	} {
		report(check.name, check.run)
	}
	return findings, failed
}

// open reads the settings and opens what they name.
func (d *doctor) open(ctx context.Context) (err error) {
	if d.settings, err = config.Read[settings](prefix, d.environ); err != nil {
		return err
	}
	if err = d.check(); err != nil {
		return err
	}
	if d.files, err = objectStore(d.Objects); err != nil {
		return err
	}
	if _, err = d.Site.ReadLogo(); err != nil {
		return config.In(prefix+"SITE_", err)
	}
	if _, err = core.NewSitePages(d.Site.PagesDir, slog.New(slog.DiscardHandler)); err != nil {
		return config.In(prefix+"SITE_", err)
	}
	d.db, err = postgres.Open(ctx, d.Config)
	return config.In(prefix, err)
}

func (d *doctor) database(ctx context.Context) (string, error) {
	server, err := d.db.Server(ctx)
	switch {
	case err != nil:
		return "", config.In(prefix, err)
	case server.Number < 150_000:
		return "", fmt.Errorf("PostgreSQL is %s, but 15 or newer is needed", server.Version)
	case server.Encoding != "UTF8":
		return "", fmt.Errorf("the database's encoding is %s; create it anew with --encoding=UTF8 and restore a backup into it", server.Encoding)
	case server.IsStandby:
		return "", config.Errorf("CORE_DATABASE_URL", "leads to a standby, which takes no writes; add target_session_attrs=read-write and both hosts to it")
	}
	return fmt.Sprintf("PostgreSQL %s, UTF-8", server.Version), config.In(prefix, d.db.CheckListen(ctx))
}

func (d *doctor) schema(ctx context.Context) (string, error) {
	if err := d.db.Check(ctx); err != nil {
		return "", config.In(prefix, err)
	}
	server, err := d.db.Server(ctx)
	switch {
	case err != nil:
		return "", config.In(prefix, err)
	case !server.HasTrigrams:
		return "", errors.New("the extension pg_trgm is missing, without which searches are slow; run CREATE EXTENSION pg_trgm in the database")
	case server.LacksRights:
		return "", errors.New("core's role may not read or write all tables; run core migrate with CORE_OWNER_DATABASE_URL, which grants it its rights")
	case server.OwnsTables:
		return "", warning{errors.New("core's role may change the schema and the audit log; with CORE_OWNER_DATABASE_URL core migrate gives another role less")}
	}
	return "up to date", nil
}

func (d *doctor) lists(ctx context.Context) (string, error) {
	if !d.db.HasLibrary() {
		return "", skipped("CORE_LIBRARY_DATABASE_URL is not set")
	}
	if err := d.db.CheckLibrary(ctx); err != nil {
		return "", config.In(prefix, err)
	}
	lag, err := d.db.LibraryLag(ctx)
	if err == nil && lag > maxLag {
		err = warning{fmt.Errorf("the standby is %s behind; look at its log, and at pg_stat_replication of the primary", lag.Round(time.Second))}
	}
	return fmt.Sprintf("%s behind", lag.Round(time.Millisecond)), err
}

// store writes, reads, lists and removes a file that no texture has.
func (d *doctor) store(ctx context.Context) (string, error) {
	if err := d.files.Ready(ctx); err != nil {
		return "", config.In(prefix+"OBJECTS_", err)
	}
	file := []byte("core doctor " + rand.Text())
	hash := skin.HashOf(file)
	err := d.files.Put(ctx, hash, file)
	var got []byte
	if err == nil {
		got, err = d.files.Get(ctx, hash)
	}
	if err == nil && !bytes.Equal(got, file) {
		err = errors.New("it returns another file than the one that was stored")
	}
	if err == nil {
		for _, err = range d.files.List(ctx) {
			break // one is enough
		}
	}
	if err = cmp.Or(err, d.files.Delete(ctx, hash)); err != nil {
		return "", config.In(prefix+"OBJECTS_", d.files.Explain(err))
	}
	return "writes, reads, lists and removes", nil
}

func (d *doctor) mail(ctx context.Context) (string, error) {
	if !d.sendsMail() {
		return "", skipped("CORE_SMTP_HOST is not set: nobody can reset a password by e-mail")
	}
	client, err := mail.New(d.SMTP)
	if err == nil {
		err = client.Ping(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w; check CORE_SMTP_HOST, CORE_SMTP_TLS, CORE_SMTP_USER and the password", d.SMTP.Host, err)
	}
	return d.SMTP.Host + " accepts the password", nil
}

func (d *doctor) clock(ctx context.Context) (string, error) {
	before := time.Now()
	server, err := d.db.Server(ctx)
	if err != nil {
		return "", config.In(prefix, err)
	}
	off := max(before.Sub(server.Now), time.Until(server.Now), 0)
	if off > maxClockDifference {
		return "", fmt.Errorf("it is %s off the database's; run an NTP client on both machines", off.Round(time.Millisecond))
	}
	return "as the database's", nil
}

// publicURL compares what is answered at the public URL with the core that runs here.
func (d *doctor) publicURL(ctx context.Context) (string, error) {
	if d.PublicURL == "" {
		return "", skipped("CORE_PUBLIC_URL is not set")
	}
	paths := []string{"/api/site"}
	if d.Launchers != "off" && d.Yggdrasil.KeyFile != "" {
		paths = append(paths, "/api/yggdrasil/") // with the public key
	}
	for _, path := range paths {
		outside, err := get(ctx, strings.TrimRight(d.PublicURL, "/")+path)
		if err != nil && isLoopback(d.PublicURL) && strings.HasPrefix(string(d.Listen), "0.0.0.0:") {
			return "", warning{fmt.Errorf("%s is an address of the machine itself, which is not checked from a container: set CORE_PUBLIC_URL to the site's address", d.PublicURL)}
		}
		if err != nil {
			return "", fmt.Errorf("%w; check CORE_PUBLIC_URL, the name's DNS entry, and the proxy in front", err)
		}
		inside, err := get(ctx, d.here(string(d.Listen), d.TLSCert != "")+path)
		switch {
		case err != nil:
			return "", warning{fmt.Errorf("%s answers, but no core here to compare it with: %w", d.PublicURL, err)}
		case outside != inside:
			return "", fmt.Errorf("%s answers as another site: %s differs", d.PublicURL, path)
		}
	}
	return d.PublicURL + " answers as this site", nil
}

// isLoopback reports whether the host of a URL is an address of the machine itself.
func isLoopback(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && (parsed.Hostname() == "localhost" || net.ParseIP(parsed.Hostname()).IsLoopback())
}

// proxies looks for addresses of clients that the core that runs here has ignored.
func (d *doctor) proxies(ctx context.Context) (string, error) {
	metrics, err := get(ctx, d.here(string(d.OpsListen), false)+"/metrics")
	if err != nil {
		return "", warning{fmt.Errorf("no core runs here: %w", err)}
	}
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, `veneer_forwarded_headers_ignored_total{`) && strings.Contains(line, `reason="untrusted"`) && !strings.HasSuffix(line, " 0\n") {
			return "", warning{errors.New("an address of a client was sent by a peer that is not trusted, so that all its clients share one limit; core's log names the peer: add it to CORE_TRUSTED_PROXIES if it is a proxy of yours")}
		}
	}
	return "all addresses of clients came from trusted proxies", nil
}

// keyFiles checks that other users cannot read secrets.
func (d *doctor) keyFiles(context.Context) (string, error) {
	paths := []string{d.TLSKey, d.EdgesTLSKey, d.Yggdrasil.KeyFile}
	for _, variable := range d.environ {
		if name, path, _ := strings.Cut(variable, "="); strings.HasPrefix(name, prefix) && strings.HasSuffix(name, config.FileSuffix) {
			paths = append(paths, path)
		}
	}
	count := 0
	for _, path := range paths {
		// In Compose core reads its secrets as another user, in its container alone.
		if path == "" || strings.HasPrefix(path, "/run/secrets/") {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		folder, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		// A folder that other users cannot enter protects its files.
		if count++; info.Mode().Perm()&0o004 != 0 && folder.Mode().Perm()&0o001 != 0 {
			return "", warning{fmt.Errorf("every user of this machine can read %s; run chmod o-rwx %[1]s", path)}
		}
	}
	if count == 0 {
		return "", skipped("no secret is in a file")
	}
	return fmt.Sprintf("%d files, which other users cannot read", count), nil
}

func (d *doctor) disk(context.Context) (string, error) {
	path, isDirectory := strings.CutPrefix(d.Objects.URL, "file://")
	if !isDirectory {
		return "", skipped("textures are not on a disk of this machine")
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(path, &disk); err != nil {
		return "", &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	share := float64(disk.Bavail) / float64(max(1, disk.Blocks))
	if detail := fmt.Sprintf("%.0f %% of %s is free", 100*share, path); share >= minFreeShare {
		return detail, nil
	} else {
		return "", fmt.Errorf("only %s; enlarge the disk, or see with core sweep -dry-run what is unused", detail)
	}
}

func (d *doctor) backup(ctx context.Context) (string, error) {
	began, err := d.db.LastBackup(ctx)
	age := time.Since(began)
	switch {
	case err != nil:
		return "", err
	case began.IsZero():
		return "", warning{errors.New("there is no backup yet; run core backup DIR each night")}
	case age > maxBackupAge:
		return "", warning{fmt.Errorf("the last whole one began %s ago; run core backup by hand to see why", age.Round(time.Hour))}
	}
	return fmt.Sprintf("the last whole one began %s ago", age.Round(time.Minute)), nil
}

// here returns the base URL of a listener of the core that runs on this machine.
func (d *doctor) here(address string, isTLS bool) string {
	scheme := "http://"
	if isTLS {
		scheme = "https://"
	}
	return scheme + strings.Replace(address, "0.0.0.0:", "127.0.0.1:", 1)
}

// get returns the body of a response, which must be 200.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	const most = 4 << 20
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	return string(body), err
}
