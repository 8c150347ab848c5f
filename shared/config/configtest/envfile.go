package configtest

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/config"
)

var update = flag.Bool("update", false, "write the generated files of settings again")

// settingLine matches a commented-out setting of an environment file.
var settingLine = regexp.MustCompile(`(?m)^#(\w+)=(.*)$`)

// EnvFile tests that the file at path is what config.EnvFile writes, or writes it with
// -update. With all lines of the file a program must have the same settings as with defaults
// alone. required has the settings that the file does not set, in the form of os.Environ.
func EnvFile[T any](t *testing.T, path, prefix string, defaults, external map[string]string, required []string) {
	t.Helper()
	var generated strings.Builder
	if err := config.EnvFile[T](&generated, prefix, defaults, external); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(generated.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(generated.String(), string(content)); diff != "" {
		t.Errorf("%s is stale; -update writes it again (-want +got):\n%s", path, diff)
	}

	without, with := required, required
	for name, value := range defaults {
		without = append(slices.Clip(without), name+"="+value)
	}
	for _, line := range settingLine.FindAllStringSubmatch(string(content), -1) {
		with = append(slices.Clip(with), line[1]+"="+strings.Trim(line[2], "'"))
	}
	want, err := config.Read[T](prefix, without)
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Read[T](prefix, with)
	if err != nil {
		t.Fatalf("with all lines of %s: %v", path, err)
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("with all lines of %s the settings are\n%+v\nand without\n%+v", path, got, want)
	}
}
