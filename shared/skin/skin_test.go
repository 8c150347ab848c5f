package skin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestHashText(t *testing.T) {
	t.Parallel()
	hash := skin.HashOf([]byte("abc"))
	const text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, appendix B.1
	testenv.Equal(t, hash.String(), text, "the hash of abc")
	got, err := skin.ParseHash(text)
	testenv.Check(t, err == nil && got == hash, "ParseHash(%s) = %s, %v", text, got, err)
	for _, wrong := range []string{"", text[1:], text + "0", strings.ToUpper(text), "g" + text[1:], " " + text[1:]} {
		got, err := skin.ParseHash(wrong)
		testenv.Check(t, err != nil, "ParseHash(%q) = %s; want an error", wrong, got)
	}
}

func TestTypeText(t *testing.T) {
	t.Parallel()
	for kind, text := range map[skin.Type]string{skin.Classic: `"steve"`, skin.Slim: `"alex"`, skin.Cape: `"cape"`} {
		encoded, err := json.Marshal(kind)
		testenv.Check(t, err == nil && string(encoded) == text,
			"%d is written %s, %v; want %s", kind, encoded, err, text)
		var got skin.Type
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != kind {
			t.Errorf("%s is read as %d, %v; want %d", text, got, err, kind)
		}
		if kind.IsSkin() == (kind == skin.Cape) {
			t.Errorf("%s is a skin: %v", kind, kind.IsSkin())
		}
	}
	for _, wrong := range []string{"", "skin", "Steve", "slim"} {
		kind, err := skin.ParseType(wrong)
		testenv.Check(t, err != nil, "ParseType(%q) = %s; want an error", wrong, kind)
	}
}
