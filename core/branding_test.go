package core_test

import (
	"bytes"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// branding returns the branding of settings, as NAME=value; the others have their defaults.
func branding(t *testing.T, environ ...string) core.Branding {
	t.Helper()
	return testenv.Must(config.Read[core.Branding]("", environ))(t)
}

func TestBranding(t *testing.T) {
	t.Parallel()
	f := func(setting, want string) {
		t.Helper()
		if err := branding(t, setting).Check(); err == nil {
			testenv.Equal(t, "", want, "the error of %s", setting)
		} else {
			testenv.Check(t, want != "" && strings.Contains(err.Error(), want), "the error of %s is %v; want %q", setting, err, want)
		}
	}
	f("NAME=Skins & <Capes>", "")
	f("NAME=\u200b", "NAME is")
	f("DESCRIPTION=a\nb", "DESCRIPTION is")
	f("CONTACT=help@example.org", "")
	f("CONTACT=https://example.org/help?a=b", "")
	f("CONTACT=javascript:alert(1)", "CONTACT is")
	f("CONTACT=Help <help@example.org>", "CONTACT is")
	f("CONTACT=a@example.org?cc=b@example.org", "CONTACT is")
	f("ACCENT=1f6b3a", `must be a colour as in #1f6b3a`)
	f("ACCENT=#000", "must be a colour")
	f("ACCENT=#ffffff", "whose contrast on light pages is 1.12, but")
	f("ACCENT=#0B57D0", "")
	testenv.Equal(t, branding(t, "CONTACT=help@example.org").ContactURL(), "mailto:help@example.org", "the contact's address")
}

// The colour that a refusal names is accepted.
func TestAccentNearby(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"#ffd400", "#ff0000", "#1f9b3a", "#808080", "#ffffff"} {
		err := branding(t, "ACCENT="+refused).Check()
		if err == nil {
			t.Fatalf("%s is accepted", refused)
		}
		_, nearby, _ := strings.Cut(err.Error(), "as it is with ")
		testenv.Is(t, branding(t, "ACCENT="+nearby).Check(), nil, "%v; that colour's error", err)
	}
}

func TestLogo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "logo.png")
	picture := coretest.EncodePNG(t, image.NewNRGBA(image.Rect(0, 0, 48, 48)))
	f := func(content []byte, want string) {
		t.Helper()
		testenv.Do(t, os.WriteFile(file, content, 0o600))
		got, err := branding(t, "LOGO="+file).ReadLogo()
		if want == "" {
			testenv.Check(t, err == nil && bytes.Equal(got, content), "%d bytes, %v; want the %d of the file", len(got), err, len(content))
			return
		}
		testenv.Check(t, err != nil && strings.HasPrefix(err.Error(), "LOGO is ") && strings.Contains(err.Error(), want), "the error is %v; want %q", err, want)
	}
	f(picture, "")
	f(append(picture, make([]byte, 256<<10-len(picture))...), "")
	f(append(picture, make([]byte, 256<<10-len(picture)+1)...), "larger than 256 KiB")
	f(picture[:len(picture)-20], "no PNG picture")
	f([]byte("GIF89a"), "no PNG picture")
	f(nil, "no PNG picture")
	f(coretest.EncodePNG(t, image.NewGray(image.Rect(0, 0, 2049, 1))), "2049 × 1 pixels")
	_, err := branding(t, "LOGO="+filepath.Dir(file)).ReadLogo()
	testenv.Check(t, err != nil && strings.Contains(err.Error(), "cannot be read: is a directory"), "the error of a directory is %v", err)
}
