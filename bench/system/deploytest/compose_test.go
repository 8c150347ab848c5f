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
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

// top is the root of the repository.
const top = "../../.."

// compose reads docker-compose.yml as docker compose does, without settings of the machine.
func compose(t *testing.T) *types.Project {
	t.Helper()
	return composeWith(t, nil)
}

// composeWith reads docker-compose.yml as docker compose does in a clone with an operator's files,
// given as content by path, and with variables of the shell.
func composeWith(t *testing.T, files map[string]string, shell ...string) *types.Project {
	t.Helper()
	clone := t.TempDir()
	for _, file := range []string{"docker-compose.yml", "deploy/compose/core.defaults.env", "deploy/compose/edge.defaults.env"} {
		copyFile(t, clone, file)
	}
	for path, content := range files {
		if err := os.WriteFile(filepath.Join(clone, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options, err := cli.NewProjectOptions(nil, cli.WithWorkingDirectory(clone), cli.WithDefaultConfigPath,
		cli.WithProfiles([]string{"*"}), cli.WithEnv(shell), cli.WithEnvFiles(), cli.WithDotEnv)
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// Containers have minimal privileges, and only the balancer and the dashboards are reachable, from
// this machine only.
func TestContainersAreHardened(t *testing.T) {
	t.Parallel()
	for name, service := range compose(t).Services {
		if !service.ReadOnly {
			t.Errorf("%s can write to its root file system", name)
		}
		if !slices.Equal(service.CapDrop, []string{"ALL"}) || len(service.CapAdd) > 0 || service.Privileged {
			t.Errorf("%s has capabilities", name)
		}
		if !slices.Contains(service.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s can gain privileges", name)
		}
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
	postgres := compose(t).Services["postgres"]
	want := fmt.Sprintf("shared_buffers=%dMB", int64(postgres.MemLimit)/4>>20)
	if !slices.Contains(postgres.Command, want) {
		t.Errorf("postgres is started by %q, without %s", postgres.Command, want)
	}
}

// Each container has the secrets that its settings name, and no others.
func TestContainersHaveTheirSecrets(t *testing.T) {
	t.Parallel()
	project := compose(t)
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
			named["database_password"] = true
		case "bucket": // likewise
			named = map[string]bool{
				"s3_access_key": true, "s3_writer_access_key": true, "s3_reader_access_key": true,
				"s3_secret_key": true, "s3_writer_secret_key": true, "s3_reader_secret_key": true,
			}
		}
		if diff := cmp.Diff(named, had); diff != "" {
			t.Errorf("secrets of %s (-named +had):\n%s", name, diff)
		}
	}
	for name := range project.Secrets {
		if !used[name] {
			t.Errorf("no container has the secret %s", name)
		}
	}
}

// secretsScript is a copy of deploy/secrets in a directory of the test.
type secretsScript struct{ top, folder string }

func newSecretsScript(t *testing.T) secretsScript {
	t.Helper()
	directory := t.TempDir()
	for _, script := range []string{"deploy/secrets", "deploy/dev/stack.sh"} {
		copyFile(t, directory, script)
	}
	return secretsScript{directory, filepath.Join(directory, "deploy/compose/secrets")}
}

// copyFile copies a file of the repository into a directory, at the same relative path.
func copyFile(t *testing.T, to, path string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(top, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(to, filepath.Dir(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, path), content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// run runs the script and returns the secrets by name, and its output.
func (s secretsScript) run(t *testing.T) (secrets map[string]string, printed string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), filepath.Join(s.top, "deploy/secrets")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	files, err := os.ReadDir(s.folder)
	if err != nil {
		t.Fatal(err)
	}
	secrets = map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(s.folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := file.Info(); err != nil || info.Mode() != 0o444 {
			t.Errorf("%s: %v, %v; want a file that every container may read", file.Name(), info.Mode(), err)
		}
		secrets[file.Name()] = string(content)
	}
	return secrets, string(output)
}

// optional are secrets that only some sites have. Their files are empty otherwise.
var optional = []string{"purge_secret", "smtp_password"}

// The script creates every secret, readable by its user only.
func TestSecrets(t *testing.T) {
	t.Parallel()
	script := newSecretsScript(t)
	secrets, _ := script.run(t)
	if info, err := os.Stat(script.folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the secrets' folder: %v, %v; want one that only its user can enter", info.Mode(), err)
	}
	want := []string{}
	for name, secret := range compose(t).Secrets {
		if path := filepath.Join("deploy/compose/secrets", name); !strings.HasSuffix(secret.File, path) {
			t.Errorf("the secret %s is %s; want %s", name, secret.File, path)
		}
		want = append(want, name)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(secrets))); diff != "" {
		t.Errorf("secrets (-named +made):\n%s", diff)
	}
	values := map[string]string{}
	for name, value := range secrets {
		if slices.Contains(optional, name) {
			if value != "" {
				t.Errorf("%s is %q; want an empty file", name, value)
			}
			continue
		}
		if len(value) < 20 {
			t.Errorf("%s is only %q", name, value)
		}
		if other, defined := values[value]; defined {
			t.Errorf("%s is the same as %s", name, other)
		}
		values[value] = name
	}
	if url := secrets["database_url"]; !strings.Contains(url, ":"+secrets["database_password"]+"@") {
		t.Errorf("the database's URL, %s, has another password", url)
	}
}

// In an existing site the script creates what is missing, such as a secret that a later release
// introduces. It changes nothing else, and prints which are new.
func TestSecretsAreAdded(t *testing.T) {
	t.Parallel()
	script := newSecretsScript(t)
	first, _ := script.run(t)
	for name := range first {
		file := filepath.Join(script.folder, name)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		second, printed := script.run(t)
		switch name {
		case "database_password", "database_url", "purge_secret", "smtp_password": // derived from each other, or empty
			if second[name] != first[name] {
				t.Errorf("%s was %q, and is generated again as %q", name, first[name], second[name])
			}
		default:
			if second[name] == first[name] || second[name] == "" {
				t.Errorf("%s was %q, and is generated again as %q", name, first[name], second[name])
			}
		}
		for other := range second {
			verb := "kept "
			if other == name {
				verb = "made "
			} else if second[other] != first[other] {
				t.Errorf("%s was missing, and %s was changed", name, other)
			}
			if !strings.Contains(printed, verb+other) {
				t.Errorf("%s was missing, and %q is not printed:\n%s", name, verb+other, printed)
			}
		}
		first = second
	}

	given := filepath.Join(script.folder, "smtp_password")
	if err := os.Remove(given); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(given, []byte("given by the operator"), 0o600); err != nil {
		t.Fatal(err)
	}
	if last, _ := script.run(t); last["smtp_password"] != "given by the operator" {
		t.Errorf("the password that the operator gave is %q now", last["smtp_password"])
	}
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
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range settings.FindAllString(string(content), -1) {
			if matches++; !defined[name] {
				t.Errorf("%s names %s, which is not a setting", strings.TrimPrefix(path, top+"/"), name)
			}
		}
	}
	checkFile(filepath.Join(top, "docker-compose.yml"))
	secrets := filepath.Join(top, "deploy/compose/secrets")
	err := filepath.WalkDir(filepath.Join(top, "deploy"), func(path string, entry fs.DirEntry, err error) error {
		if path == secrets {
			return filepath.SkipDir
		}
		if err == nil && entry.Type().IsRegular() {
			checkFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if matches < 20 {
		t.Errorf("only %d settings are given anywhere", matches)
	}
}
