// Package containers tries what containers are made and started with, as far as that
// takes none: docker-compose.yml, the secrets that it names, the settings that any file
// for operators gives, and the balancer.
package containers

import (
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

	"github.com/veneer-skins/veneer/bench/system"
)

// top is the repository's top.
const top = "../.."

// compose reads docker-compose.yml as docker compose does, with no settings of the
// machine's.
func compose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(top, "docker-compose.yml")}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// No container can do more than it must, and only the balancer, and what operators look
// at, are reached from outside, from this machine.
func TestContainersAreHardened(t *testing.T) {
	t.Parallel()
	for name, service := range compose(t).Services {
		if !service.ReadOnly {
			t.Errorf("%s can write to its root file system", name)
		}
		if !slices.Equal(service.CapDrop, []string{"ALL"}) || len(service.CapAdd) > 0 || service.Privileged {
			t.Errorf("%s has powers", name)
		}
		if !slices.Contains(service.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s can gain powers", name)
		}
		if lasts := service.Restart != ""; lasts && (service.MemLimit == 0 || service.PidsLimit == 0) {
			t.Errorf("%s may take all memory, or all processes", name)
		}
		for _, port := range service.Ports {
			if !slices.Contains([]string{"haproxy", "prometheus", "grafana"}, name) || port.HostIP != "127.0.0.1" {
				t.Errorf("%s is reached at %s:%s", name, port.HostIP, port.Published)
			}
		}
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
		case "postgres": // a script of ours reads it
			named["database_password"] = true
		case "bucket": // so it does here
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
			t.Errorf("nobody has the secret %s", name)
		}
	}
}

// The script makes every secret, only its user can reach them, and a second run
// changes nothing.
func TestSecrets(t *testing.T) {
	t.Parallel()
	there := t.TempDir()
	for _, script := range []string{"deploy/secrets", "deploy/dev/stack.sh"} {
		if err := os.MkdirAll(filepath.Join(there, filepath.Dir(script)), 0o755); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(top, script))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(there, script), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(there, "deploy/compose/secrets")
	run := func() map[string]string {
		t.Helper()
		if output, err := exec.CommandContext(t.Context(), filepath.Join(there, "deploy/secrets")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		made := map[string]string{}
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(filepath.Join(folder, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if info, err := file.Info(); err != nil || info.Mode() != 0o444 {
				t.Errorf("%s: %v, %v; want a file that every container may read", file.Name(), info.Mode(), err)
			}
			made[file.Name()] = string(content)
		}
		return made
	}

	first := run()
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the secrets' folder: %v, %v; want one that only its user can enter", info.Mode(), err)
	}
	want := []string{}
	for name, secret := range compose(t).Secrets {
		if path := filepath.Join("deploy/compose/secrets", name); !strings.HasSuffix(secret.File, path) {
			t.Errorf("the secret %s is %s; want %s", name, secret.File, path)
		}
		want = append(want, name)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(first))); diff != "" {
		t.Errorf("secrets (-named +made):\n%s", diff)
	}
	values := map[string]string{}
	for name, value := range first {
		if len(value) < 20 {
			t.Errorf("%s is only %q", name, value)
		}
		if other, known := values[value]; known {
			t.Errorf("%s is the same as %s", name, other)
		}
		values[value] = name
	}
	if url := first["database_url"]; !strings.Contains(url, ":"+first["database_password"]+"@") {
		t.Errorf("the database's URL, %s, has another password", url)
	}
	if diff := cmp.Diff(first, run()); diff != "" {
		t.Errorf("the second run changed secrets (-first +second):\n%s", diff)
	}
}

// Whatever file for operators gives a setting, the program has it.
func TestSettingsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, program := range []string{"core", "edge"} {
		for _, name := range regexp.MustCompile(`(?m)^  ((?:CORE|EDGE)_\w+) `).FindAllStringSubmatch(system.Help(t, program), -1) {
			known[name[1]], known[name[1]+"_FILE"] = true, true
		}
	}
	settings := regexp.MustCompile(`\b(?:CORE|EDGE)_[A-Z0-9_]+\b`)
	found := 0
	look := func(path string) {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range settings.FindAllString(string(content), -1) {
			if found++; !known[name] {
				t.Errorf("%s names %s, which is no setting", strings.TrimPrefix(path, top+"/"), name)
			}
		}
	}
	look(filepath.Join(top, "docker-compose.yml"))
	secrets := filepath.Join(top, "deploy/compose/secrets")
	err := filepath.WalkDir(filepath.Join(top, "deploy"), func(path string, entry fs.DirEntry, err error) error {
		if path == secrets {
			return filepath.SkipDir
		}
		if err == nil && entry.Type().IsRegular() {
			look(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("only %d settings are given anywhere", found)
	}
}
