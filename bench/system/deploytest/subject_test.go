package deploytest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
)

// compatAddresses are addresses of other services by the kind of their subject, in all forms in which
// plugins and sites request them.
var compatAddresses = map[string][]string{
	"NAME": {
		// crafthead and Minotar
		"/helm/NAME", "/helm/NAME/24", "/helm/NAME/128", "/helm/NAME/128.png", "/avatar/NAME/8.svg", "/cube/NAME/100", "/cubehelm/NAME/100.png",
		"/bust/NAME/190.png", "/armor/bust/NAME/100", "/armor/body/NAME/100.png", "/armour/body/NAME", "/skin/NAME", "/download/NAME", "/minecraft/helm/NAME/64",
		"/helm/player/NAME", "/helm/player/NAME/64.png",
		// mc-heads.net, cravatar.eu and mcheads.org
		"/avatar/NAME/16", "/avatar/NAME/100.png", "/avatar/NAME/nohelm", "/body/NAME/right", "/body/NAME/64/left", "/player/NAME/64", "/player/NAME",
		"/combo/NAME/64.png", "/head/NAME/left", "/head/NAME/64/nohelm", "/head/NAME/64/nohelm.png", "/helmavatar/NAME/120.png", "/helmhead/NAME/120.png",
		"/head/NAME/100/hat", "/head/NAME/100/hat.png", "/avatar/NAME/left/64", "/avatar/NAME/right/64.png", "/iosbody/NAME/128", "/ioshead/NAME",
		// VZGE and Visage
		"/face/128/NAME", "/face/128/NAME.png", "/full/832/NAME.png?no=cape", "/bust/256/NAME?y=10", "/head/64/NAME", "/front/64/NAME.webp", "/frontfull/512/NAME.jxl",
		"/processedskin/NAME",
		// Starlight, and other spellings of sizes
		"/render/pixel/NAME/face.png", "/render/skin/NAME/default", "/render/default/NAME/bust", "/helm/NAME/64/", "/helm/NAME/", "/helm/NAME/100px", "/helm/NAME/50@2x.png", "/helm/NAME/-5", "/head?name=NAME", "/head.png?texture=&uuid=&name=NAME&overlay",
		"/helm/NAME/64x64", "/helm/NAME/64@1.5x.png", "/helm/NAME/37.5.png", "/helm/NAME/undefined", "/helm/NAME.png/64", "/avatar/player/64/NAME.png", "/skin/NAME/512",
		// DiscordSRV and DiscordSRV Heads
		"/NAME/helm", "/NAME/head/64", "/NAME/overlay/128.png", "/NAME/skull/64", "/NAME/body", "/NAME/bust/64", "/NAME/texture", "/NAME/player",
		"/NAME/bust/overlay/64", "/NAME/skull/isometric/right/helm/64", "/NAME/head/overlay", "/head/NAME/3d", "/render/head/NAME/head", "/render/skin/NAME/processed",
		// NMSR and mineatar
		"/bust/NAME?y=-20", "/fullbodyiso/NAME?w=256", "/bodybust/NAME", "/face/NAME?scale=8&overlay=true", "/body/front/NAME", "/body/full/NAME?scale=4", "/body/left/NAME",
	},
	"UUID": {
		"/avatars/UUID", "/avatars/HEX?overlay", "/avatars/UUID?size=64&overlay", "/avatars/UUID.png?default=MHF_Steve&overlay",
		"/renders/head/UUID?scale=10", "/renders/body/HEX.png?overlay=true&scale=10", "/skins/UUID", "/skins/HEX", "/capes/UUID",
		"/helm/HEX", "/helm/HEX/120", "/helm/UUID/128", "/helmavatar/UUID/120.png", "/cube/HEX/64", "/avatar/UUID/16", "/head/HEX/64/left",
		"/face/64/UUID", "/bust/256/HEX.png", "/body/right/UUID", "/face/UUID?scale=8&overlay=true",
	},
	"TEXTURE": {
		"/avatar/TEXTURE/64", "/avatar/TEXTURE/64.png", "/avatar/TEXTURE/left/64", "/head/TEXTURE/64/nohelm", "/body/TEXTURE/right", "/helm/TEXTURE/128",
		"/face/64/TEXTURE", "/front/64/TEXTURE.png", "/frontfull/64/TEXTURE", "/full/832/TEXTURE.png", "/face/64/TEXTURE/nohelm",
	},
	"USER": {"/helm/user/USER/64"},
	"HASH": {"/avatar/HASH/64", "/head/HASH/left", "/face/64/HASH"},
}

// subjectAddresses returns the addresses of a subject by its kind: of every view with every suffix, of
// every address of other services, and those above.
func subjectAddresses() map[string][]string {
	all := map[string][]string{}
	add := func(kind, address string) { all[kind] = append(all[kind], address) }
	for _, view := range edge.Views {
		for _, route := range view.Routes {
			for _, suffix := range view.Suffixes {
				if strings.HasPrefix(suffix, "-") {
					continue // the legacy sheet is a file of its own
				}
				switch route.Subject {
				case edge.ByName:
					add("NAME", route.Prefix+"NAME"+suffix)
				case edge.ByNameParameter:
					add("NAME", route.Prefix+"?name=NAME"+suffix)
				case edge.ByNameAndUUID:
					add("NAME", route.Prefix+"NAME"+suffix)
					add("NAME", route.Prefix+"NAME.7d4448409dc011d1b2455ffdce74fad2"+suffix)
				case edge.ByUUID:
					add("UUID", route.Prefix+"UUID"+suffix)
					add("UUID", route.Prefix+"HEX"+suffix)
				case edge.ByUID:
					add("USER", route.Prefix+"USER"+suffix)
				case edge.ByTID:
					add("TEXTURE", route.Prefix+"TEXTURE"+suffix)
				case edge.ByHash:
					add("HASH", route.Prefix+"HASH"+suffix)
				}
			}
		}
	}
	fill := strings.NewReplacer("{id}", "NAME", "{size}", "64", "{width}", "64", "{scale}", "5", "{pose}", "walking", "{full|bust|face}", "full")
	for _, route := range edge.CompatRoutes {
		for _, service := range append([]string{""}, route.Services...) {
			add("NAME", fill.Replace(route.Pattern(service)))
		}
	}
	for kind, own := range all {
		all[kind] = slices.Concat(own, []string{own[0] + "?size=64"}, compatAddresses[kind])
	}
	return all
}

// All addresses of a subject are balanced to one edge, whatever the size, the side and the suffix.
// Subjects are spread over the edges, and so are lists of players, by their whole query.
func TestBalancersBySubject(t *testing.T) {
	t.Parallel()
	for _, b := range balancers {
		t.Run(b.program, b.testSubjects)
	}
}

func (b balancer) testSubjects(t *testing.T) {
	t.Parallel()
	upstream := func(name string) []string {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			_, _ = io.WriteString(w, name)
		})
	}
	url := b.startSite(t, upstream("core"), upstream("first"), upstream("second"))
	edgeOf := func(target string) string {
		t.Helper()
		response := httpservertest.Get(t, url+target)
		if response.Status != http.StatusOK {
			t.Fatalf("%.100s: %d", target, response.Status)
		}
		return response.Body
	}

	// An address with another key would agree for all 24 subjects once in 16 million times.
	for kind, addresses := range subjectAddresses() {
		for i := range 24 {
			hash := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, i)))
			fill := strings.NewReplacer(
				"NAME", fmt.Sprintf("player_%d", i), "TEXTURE", fmt.Sprint(7*i*i+1), "USER", fmt.Sprint(9*i*i+1), "HASH", hash,
				"UUID", fmt.Sprintf("%s-%s-%s-%s-%s", hash[:8], hash[8:12], hash[12:16], hash[16:20], hash[20:32]), "HEX", hash[:32])
			want := edgeOf(fill.Replace(addresses[0]))
			f := func(address string) {
				t.Helper()
				if got := edgeOf(address); got != want {
					t.Errorf("%s: %s is balanced to the %s edge; %s to the %s", b.file, address, got, fill.Replace(addresses[0]), want)
				}
			}
			for _, address := range addresses[1:] {
				f(fill.Replace(address))
			}
			if upper := strings.ToUpper(fill.Replace(kind)); b.foldsCase && kind != "USER" {
				f("/helm/" + upper + "/64")
				f("/face/64/" + upper + ".PNG")
			}
		}
	}

	for _, address := range []string{
		"/helm/player_%d/128", "/avatar/user/%d", "/avatar/%d",
		"/sprite/face.png?players=a,player_%d", "/sprite/head.webp?size=32&hashes=a%d,b", "/heads.json?players=a,player_%d",
	} {
		const subjects = 1000
		counts := map[string]int{}
		for i := range subjects {
			counts[edgeOf(fmt.Sprintf(address, i))]++
		}
		if n := counts["first"]; n < subjects/4 || n > subjects*3/4 || n+counts["second"] != subjects {
			t.Errorf("%s for %d subjects: %v; want about half at each edge", address, subjects, counts)
		}
	}
	for i := range 24 {
		query := fmt.Sprintf("?players=a,player_%d", i)
		if face, head, list := edgeOf("/sprite/face.png"+query), edgeOf("/sprite/head.webp"+query), edgeOf("/heads.json"+query); face != head || face != list {
			t.Errorf("%s: the edges are %s, %s and %s; want one", query, face, head, list)
		}
	}

	// Varnish answers 503 when an expression takes too many steps.
	for _, part := range []string{"1", "/1", "/user/1", "/face/1", "/left.png", "."} {
		long := "/" + strings.Repeat(part, 7000/len(part))
		edgeOf(long)
		edgeOf(long + "/")
	}
}
