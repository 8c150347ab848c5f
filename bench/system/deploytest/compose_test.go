// Package deploytest tests the deployment files without containers: docker-compose.yml, its
// secrets, the settings in all files for operators, and the balancers.
package deploytest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// top is the root of the repository.
const top = "../../.."

// compose reads docker-compose.yml as docker compose does in a clone with an operator's files,
// given as content by path, and with variables of the shell. It has no settings of the machine.
func compose(t *testing.T, files map[string]string, shell ...string) *types.Project {
	t.Helper()
	clone := t.TempDir()
	for _, file := range []string{"docker-compose.yml", "deploy/compose/core.defaults.env", "deploy/compose/edge.defaults.env"} {
		copyFile(t, clone, file)
	}
	for path, content := range files {
		testenv.Do(t, os.WriteFile(filepath.Join(clone, path), []byte(content), 0o600))
	}
	options := testenv.Must(cli.NewProjectOptions(nil, cli.WithWorkingDirectory(clone), cli.WithDefaultConfigPath,
		cli.WithProfiles([]string{"*"}), cli.WithEnv(shell), cli.WithEnvFiles(), cli.WithDotEnv))(t)
	return testenv.Must(options.LoadProject(t.Context()))(t)
}

// Containers have minimal privileges, and only the balancer and the dashboards are reachable, from
// this machine only.
func TestContainersAreHardened(t *testing.T) {
	t.Parallel()
	for name, service := range compose(t, nil).Services {
		testenv.Check(t, service.ReadOnly, "%s can write to its root file system", name)
		if !slices.Equal(service.CapDrop, []string{"ALL"}) || len(service.CapAdd) > 0 || service.Privileged {
			t.Errorf("%s has capabilities", name)
		}
		testenv.Check(t, slices.Contains(service.SecurityOpt, "no-new-privileges:true"), "%s can gain privileges", name)
		if isDaemon := service.Restart != ""; isDaemon && (service.MemLimit == 0 || service.PidsLimit == 0) {
			t.Errorf("%s has no limit of memory or of processes", name)
		}
		for _, port := range service.Ports {
			if !slices.Contains([]string{"haproxy", "prometheus", "grafana"}, name) || port.HostIP != "127.0.0.1" {
				t.Errorf("%s is reached at %s:%s", name, port.HostIP, port.Published)
			}
		}
	}
}

// shared_buffers is a quarter of the container's memory, as docs/operations/postgresql.md
// recommends.
func TestPostgresHasAQuarterOfItsMemory(t *testing.T) {
	t.Parallel()
	postgres := compose(t, nil).Services["postgres"]
	want := fmt.Sprintf("shared_buffers=%dMB", int64(postgres.MemLimit)/4>>20)
	if !slices.Contains(postgres.Command, want) {
		t.Errorf("postgres is started by %q, without %s", postgres.Command, want)
	}
}

// Each container has the secrets that its settings name, and no others.
func TestContainersHaveTheirSecrets(t *testing.T) {
	t.Parallel()
	project := compose(t, nil)
	used := map[string]bool{}
	for name, service := range project.Services {
		had := map[string]bool{}
		for _, secret := range service.Secrets {
			had[secret.Source], used[secret.Source] = true, true
		}
		named := map[string]bool{}
		for _, value := range service.Environment {
			if secret, ok := strings.CutPrefix(*value, "/run/secrets/"); ok {
				named[secret] = true
			}
		}
		switch name {
		case "postgres": // read by a script of ours
			named["database_password"], named["owner_database_url"] = true, true
		case "bucket": // likewise
			named = map[string]bool{
				"s3_access_key": true, "s3_writer_access_key": true, "s3_reader_access_key": true,
				"s3_secret_key": true, "s3_writer_secret_key": true, "s3_reader_secret_key": true,
			}
		}
		cmptest.Same(t, had, named, "secrets that %s has, of those that it names", name)
	}
	for name := range project.Secrets {
		testenv.Check(t, used[name], "no container has the secret %s", name)
	}
}

// secretsScript is a copy of deploy/secrets in a directory of the test.
type secretsScript struct{ top, folder string }

func newSecretsScript(t *testing.T) secretsScript {
	t.Helper()
	directory := t.TempDir()
	copyFile(t, directory, "deploy/secrets")
	return secretsScript{directory, filepath.Join(directory, "deploy/compose/secrets")}
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(testenv.Must(os.ReadFile(filepath.Join(top, path)))(t))
}

// copyFile copies a file of the repository into a directory, at the same relative path.
func copyFile(t *testing.T, to, path string) {
	t.Helper()
	testenv.Do(t, os.MkdirAll(filepath.Join(to, filepath.Dir(path)), 0o755))
	testenv.Do(t, os.WriteFile(filepath.Join(to, path), []byte(read(t, path)), 0o755))
}

// run runs the script and returns the secrets by name, and its output.
func (s secretsScript) run(t *testing.T) (secrets map[string]string, printed string) {
	t.Helper()
	printed = stack.MustRun(t, exec.CommandContext(t.Context(), filepath.Join(s.top, "deploy/secrets")))
	files := testenv.Must(os.ReadDir(s.folder))(t)
	secrets = map[string]string{}
	for _, file := range files {
		content := testenv.Must(os.ReadFile(filepath.Join(s.folder, file.Name())))(t)
		if info, err := file.Info(); err != nil || info.Mode() != 0o444 {
			t.Errorf("%s: %v, %v; want a file that every container may read", file.Name(), info.Mode(), err)
		}
		secrets[file.Name()] = string(content)
	}
	return secrets, printed
}

// The script creates every secret, readable by its user only.
func TestSecrets(t *testing.T) {
	t.Parallel()
	script := newSecretsScript(t)
	secrets, _ := script.run(t)
	if info, err := os.Stat(script.folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the secrets' folder: %v, %v; want one that only its user can enter", info.Mode(), err)
	}
	want := []string{}
	for name, secret := range compose(t, nil).Secrets {
		if path := filepath.Join("deploy/compose/secrets", name); !strings.HasSuffix(secret.File, path) {
			t.Errorf("the secret %s is %s; want %s", name, secret.File, path)
		}
		want = append(want, name)
	}
	slices.Sort(want)
	cmptest.Same(t, slices.Sorted(maps.Keys(secrets)), want, "secrets that are made, of those that are named")
	values := map[string]string{}
	for name, value := range secrets {
		if name == "purge_secret" || name == "smtp_password" { // which only some sites have
			testenv.Equal(t, value, "", "%s, an empty file", name)
			continue
		}
		testenv.Check(t, len(value) >= 20, "%s is only %q", name, value)
		if other, defined := values[value]; defined {
			t.Errorf("%s is the same as %s", name, other)
		}
		values[value] = name
	}
	testenv.Contains(t, secrets["database_url"], ":"+secrets["database_password"]+"@", "the database's URL")
}

// In an existing site the script creates what is missing, such as a secret that a later release
// introduces. It changes nothing else, and prints which are new.
func TestSecretsAreAdded(t *testing.T) {
	t.Parallel()
	script := newSecretsScript(t)
	first, _ := script.run(t)
	for name := range first {
		file := filepath.Join(script.folder, name)
		testenv.Do(t, os.Remove(file))
		second, printed := script.run(t)
		switch name {
		case "database_password", "database_url", "purge_secret", "smtp_password": // derived from each other, or empty
			testenv.Equal(t, second[name], first[name], "%s, which exists", name)
		case "owner_database_url":
			testenv.Equal(t, second[name], "", "%s, where there is one role", name)
		default:
			if second[name] == first[name] || second[name] == "" {
				t.Errorf("%s was %q, and is generated again as %q", name, first[name], second[name])
			}
		}
		for other := range second {
			verb := "kept "
			if other == name {
				verb = "made "
			} else {
				testenv.Equal(t, second[other], first[other], "%s, while %s was missing", other, name)
			}
			testenv.Contains(t, printed, verb+other, "what is printed while %s was missing", name)
		}
		first = second
	}

	given := filepath.Join(script.folder, "smtp_password")
	testenv.Do(t, os.Remove(given))
	testenv.Do(t, os.WriteFile(given, []byte("given by the operator"), 0o600))
	last, _ := script.run(t)
	testenv.Equal(t, last["smtp_password"], "given by the operator", "the password that the operator gave")
}

// Every setting in a file for operators exists.
func TestSettingsExist(t *testing.T) {
	t.Parallel()
	defined := map[string]bool{}
	for _, program := range []string{"core", "edge"} {
		for _, name := range regexp.MustCompile(`(?m)^  ((?:CORE|EDGE)_\w+) `).FindAllStringSubmatch(stack.Help(t, program), -1) {
			defined[name[1]], defined[name[1]+"_FILE"] = true, true
		}
	}
	settings := regexp.MustCompile(`\b(?:CORE|EDGE)_[A-Z0-9_]+\b`)
	matches := 0
	checkFile := func(path string) {
		t.Helper()
		content := testenv.Must(os.ReadFile(path))(t)
		for _, name := range settings.FindAllString(string(content), -1) {
			if matches++; !defined[name] {
				t.Errorf("%s names %s, which is not a setting", strings.TrimPrefix(path, top+"/"), name)
			}
		}
	}
	checkFile(filepath.Join(top, "docker-compose.yml"))
	secrets := filepath.Join(top, "deploy/compose/secrets")
	testenv.Do(t, filepath.WalkDir(filepath.Join(top, "deploy"), func(path string, entry fs.DirEntry, err error) error {
		if path == secrets {
			return filepath.SkipDir
		}
		if err == nil && entry.Type().IsRegular() {
			checkFile(path)
		}
		return err
	}))
	testenv.Check(t, matches >= 20, "only %d settings are given anywhere", matches)
}

// Prometheus with the configuration of docker-compose.yml scrapes real programs and can evaluate
// every alert.
func TestPrometheusScrapes(t *testing.T) {
	t.Parallel()
	requireProgram(t, "prometheus")
	system := site.Start(t, blobstoretest.Directory(t).Config)

	work := t.TempDir()
	rules := testenv.Must(filepath.Abs(filepath.Join(top, "deploy/monitoring/rules.yml")))(t)
	config := replaceOnce(t, read(t, "deploy/compose/prometheus.yml"), "scrape_interval: 15s", "scrape_interval: 200ms")
	config = replaceOnce(t, config, "evaluation_interval: 15s", "evaluation_interval: 200ms")
	config = replaceOnce(t, config, "[rules.yml]", "["+rules+"]")
	static := func(name, port, address string) {
		found := "dns_sd_configs: [{names: [" + name + "], type: A, port: " + port + ", refresh_interval: 5s}]"
		config = replaceOnce(t, config, found, "static_configs: [{targets: ["+strconv.Quote(address)+"]}]")
	}
	static("core", "9080", system.Core.Address(t, "operators"))
	static("edge", "9081", system.Edge.Address(t, "operators"))
	address := stack.FreeAddress(t)
	stack.RunServer(t, address, nil, "prometheus", "--config.file="+stack.WriteFile(t, work, "config", config),
		"--storage.tsdb.path="+filepath.Join(work, "data"), "--web.listen-address="+address)
	jobs, _ := stack.Prometheus(address).AwaitHealthy(t)
	cmptest.Same(t, jobs, map[string]bool{"veneer-core": true, "veneer-edge": true}, "programs that are watched")
}
