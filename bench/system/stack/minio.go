package stack

import (
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// MinIO is a running MinIO of a test's own, and a bucket in it that does not exist yet.
type MinIO struct {
	ObjectStore
	Program

	Data   string // its data directory
	Binary string // the name of its program's file, which has the version
}

// NewMinIO starts a MinIO of a test's own with TLS, with a certificate of an authority. It ends
// with the test. Where TEST_MINIO_BIN names no MinIO the test is skipped.
func NewMinIO(tb testing.TB, authority *tlsreloadtest.Authority) *MinIO {
	tb.Helper()
	binary := os.Getenv("TEST_MINIO_BIN")
	if binary == "" {
		testenv.Skip(tb, "TEST_MINIO_BIN is not set; make test builds MinIO and sets it")
	}
	home := testenv.Must(os.MkdirTemp(os.Getenv("STACK_STATE"), "minio-"))(tb) //nolint:usetesting // on a disk: MinIO needs O_DIRECT, which tmpfs has since Linux 6.6 only
	tb.Cleanup(func() { testenv.Do(tb, os.RemoveAll(home)) })
	address := FreeAddress(tb)
	certificates := makeDirectory(tb, 0o700, home, "certificates")
	authority.Renew(tb, filepath.Join(certificates, "public.crt"), filepath.Join(certificates, "private.key"))
	m := &MinIO{
		ObjectStore: ObjectStore{URL: "s3://textures", Endpoint: "https://" + address, AccessKey: "only-for-tests", SecretKey: Secret, CA: authority.File},
		Program:     newMinIO("MinIO", binary, home, address),
		Data:        filepath.Join(home, "data"), Binary: filepath.Base(binary),
	}
	m.log, m.stopSignal = filepath.Join(home, "log"), syscall.SIGKILL
	m.command = append(m.command, "--certs-dir", certificates, m.Data)
	m.environ = append(m.environ, "MINIO_ROOT_USER="+m.AccessKey, "MINIO_ROOT_PASSWORD="+m.SecretKey)

	m.Start(tb)
	m.awaitInitialized(tb, m.Endpoint)
	return m
}

// newMinIO returns a MinIO that has not started. It lacks the arguments after its address, and the
// administrator's keys.
func newMinIO(name, binary, home, address string) Program {
	return Program{
		name: name, command: []string{binary, "server", "--address", address}, stopSignal: syscall.SIGTERM,
		environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "MINIO_BROWSER=off", "MINIO_UPDATE=off"},
	}
}

// awaitInitialized waits until a MinIO at a URL answers an unsigned request with 403: its
// /minio/health/ready answers 200 already while requests are still answered 503,
// XMinioServerNotInitialized. Its certificate does not matter here.
func (p *Program) awaitInitialized(tb testing.TB, url string) {
	tb.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	p.await(tb, "is initialised", func() bool {
		status, _ := ask(tb, client, http.MethodGet, url)
		return status == http.StatusForbidden
	})
}

// prepareMinIO creates the bucket, a user for core and one for the edges, which only reads. The keys
// are in a directory.
func prepareMinIO(tb testing.TB, root, url string, keys secrets, mc string) {
	tb.Helper()
	for _, role := range []string{"writer", "reader"} {
		keys.hex(tb, "s3_"+role+"_access_key", 10)
		keys.hex(tb, "s3_"+role+"_secret_key", 20)
	}
	command := exec.CommandContext(tb.Context(), filepath.Join(root, "deploy/minio/prepare"), url, string(keys), mc)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	MustRun(tb, command)
}
