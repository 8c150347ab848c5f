package api

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Whatever an address is, the parsed request can be drawn and has a short key. An address that is wrong has a fault
// of the client.
func TestParsedRequestsAreValid(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	of := func(all []string) string { return all[random.IntN(len(all))] }
	values := []string{
		"", "0", "1", "-1", "8", "64", "505", "1024", "32767", "99999", "9223372036854775807", "18446744073709551616", "1e300", "NaN", "-Inf", "7", "iso", "25",
		"walk", "sit", "elytra", "cape", "none", "hat,layers,light,cape,shading,", "404", "avatar", "slim", "MHF_Alex", "https://example.org/x.png",
		"true", "false", "%", "%00", "%0d%0a", "+", "é", "\xff", strings.Repeat("9", 300), steveTestUUID, strings.Repeat("a", 64), strings.Repeat("1", 32),
	}
	segments := slices.Concat(values, []string{"left", "right", "nohelm", "hat", "player", "uuid", "user", "hash", "Steve", "Steve.png", "x.webp", "11.jpg", ".", "..", "a b", "\x00"})
	names := []string{"name", "download", "unknown", "w", "h", "width", "scale", "y", "yaw", "overlay", "helm", "exclude", "nolayers", "noshading", "model", "slim", "steve"}
	for _, parameter := range edge.Parameters {
		names = append(names, parameter.Name)
	}
	var prefixes []string
	for prefix := range routeTable {
		prefixes = append(prefixes, prefix)
	}
	for prefix := range compatTable {
		prefixes = append(prefixes, prefix, craftheadRoot+prefix)
	}
	slices.Sort(prefixes)

	s := &Server{hasCompatRoutes: true}
	valid := 0
	for range 200_000 {
		path := of(prefixes) + of(segments)
		for random.IntN(2) == 0 {
			path += "/" + of(segments)
		}
		query := ""
		for random.IntN(4) > 0 {
			query += "&" + of(names) + "=" + of(values)
		}
		address := path + "?" + query
		target, ok := s.parsePath(path, query)
		if !ok {
			continue
		}
		var x exchange
		if err := x.parse(target, query, x.at); err != nil {
			if kind := fault.KindOf(err); kind != fault.NotFound && kind != fault.Invalid {
				t.Fatalf("%q: %v", address, err)
			}
			continue
		}
		valid++
		if most := len(edgeproto.NamePrefix) + 2*edgeproto.MaxNameBytes; len(x.request.Key) > most {
			t.Fatalf("%q: a key of %d bytes; want at most %d", address, len(x.request.Key), most)
		}
		if x.request.Kind == edge.KindPicture {
			view := x.request.View
			view.Type = skin.Classic
			if err := view.Check(); err != nil {
				t.Fatalf("%q: %v", address, err)
			}
		}
		if x.download.isGiven {
			disposition := string(x.download.appendDisposition(nil, formatPNG))
			if strings.ContainsFunc(disposition, func(c rune) bool { return c < ' ' || c > '~' || c == '"' }) {
				t.Fatalf("%q: Content-Disposition: %q", address, disposition)
			}
		}
	}
	testenv.Check(t, valid >= 10_000, "only %d addresses are valid", valid)
}

const steveTestUUID = "069a79f4-44e9-4726-a5be-fca90e38aaf5"

// Whatever lists of subjects are, they have at most so many valid keys, or a fault of the client.
func TestParsedListsAreValid(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	texts := []string{"", "Steve", "é", "%00", "\xff", "a/b", "11", "-1", "99999999999999999999", steveTestUUID, strings.Repeat("a", 64), strings.Repeat("x", 200), "+", "%2c"}
	valid := 0
	for range 20_000 {
		var query []string
		for range random.IntN(4) {
			var list []string
			for range random.IntN(6) {
				list = append(list, slices.Repeat(texts[random.IntN(len(texts)):][:1], 1+random.IntN(2)*random.IntN(60))...)
			}
			query = append(query, lists[random.IntN(len(lists))].name+"="+strings.Join(list, ","))
		}
		all, err := parseLists(strings.Join(query, "&"), random.IntN(2) == 0)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%q: %v", query, err)
			}
			continue
		}
		valid++
		if len(all.keys) == 0 || len(all.keys) > edge.MaxBatch || len(all.texts) != len(all.keys) {
			t.Fatalf("%q: %d keys of %d texts", query, len(all.keys), len(all.texts))
		}
		for i, key := range all.keys {
			if key == "" || len(key) > len(edgeproto.NamePrefix)+2*edgeproto.MaxNameBytes {
				t.Fatalf("%q: the key of %q is %q", query, all.texts[i], key)
			}
		}
	}
	testenv.Check(t, valid >= 1000, "only %d lists are valid", valid)
}
