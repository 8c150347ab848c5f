package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.yaml.in/yaml/v3"

	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// manifest is a Kubernetes object, as far as these tests need it.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template    template
		JobTemplate struct{ Spec struct{ Template template } } `yaml:"jobTemplate"`
	}
}

type template struct{ Spec pod }

type pod struct {
	ServiceLinks    *bool `yaml:"enableServiceLinks"`
	Token           *bool `yaml:"automountServiceAccountToken"`
	Grace           int   `yaml:"terminationGracePeriodSeconds"`
	SecurityContext struct {
		NonRoot bool                  `yaml:"runAsNonRoot"`
		Seccomp struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Containers []struct {
		Args      []string
		Resources struct{ Requests, Limits map[string]string }
		Readiness *probe `yaml:"readinessProbe"`
		Liveness  *probe `yaml:"livenessProbe"`
		Security  struct {
			Escalation   *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities struct{ Drop []string }
		} `yaml:"securityContext"`
	}
}

type probe struct {
	Get struct{ Path, Port string } `yaml:"httpGet"`
}

// pods returns the pods of the base, by the names of their workloads.
func pods(t *testing.T) map[string]pod {
	t.Helper()
	paths := testenv.Must(filepath.Glob("../../../deploy/kubernetes/base/*.yaml"))(t)
	all := map[string]pod{}
	for _, path := range paths {
		content := testenv.Must(os.ReadFile(path))(t)
		for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
			var m manifest
			if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			switch m.Kind {
			case "Deployment", "Job":
				all[m.Metadata.Name] = m.Spec.Template.Spec
			case "CronJob":
				all[m.Metadata.Name] = m.Spec.JobTemplate.Spec.Template.Spec
			}
		}
	}
	return all
}

// Pods have minimal privileges, and resource requests and limits.
func TestPodsAreHardened(t *testing.T) {
	t.Parallel()
	all := pods(t)
	for _, name := range []string{"core", "edge", "core-migrate", "core-sweep"} {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
	isOff := func(b *bool) bool { return b != nil && !*b }
	for name, p := range all {
		if !p.SecurityContext.NonRoot || p.SecurityContext.Seccomp.Type != "RuntimeDefault" {
			t.Errorf("%s may run as root, or without seccomp's RuntimeDefault", name)
		}
		if !isOff(p.Token) || !isOff(p.ServiceLinks) {
			t.Errorf("%s gets a token, or variables other than settings", name)
		}
		for _, c := range p.Containers {
			if s := c.Security; !isOff(s.Escalation) || !s.ReadOnly || strings.Join(s.Capabilities.Drop, " ") != "ALL" {
				t.Errorf("%s may gain privileges, or write to its root file system", name)
			}
			if c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] == "" {
				t.Errorf("%s lacks resource requests or limits: %+v", name, c.Resources)
			}
			if c.Args[0] != "serve" {
				continue
			}
			if c.Readiness == nil || c.Readiness.Get.Path != "/readyz" || c.Readiness.Get.Port != "operators" {
				t.Errorf("%s has no readiness probe: %+v", name, c.Readiness)
			}
			if c.Liveness == nil || c.Liveness.Get.Path != "/livez" || c.Liveness.Get.Port != "operators" {
				t.Errorf("%s has no liveness probe: %+v", name, c.Liveness)
			}
		}
	}
}

// The termination grace period covers the time to drain.
func TestPodsHaveTimeToDrain(t *testing.T) {
	t.Parallel()
	all := pods(t)
	for _, name := range []string{"core", "edge"} {
		content := read(t, "deploy/kubernetes/base/"+name+".env")
		var drain time.Duration
		for _, part := range []string{"WAIT", "TIMEOUT"} {
			_, rest, _ := strings.Cut(content, "\n"+strings.ToUpper(name)+"_DRAIN_"+part+"=")
			value, _, _ := strings.Cut(rest, "\n")
			drain += testenv.Must(time.ParseDuration(value))(t)
		}
		if grace := time.Duration(all[name].Grace) * time.Second; grace < drain+5*time.Second {
			t.Errorf("%s has %s to drain in, but is killed after %s", name, drain, grace)
		}
	}
}

// By default, pods trust no proxy about the addresses of clients.
func TestPodsTrustNoProxy(t *testing.T) {
	t.Parallel()
	files := 0
	for _, pattern := range []string{"base/*", "overlays/*/*"} {
		for _, path := range testenv.Must(filepath.Glob("../../../deploy/kubernetes/" + pattern))(t) {
			content := testenv.Must(os.ReadFile(path))(t)
			files++
			for line := range strings.Lines(string(content)) {
				if set := strings.TrimSpace(line); strings.Contains(set, "TRUSTED_PROXIES=") && !strings.HasPrefix(set, "#") {
					t.Errorf("%s trusts a proxy: %s", path, set)
				}
			}
		}
	}
	testenv.Check(t, files >= 10, "there are only %d files", files)
}

// The application's password is not that of a superuser of PostgreSQL, under make test as under
// make run, which create their clusters alike.
func TestApplicationIsNoSuperuser(t *testing.T) {
	t.Parallel()
	config := testenv.Must(pgx.ParseConfig(postgrestest.Empty(t)))(t)
	conn := testenv.Must(pgx.ConnectConfig(t.Context(), config))(t)
	var isSuper bool
	if err := conn.QueryRow(t.Context(), "SELECT rolsuper FROM pg_roles WHERE rolname = current_user").Scan(&isSuper); err != nil || isSuper {
		t.Errorf("the application is a superuser: %t, %v", isSuper, err)
	}
	_ = conn.Close(t.Context())
	config.User = "postgres"
	connection, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		_ = connection.Close(t.Context())
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "28P01" { // invalid_password
		t.Errorf("the superuser has the application's password: %v", err)
	}
}
