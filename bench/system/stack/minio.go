package stack

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// MinIO is a running MinIO of a test's own, and a bucket in it that does not exist yet.
type MinIO struct {
	blobstore.Config

	Data    string // its data directory
	PID     int
	Program string // the name of its binary, which has the version
}

// NewMinIO starts a MinIO of a test's own with TLS, with a certificate of an authority. It ends
// with the test. Where TEST_MINIO_BIN names no MinIO the test is skipped.
func NewMinIO(tb testing.TB, authority *tlsreloadtest.Authority) MinIO {
	tb.Helper()
	binary := os.Getenv("TEST_MINIO_BIN")
	if binary == "" {
		testenv.Skip(tb, "TEST_MINIO_BIN is not set; make test builds MinIO and sets it")
	}
	home := tb.TempDir()
	certificates := filepath.Join(home, "certificates")
	if err := os.Mkdir(certificates, 0o700); err != nil {
		tb.Fatal(err)
	}
	authority.Renew(tb, filepath.Join(certificates, "public.crt"), filepath.Join(certificates, "private.key"))

	config := blobstore.Config{
		URL: "s3://textures", AccessKey: "only-for-tests", SecretKey: "only-for-tests-on-loopback",
		CA: authority.File, Region: "us-east-1", Timeout: programTimeout,
	}
	address, data := FreeAddress(tb), filepath.Join(home, "data")
	config.Endpoint = "https://" + address
	output := &bytes.Buffer{}
	server := exec.Command(binary, "server", "--address", address, "--certs-dir", certificates, data) //nolint:noctx // ends in the clean-up
	server.Env = []string{"HOME=" + home, "MINIO_BROWSER=off", "MINIO_UPDATE=off", "MINIO_ROOT_USER=" + config.AccessKey, "MINIO_ROOT_PASSWORD=" + config.SecretKey}
	server.Stdout, server.Stderr = output, output
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = server.Wait(); close(ended) }()
	tb.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
	})

	verified, err := tlsreload.ClientConfig(authority.File)
	if err != nil {
		tb.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: verified}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(tb.Context(), programTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		// Its /minio/health/ready answers 200 already while requests are still answered
		// 503, XMinioServerNotInitialized. Once it is initialised it answers an unsigned
		// request with 403.
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Endpoint, nil)
		if err != nil {
			tb.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusForbidden {
				return MinIO{Config: config, Data: data, PID: server.Process.Pid, Program: filepath.Base(binary)}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("MinIO does not start: %v", err)
		case <-ended:
			tb.Fatalf("MinIO ended:\n%s", output)
		}
	}
}
