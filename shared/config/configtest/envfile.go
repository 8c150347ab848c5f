package configtest

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

var update = flag.Bool("update", false, "write the generated files of settings again")

// settingLine matches a commented-out setting of an environment file.
var settingLine = regexp.MustCompile(`(?m)^#(\w+)=(.*)$`)

// EnvFile tests that the file at path is what writeEnvFile writes, or writes it with
// -update. With all lines of the file a program must have the same settings as with defaults
// alone. required has the settings that the file does not set, in the form of os.Environ.
func EnvFile[T any](t *testing.T, path, prefix string, defaults, external map[string]string, required []string) {
	t.Helper()
	var generated strings.Builder
	testenv.Do(t, writeEnvFile[T](&generated, prefix, defaults, external))
	if *update {
		testenv.Do(t, os.WriteFile(path, []byte(generated.String()), 0o600))
	}
	content := testenv.Must(os.ReadFile(path))(t)
	cmptest.Same(t, string(content), generated.String(), "%s is stale; -update writes it again", path)

	without, with := required, required
	for name, value := range defaults {
		without = append(slices.Clip(without), name+"="+value)
	}
	for _, line := range settingLine.FindAllStringSubmatch(string(content), -1) {
		with = append(slices.Clip(with), line[1]+"="+strings.Trim(line[2], "'"))
	}
	want := testenv.Must(config.Read[T](prefix, without))(t)
	got := testenv.Must(config.Read[T](prefix, with))(t)
	testenv.Check(t, reflect.DeepEqual(want, got),
		"with all lines of %s the settings are\n%+v\nand without\n%+v", path, got, want)
}

// writeEnvFile writes every setting of T to an environment file of Docker Compose, commented out,
// below its help, with its default as the value:
//
//	# address of the public listener
//	#X_LISTEN=127.0.0.1:8080
//
// The keys of both maps are names of settings. The values in defaults replace the defaults of T.
// Settings in external are set elsewhere, in the place that the map's value names, and get no
// line. A required setting must be in one of the two.
func writeEnvFile[T any](w io.Writer, prefix string, defaults, external map[string]string) error {
	var file strings.Builder
	program := strings.ToLower(strings.TrimSuffix(prefix, "_"))
	writeComment(&file, "Settings of "+program+" for docker-compose.yml. Copy this file to "+program+".env beside it, and "+
		"take the # from the settings that you change. Each has the value here that it has without its line. "+
		`A value with a space or one of $ # " \ is put in single quotes.`)
	unused := slices.Concat(slices.Collect(maps.Keys(defaults)), slices.Collect(maps.Keys(external)))
	for _, s := range config.List[T](prefix) {
		unused = slices.DeleteFunc(unused, func(name string) bool { return name == s.Name })
		fmt.Fprintln(&file)
		writeComment(&file, s.Help)
		if place, ok := external[s.Name]; ok {
			writeComment(&file, s.Name+" is not set here: "+place)
			continue
		}
		value, ok := defaults[s.Name]
		if !ok {
			if value = s.Default; s.Required {
				return fmt.Errorf("%s has no default, so it must be given one here or be set elsewhere", s.Name)
			}
		}
		fmt.Fprintf(&file, "#%s=%s\n", s.Name, quote(value))
	}
	if len(unused) > 0 {
		return fmt.Errorf("there is no setting %s", slices.Min(unused))
	}
	_, err := io.WriteString(w, file.String())
	return err
}

// writeComment writes a text in lines of at most 90 characters.
func writeComment(file *strings.Builder, text string) {
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(" ")+len(word) > 90 {
			fmt.Fprintln(file, line)
			line = "#"
		}
		line += " " + word
	}
	fmt.Fprintln(file, line)
}

// quote puts a value into single quotes if Compose would interpret it otherwise.
func quote(value string) string {
	if strings.ContainsAny(value, " $#\"\\") {
		return "'" + value + "'"
	}
	return value
}
