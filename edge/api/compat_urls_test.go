//go:build !race

package api_test

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/config/configtest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// compatURLs are addresses as their users have them: where each comes from, the address, our own
// address of the same, and its size in pixels. In braces are Steve's name, UUID without and with hyphens,
// the number and the hash of its skin, and a name and a UUID of no player.
var compatURLs = []struct{ from, address, equals, size string }{
	// Defaults of plugins and sites.
	{"DiscordSRV", "/helm/{uuid}/128", "/face/uuid/{uuid}.png?size=128", "128 × 128"},
	{"DiscordSRV, offline players", "/helm/{name}/128", "/face/player/{name}.png?size=128", "128 × 128"},
	{"Plan", "/helm/{uuid}/120", "/face/uuid/{uuid}.png?size=120", "120 × 120"},
	{"Plan, second choice", "/helmavatar/{hyphenated}/120.png", "/face/uuid/{uuid}.png?size=120", "120 × 120"},
	{"LuckPerms editor", "/helm/{hyphenated}/24", "/face/uuid/{uuid}.png?size=24", "24 × 24"},
	{"EssentialsX Discord", "/helm/{hyphenated}", "/face/uuid/{uuid}.png?size=180&exact", "180 × 180"},
	{"NamelessMC, cravatar.eu", "/helmavatar/{name}/64.png", "/face/player/{name}.png?size=64", "64 × 64"},
	{"NamelessMC, cravatar.eu", "/helmhead/{uuid}/64.png", "/head/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, Crafatar", "/avatars/{uuid}?size=64&overlay", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, Crafatar", "/renders/head/{uuid}?size=64&overlay", "/head/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, crafthead", "/helm/{uuid}/64", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, crafthead", "/cube/{uuid}/64", "/head/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, mc-heads.net", "/avatar/{uuid}/64", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, mc-heads.net", "/head/{uuid}/64", "/head/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, Minotar", "/helm/{name}/64.png", "/face/player/{name}.png?size=64", "64 × 64"},
	{"NamelessMC, Minotar", "/cube/{name}/64.png", "/head/player/{name}.png?size=64", "64 × 64"},
	{"NamelessMC, Visage", "/face/64/{uuid}", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, Visage", "/head/64/{uuid}", "/head/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, Visage", "/bust/64/{uuid}", "/bust/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NamelessMC, viewer", "/skin/{uuid}", "/skin/uuid/{uuid}", "128 × 128"},
	{"Azuriom", "/avatar/{name}/64.png", "/face/player/{name}.png?size=64", "64 × 64"},
	{"Azuriom", "/avatar/{hyphenated}/100.png", "/face/uuid/{uuid}.png?size=100&exact", "100 × 100"},
	{"squaremap", "/avatar/{uuid}/16", "/face/uuid/{uuid}.png?size=16", "16 × 16"},
	{"squaremap", "/avatar/{name}/16", "/face/player/{name}.png?size=16", "16 × 16"},
	{"Dynmap", "/MinecraftSkins/{name}.png", "/skin/player/{name}", "128 × 128"},
	{"Dynmap", "/skin/{name}", "/skin/player/{name}", "128 × 128"},
	{"Dynmap", "/skins/{hyphenated}", "/skin/uuid/{uuid}", "128 × 128"},
	// Bots and shops.
	{"bots, Crafatar", "/avatars/{hyphenated}?overlay", "/face/uuid/{uuid}.png?size=160", "160 × 160"},
	{"bots, Crafatar", "/avatars/{uuid}?default=MHF_Steve&overlay", "/face/uuid/{uuid}.png?size=160", "160 × 160"},
	{"bots, Crafatar", "/avatars/{none}?default=MHF_Steve&overlay", "/face/uuid/{none}.png?size=160&default=classic", "160 × 160"},
	{"bots, Crafatar", "/avatars/{none}?default=MHF_Alex", "/face/uuid/{none}.png?size=160&default=slim&no=hat", "160 × 160"},
	{"bots, Crafatar", "/renders/body/{uuid}.png?overlay=true&scale=10", "/body/uuid/{uuid}.png?height=451&width=200&exact&turn=1&tilt=iso&wear=none", "200 × 451"},
	{"bots, mc-heads.net", "/body/{uuid}/right", "/body/uuid/{uuid}.png?height=360&exact&turn=1", "180 × 360"},
	{"bots, mc-heads.net", "/player/{name}/100", "/front/player/{name}.png?height=200&exact", "100 × 200"},
	{"bots, mc-heads.net", "/head/{hash}/left", "/head/hash/{hash}.png?size=180&exact&turn=7", "180 × 180"},
	{"bots, Minotar", "/armor/body/{name}/100.png", "/front/player/{name}.png?height=200&exact", "100 × 200"},
	{"bots, Minotar", "/skin/{name}", "/skin/player/{name}", "128 × 128"},
	{"bots, VZGE", "/full/832/{name}.png?no=cape", "/body/player/{name}.png?height=832&wear=none", "416 × 832"},
	{"bots, VZGE", "/bust/256/{uuid}?y=10", "/bust/uuid/{uuid}.png?size=256", "256 × 256"},
	{"bots, NMSR", "/bust/{uuid}?y=-20", "/bust/uuid/{uuid}.png?size=180&exact&turn=7", "180 × 180"},
	{"bots, mineatar", "/face/{uuid}?scale=8&overlay=true", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	// Crafatar.
	{"Crafatar", "/avatars/{uuid}", "/face/uuid/{uuid}.png?size=160&no=hat", "160 × 160"},
	{"Crafatar", "/avatars/{uuid}.jpg?size=512&helm", "/face/uuid/{uuid}.png?size=512", "512 × 512"},
	{"Crafatar", "/avatars/{uuid}?size=5", "/face/uuid/{uuid}.png?size=8&no=hat", "8 × 8"},
	{"Crafatar", "/avatars/{uuid}?size=99999", "/face/uuid/{uuid}.png?size=512&no=hat", "512 × 512"},
	{"Crafatar", "/avatars/{uuid}?size=fifty", "/face/uuid/{uuid}.png?size=160&no=hat", "160 × 160"},
	{"Crafatar", "/avatars/{none}?default=https://example.org/a.png", "/face/uuid/{none}.png?size=160&no=hat&default=avatar", "160 × 160"},
	{"Crafatar", "/avatars/{none}?default={uuid}", "/face/uuid/{none}.png?size=160&no=hat&default=classic", "160 × 160"},
	{"Crafatar", "/renders/head/{uuid}", "/head/uuid/{uuid}.png?size=120&no=hat", "120 × 120"},
	{"Crafatar", "/renders/head/{hyphenated}?scale=4&overlay", "/head/uuid/{uuid}.png?size=80", "80 × 80"},
	{"Crafatar", "/renders/body/{uuid}", "/body/uuid/{uuid}.png?height=270&width=120&exact&no=hat,layers&turn=1&tilt=iso&wear=none", "120 × 270"},
	{"Crafatar", "/renders/body/{uuid}?scale=1&overlay", "/body/uuid/{uuid}.png?height=45&width=20&exact&turn=1&tilt=iso&wear=none", "20 × 45"},
	{"Crafatar, scale as size", "/renders/body/{uuid}?size=4&overlay", "/body/uuid/{uuid}.png?height=180&width=80&exact&turn=1&tilt=iso&wear=none", "80 × 180"},
	{"Crafatar, both", "/renders/body/{uuid}?size=512&scale=10&overlay", "/body/uuid/{uuid}.png?height=451&width=200&exact&turn=1&tilt=iso&wear=none", "200 × 451"},
	{"Crafatar", "/skins/{uuid}", "/skin/uuid/{uuid}", "128 × 128"},
	{"Crafatar", "/capes/{uuid}.png", "/cape/uuid/{uuid}", "64 × 32"},
	// Minotar and crafthead.
	{"Minotar", "/avatar/{name}", "/face/player/{name}.png?size=180&exact", "180 × 180"},
	{"Minotar", "/avatar/{uuid}/100.png", "/face/uuid/{uuid}.png?size=100&exact", "100 × 100"},
	{"Minotar", "/helm/{name}/100.svg", "/face/player/{name}.png?size=100&exact", "100 × 100"},
	{"Minotar", "/cube/{name}/100.png", "/head/player/{name}.png?size=100&exact", "100 × 100"},
	{"Minotar", "/cubehelm/{name}/75", "/head/player/{name}.png?size=75&exact", "75 × 75"},
	{"Minotar", "/bust/{name}/100.png", "/bust/player/{name}.png?size=100&exact", "100 × 100"},
	{"Minotar", "/armor/bust/{name}/190.png", "/bust/player/{name}.png?size=190&exact", "190 × 190"},
	{"Minotar", "/armour/bust/{name}", "/bust/player/{name}.png?size=180&exact", "180 × 180"},
	{"Minotar", "/body/{name}/100.png", "/body/player/{name}.png?height=200&exact", "100 × 200"},
	{"Minotar", "/armour/body/{name}/300", "/front/player/{name}.png?height=600&exact", "300 × 600"},
	{"Minotar", "/download/{name}", "/skin/player/{name}?download", "128 × 128"},
	{"crafthead", "/avatar/{hash}/64", "/face/hash/{hash}.png?size=64", "64 × 64"},
	{"crafthead", "/armor/cube/{name}/64", "/head/player/{name}.png?size=64", "64 × 64"},
	{"crafthead", "/cape/{uuid}", "/cape/uuid/{uuid}", "64 × 32"},
	{"crafthead", "/bust/{unknown}/64?model=slim", "/bust/player/{unknown}.png?size=64&default=slim", "64 × 64"},
	{"crafthead", "/bust/{none}/64?model=default", "/bust/uuid/{none}.png?size=64&default=classic", "64 × 64"},
	{"crafthead", "/helm/{unknown}/64", "/face/player/{unknown}.png?size=64&default=avatar", "64 × 64"},
	{"crafthead", "/minecraft/avatar/{name}", "/face/player/{name}.png?size=180&exact", "180 × 180"},
	{"crafthead", "/minecraft/armor/body/{hyphenated}/64.png", "/front/uuid/{uuid}.png?height=128", "64 × 128"},
	{"crafthead", "/minecraft/skin/{hash}", "/skin/hash/{hash}", "128 × 128"},
	{"crafthead", "/minecraft/cape/{uuid}", "/cape/uuid/{uuid}", "64 × 32"},
	// mc-heads.net.
	{"mc-heads.net", "/avatar/{name}", "/face/player/{name}.png?size=180&exact", "180 × 180"},
	{"mc-heads.net", "/avatar/{name}/50/nohelm", "/face/player/{name}.png?size=50&exact&no=hat", "50 × 50"},
	{"mc-heads.net", "/avatar/{name}/nohelm.png", "/face/player/{name}.png?size=180&exact&no=hat", "180 × 180"},
	{"mc-heads.net", "/avatar/{tid}/64", "/face/{tid}.png?size=64", "64 × 64"},
	{"mc-heads.net", "/head/{name}", "/head/player/{name}.png?size=180&exact", "180 × 180"},
	{"mc-heads.net", "/head/{name}/100", "/head/player/{name}.png?size=100&exact", "100 × 100"},
	{"mc-heads.net", "/head/{name}/100/left", "/head/player/{name}.png?size=100&exact&turn=7", "100 × 100"},
	{"mc-heads.net", "/head/{name}/left.png", "/head/player/{name}.png?size=180&exact&turn=7", "180 × 180"},
	{"mc-heads.net", "/head/{name}/right", "/head/player/{name}.png?size=180&exact", "180 × 180"},
	{"mc-heads.net", "/body/{name}", "/body/player/{name}.png?height=360&exact", "180 × 360"},
	{"mc-heads.net", "/body/{name}/100", "/body/player/{name}.png?height=200&exact", "100 × 200"},
	{"mc-heads.net", "/body/{name}/100/left", "/body/player/{name}.png?height=200&exact&turn=7", "100 × 200"},
	{"mc-heads.net", "/body/{hash}/512", "/body/hash/{hash}.png?height=1024", "512 × 1024"},
	{"mc-heads.net", "/body/{name}/600", "/body/player/{name}.png?height=1024", "512 × 1024"},
	{"mc-heads.net", "/player/{name}", "/front/player/{name}.png?height=360&exact", "180 × 360"},
	{"mc-heads.net", "/player/{uuid}/64.png", "/front/uuid/{uuid}.png?height=128", "64 × 128"},
	{"mc-heads.net", "/player/{name}/nohelm", "/front/player/{name}.png?height=360&exact&no=hat", "180 × 360"},
	{"mc-heads.net", "/skin/{hash}", "/skin/hash/{hash}", "128 × 128"},
	{"mc-heads.net", "/download/{uuid}", "/skin/uuid/{uuid}?download", "128 × 128"},
	// cravatar.eu and mcheads.org.
	{"cravatar.eu", "/avatar/{name}/190.png", "/face/player/{name}.png?size=190&exact", "190 × 190"},
	{"cravatar.eu", "/helmavatar/{name}", "/face/player/{name}.png?size=180&exact", "180 × 180"},
	{"cravatar.eu", "/head/{name}/128.png", "/head/player/{name}.png?size=128", "128 × 128"},
	{"cravatar.eu", "/helmhead/{name}/600", "/head/player/{name}.png?size=512", "512 × 512"},
	{"mcheads.org", "/head/{name}/64/hat", "/face/player/{name}.png?size=64", "64 × 64"},
	{"mcheads.org", "/avatar/{name}/left/64", "/body/player/{name}.png?height=131&width=64&exact&turn=7&tilt=iso&wear=none", "64 × 131"},
	{"mcheads.org", "/avatar/{name}/right/64.png", "/body/player/{name}.png?height=131&width=64&exact&turn=1&tilt=iso&wear=none", "64 × 131"},
	{"mcheads.org", "/player/{name}/64/hat", "/front/player/{name}.png?height=128", "64 × 128"},
	{"mcheads.org", "/ioshead/{name}/64", "/head/player/{name}.png?size=64", "64 × 64"},
	{"mcheads.org", "/iosbody/{name}/left/64", "/body/player/{name}.png?height=131&width=64&exact&turn=7&tilt=iso&wear=none", "64 × 131"},
	// VZGE, Visage and Lapitar.
	{"VZGE", "/face/96/{uuid}", "/face/uuid/{uuid}.png?size=96", "96 × 96"},
	{"VZGE", "/front/200/{uuid}", "/front/uuid/{uuid}.png?height=200&exact", "100 × 200"},
	{"VZGE", "/frontfull/384/{uuid}.png", "/front/uuid/{uuid}.png?height=384", "192 × 384"},
	{"VZGE", "/head/256/{uuid}.webp", "/head/uuid/{uuid}.webp?size=256", "WebP"},
	{"VZGE", "/head/512/{name}.png?no=ears,shadow,cape&y=70", "/head/player/{name}.png?size=512&turn=7", "512 × 512"},
	{"VZGE", "/head/256/{uuid}?y=90", "/head/uuid/{uuid}.png?size=256&turn=7", "256 × 256"},
	{"VZGE", "/full/384/{uuid}?y=180&no=shadow,cape", "/body/uuid/{uuid}.png?height=384&turn=5&wear=none", "192 × 384"},
	{"VZGE", "/full/384/{none}?slim", "/body/uuid/{none}.png?height=384&default=slim", "192 × 384"},
	{"VZGE", "/processedskin/{uuid}", "/skin/uuid/{uuid}", "128 × 128"},
	{"VZGE", "/face/64/{tid}", "/face/{tid}.png?size=64", "64 × 64"},
	{"Lapitar", "/portrait/{name}/128", "/bust/player/{name}.png?size=128", "128 × 128"},
	{"Lapitar", "/helm/64/{name}", "/face/player/{name}.png?size=64", "64 × 64"},
	// NMSR.
	{"NMSR", "/fullbody/{uuid}", "/body/uuid/{uuid}.png?height=869&width=512&exact", "512 × 869"},
	{"NMSR", "/full/{uuid}?w=256", "/body/uuid/{uuid}.png?height=512", "256 × 512"},
	{"VZGE", "/face/64/{uuid}.jxl", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	{"Crafatar, any suffix", "/avatars/{uuid}.bmp?size=64&overlay", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NMSR", "/full/{uuid}?h=300", "/body/uuid/{uuid}.png?height=300&exact", "150 × 300"},
	{"NMSR, which has no scale", "/fullbody/{uuid}?scale=8", "/body/uuid/{uuid}.png?height=869&width=512&exact", "512 × 869"},
	{"NMSR", "/fullbodyiso/{uuid}?noshading", "/body/uuid/{uuid}.png?height=869&width=512&exact&no=light&turn=1&tilt=iso", "512 × 869"},
	{"NMSR", "/fullbody/{uuid}?back", "/body/uuid/{uuid}.png?height=869&width=512&exact&turn=5", "512 × 869"},
	{"NMSR", "/front/{uuid}?back", "/back/uuid/{uuid}.png?height=400", "200 × 400"},
	{"NMSR", "/full/{uuid}?w=256&no=overlays,hat_layer,shadow", "/body/uuid/{uuid}.png?height=512&no=hat,layers", "256 × 512"},
	{"NMSR", "/headiso/{uuid}", "/head/uuid/{uuid}.png?size=512", "512 × 512"},
	{"NMSR", "/headiso/{uuid}?w=64", "/head/uuid/{uuid}.png?size=64", "64 × 64"},
	{"NMSR", "/bodybust/{uuid}?nolayers", "/bust/uuid/{uuid}.png?size=512&no=hat,layers", "512 × 512"},
	{"NMSR, other spellings", "/full_body/{uuid}?w=64", "/body/uuid/{uuid}.png?height=108&width=64&exact", "64 × 108"},
	{"NMSR, other spellings", "/full_body_iso/{uuid}?w=64", "/body/uuid/{uuid}.png?height=108&width=64&exact&turn=1&tilt=iso", "64 × 108"},
	{"NMSR, other spellings", "/head_iso/{uuid}", "/head/uuid/{uuid}.png?size=512", "512 × 512"},
	{"NMSR, other spellings", "/body_bust/{uuid}", "/bust/uuid/{uuid}.png?size=512", "512 × 512"},
	{"NMSR, other spellings", "/front_bust/{uuid}?w=64", "/front/uuid/{uuid}.png?height=128", "64 × 128"},
	{"NMSR, other spellings", "/front_full/{uuid}?w=64", "/front/uuid/{uuid}.png?height=128", "64 × 128"},
	{"NMSR", "/frontbust/{uuid}", "/front/uuid/{uuid}.png?height=1024", "512 × 1024"},
	{"NMSR", "/face/{uuid}?no=hat", "/face/uuid/{uuid}.png?size=180&exact&no=hat", "180 × 180"},
	{"NMSR", "/texture/{hash}", "/skin/hash/{hash}", "128 × 128"},
	{"NMSR", "/cloak/{uuid}", "/cape/uuid/{uuid}", "64 × 32"},
	{"chrly, by UUID", "/cloaks/{hyphenated}.png", "/cape/uuid/{uuid}", "64 × 32"},
	{"NMSR", "/bust/{none}?alex", "/bust/uuid/{none}.png?size=180&exact&default=slim", "180 × 180"},
	// mineatar.
	{"mineatar", "/face/{uuid}?scale=4", "/face/uuid/{uuid}.png?size=32", "32 × 32"},
	{"mineatar", "/face/{uuid}?scale=12&overlay=false", "/face/uuid/{uuid}.png?size=96&no=hat", "96 × 96"},
	{"mineatar", "/head/{uuid}?scale=8", "/head/uuid/{uuid}.png?size=128", "128 × 128"},
	{"mineatar", "/body/full/{uuid}?scale=4", "/body/uuid/{uuid}.png?height=156&width=70&exact&turn=1&tilt=iso&wear=none", "70 × 156"},
	{"mineatar", "/body/front/{uuid}?scale=4", "/front/uuid/{uuid}.png?height=128", "64 × 128"},
	{"mineatar", "/body/back/{uuid}?scale=4&overlay=false", "/back/uuid/{uuid}.png?height=128&no=hat,layers", "64 × 128"},
	{"mineatar", "/body/left/{uuid}?scale=4", "/left/uuid/{uuid}.png?height=128", "64 × 128"},
	{"mineatar", "/body/right/{uuid}?scale=4&format=jpg", "/right/uuid/{uuid}.png?height=128", "64 × 128"},
	{"mineatar", "/skin/{uuid}?download", "/skin/uuid/{uuid}?download", "128 × 128"},
	// Poses and parts of Starlight, and words of DiscordSRV.
	{"Starlight", "/render/cheering/{name}/face?borderHighlight=true&borderHighlightRadius=5", "/head/player/{name}.png?size=180&exact", "180 × 180"},
	{"Starlight", "/render/walking/{name}/full", "/body/player/{name}.png?height=360&exact&pose=walk", "180 × 360"},
	{"Starlight", "/render/default/{uuid}/bust", "/bust/uuid/{uuid}.png?size=180&exact", "180 × 180"},
	{"Starlight", "/render/dungeons/{name}/face/", "/head/player/{name}.png?size=180&exact", "180 × 180"},
	{"Starlight", "/render/isometric/{uuid}/full", "/body/uuid/{uuid}.png?height=360&exact&turn=1&tilt=iso", "180 × 360"},
	{"Starlight", "/render/head/{uuid}/full.png", "/head/uuid/{uuid}.png?size=180&exact", "180 × 180"},
	{"Starlight", "/render/skin/{uuid}/default", "/skin/uuid/{uuid}", "128 × 128"},
	{"Discord Integration", "/render/pixel/{uuid}/face", "/face/uuid/{uuid}.png?size=180&exact", "180 × 180"},
	{"DiscordSRV 2", "/{uuid}/overlay/128", "/face/uuid/{uuid}.png?size=128", "128 × 128"},
	{"DiscordSRV 2", "/{name}/helm.png", "/face/player/{name}.png?size=64", "64 × 64"},
	{"DiscordSRV 2", "/{hash}/head", "/face/hash/{hash}.png?size=64&no=hat", "64 × 64"},
	{"DiscordSRV, before", "/head.png?texture=&uuid={uuid}&name={name}&overlay", "/face/player/{name}.png?size=64", "64 × 64"},
	{"DiscordSRV, before", "/head.png?uuid={hyphenated}", "/face/uuid/{uuid}.png?size=64&no=hat", "64 × 64"},
	{"Ely.by", "/head?name={name}", "/face/player/{name}.png?size=180&exact", "180 × 180"},
	// Players that cannot exist, placeholders without a value, and other spellings.
	{"Floodgate", "/helm/.Name/128", "/face/user/0.png?size=128&default=avatar", "128 × 128"},
	{"Floodgate", "/helm/*Name/128", "/face/player/*Name.png?size=128&default=avatar", "128 × 128"},
	{"mcheads.org, Bedrock", "/head/00002535468413142004/64", "/head/user/0.png?size=64&default=avatar", "64 × 64"},
	{"an empty placeholder", "/helm//64", "/face/user/0.png?size=64&default=avatar", "64 × 64"},
	{"an empty placeholder", "/renders/head//?scale=4", "/head/user/0.png?size=80&default=avatar&no=hat", "80 × 80"},
	{"an empty placeholder", "/avatars/?size=64&overlay", "/face/user/0.png?size=64&default=avatar", "64 × 64"},
	{"an empty placeholder", "/full/832/.png", "/body/user/0.png?height=832&default=avatar", "416 × 832"},
	{"an empty placeholder", "/render/default//full", "/body/user/0.png?height=360&exact&default=avatar", "180 × 360"},
	{"an empty placeholder", "/head.png?texture=&uuid=&name=&overlay", "/face/user/0.png?size=64&default=avatar", "64 × 64"},
	{"a large size", "/helm/{name}/99999", "/face/player/{name}.png?size=512", "512 × 512"},
	{"a negative size", "/helm/{name}/-5", "/face/player/{name}.png?size=8", "8 × 8"},
	{"a size with a unit", "/helm/{name}/100px", "/face/player/{name}.png?size=100&exact", "100 × 100"},
	{"a size with a factor", "/helm/{name}/50@2x.png", "/face/player/{name}.png?size=100&exact", "100 × 100"},
	{"a size with a factor", "/helm/{name}/64@1.5X", "/face/player/{name}.png?size=96", "96 × 96"},
	{"two sizes", "/helm/{name}/64x64", "/face/player/{name}.png?size=64", "64 × 64"},
	{"half a size", "/player/{uuid}/37.5.png", "/front/uuid/{uuid}.png?height=74&exact", "37 × 74"},
	{"no size", "/avatar/{name}/undefined", "/face/player/{name}.png?size=180&exact", "180 × 180"},
	{"a size in the query", "/avatars/{uuid}?size=64px&overlay", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	{"a size in the query", "/helm/{name}?size=-1", "/face/player/{name}.png?size=8", "8 × 8"},
	{"a suffix before the size", "/head/{uuid}.png/64", "/head/uuid/{uuid}.png?size=64", "64 × 64"},
	{"a size of a file", "/skin/{uuid}/512", "/skin/uuid/{uuid}", "128 × 128"},
	{"blanks", "/helm/%20{name}%20/64", "/face/player/{name}.png?size=64", "64 × 64"},
	{"a suffix before the size", "/head/{uuid}.bmp/64", "/head/uuid/{uuid}.png?size=64", "64 × 64"},
	{"a size with both", "/helm/{name}/64px@2x", "/face/player/{name}.png?size=128", "128 × 128"},
	{"zeros before a size", "/helm/{name}/00000000064", "/face/player/{name}.png?size=64", "64 × 64"},
	{"a unit after a blank", "/helm/{name}/64%20px", "/face/player/{name}.png?size=64", "64 × 64"},
	{"no name", "/head/64/null", "/head/player/null.png?size=64&default=avatar", "64 × 64"},
	{"no name", "/bust/128/None.png", "/bust/player/None.png?size=128&default=avatar", "128 × 128"},
	{"a placeholder left", "/head/512/%7Buuid%7D", "/head/player/%7Buuid%7D.png?size=512&default=avatar", "512 × 512"},
	{"an empty placeholder", "/bust/256/.png?y=10", "/bust/user/0.png?size=256&default=avatar", "256 × 256"},
	{"an empty placeholder", "/helm/player//64", "/face/user/0.png?size=64&default=avatar", "64 × 64"},
	{"an empty placeholder", "/minecraft/helm/", "/face/user/0.png?size=180&exact&default=avatar", "180 × 180"},
	{"a UUID for a name", "/legacy/{uuid}.png", "/legacy/{name}.png", "64 × 32"},
	{"braces", "/helm/%7B{hyphenated}%7D/64", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	{"words in any case", "/head/{name}/64/Left", "/head/player/{name}.png?size=64&turn=7", "64 × 64"},
	{"launchers for LittleSkin", "/avatar/player/64/{name}.png", "/face/player/{name}.png?size=64", "64 × 64"},
	{"Blessing Skin", "/preview/{tid}/250", "/preview/{tid}?png&height=250", "238 × 256"},
	{"Blessing Skin 3", "/preview/250/{tid}.png", "/preview/{tid}?png&height=250", "238 × 256"},
	{"DiscordSRV Heads", "/{name}/texture", "/skin/player/{name}", "128 × 128"},
	{"DiscordSRV Heads", "/{uuid}/skull/128", "/head/uuid/{uuid}.png?size=128&turn=7", "128 × 128"},
	{"DiscordSRV Heads", "/{name}/bust", "/bust/player/{name}.png?size=64", "64 × 64"},
	{"DiscordSRV Heads", "/{name}/body/64.png", "/body/player/{name}.png?height=128", "64 × 128"},
	{"DiscordSRV Heads", "/{name}/bust/overlay/64", "/bust/player/{name}.png?size=64", "64 × 64"},
	{"DiscordSRV Heads", "/{uuid}/skull/isometric/right/helm/64", "/head/uuid/{uuid}.png?size=64", "64 × 64"},
	{"DiscordSRV Heads", "/{name}/head/overlay", "/face/player/{name}.png?size=64", "64 × 64"},
	{"DiscordSRV Heads", "/{name}/player", "/body/player/{name}.png?height=512&turn=7", "256 × 512"},
	{"DiscordSRV Heads", "/{name}/player/64?yaw=90&pitch=0", "/body/player/{name}.png?height=128&turn=6", "64 × 128"},
	{"DiscordSRV Heads", "/{name}/player/right/64?yaw=-60", "/body/player/{name}.png?height=128&turn=1", "64 × 128"},
	{"Visage", "/player/512/{uuid}", "/body/uuid/{uuid}.png?height=832", "416 × 832"},
	{"Crafatar", "/avatars/{hyphenated}?size=64.png", "/face/uuid/{uuid}.png?size=64&no=hat", "64 × 64"},
	{"Crafatar", "/avatars/{uuid}?size=64?overlay=true", "/face/uuid/{uuid}.png?size=64&no=hat", "64 × 64"},
	{"crafthead", "/body/{hyphenated}/alex", "/body/uuid/{uuid}.png?height=360&exact", "180 × 360"},
	{"Lapitar", "/helm/64/Alex", "/face/player/Alex.png?size=64&default=avatar", "64 × 64"},
	{"crafthead", "/helm/{name}/64abc", "/face/player/{name}.png?size=64", "64 × 64"},
	{"mineskin.eu", "/headhelm/{name}/100.png", "/head/player/{name}.png?size=100&exact", "100 × 100"},
	{"Starlight, before", "/skin-render/walking/.{unknown}/face", "/head/user/0.png?size=180&exact&default=avatar", "180 × 180"},
	{"Starlight, before", "/skin-render/relaxing/{name}/full", "/body/player/{name}.png?height=360&exact&pose=sit", "180 × 360"},
	{"crafthead, which has no scale", "/avatar/{uuid}?scale=6", "/face/uuid/{uuid}.png?size=180&exact", "180 × 180"},
	{"crafthead, which has no scale", "/cube/{uuid}?scale=6", "/head/uuid/{uuid}.png?size=180&exact", "180 × 180"},
	{"VZGE", "/face/56/{uuid}?no=shadow,overlay,ears,cape", "/face/uuid/{uuid}.png?size=56&no=hat", "56 × 56"},
	{"VZGE", "/full/832/{uuid}.png?no=shadow&y=-3", "/body/uuid/{uuid}.png?height=832", "416 × 832"},
	{"Starlight", "/render/head/{name}/head", "/head/player/{name}.png?size=180&exact", "180 × 180"},
	{"Starlight", "/render/skin/{name}/processed", "/skin/player/{name}", "128 × 128"},
	{"Starlight", "/render/default/{name}/full?capeEnabled=False", "/body/player/{name}.png?height=360&exact&wear=none", "180 × 360"},
	{"Starlight", "/render/ultimate/{name}/face?cameraWidth=256&dropShadow=true", "/head/player/{name}.png?size=256", "256 × 256"},
	{"bots", "/head/{name}/3d", "/head/player/{name}.png?size=180&exact", "180 × 180"},
	{"Visage", "/full/{uuid}?width=177&height=288", "/body/uuid/{uuid}.png?height=288&width=177", "177 × 288"},
	{"a placeholder left", "/helm/{uuid}/%7Bsize%7D", "/face/uuid/{uuid}.png?size=180&exact", "180 × 180"},
	{"a placeholder left", "/helm/{uuid}/%25size%25.png", "/face/uuid/{uuid}.png?size=180&exact", "180 × 180"},
	{"no size", "/avatar/{name}/None", "/face/player/{name}.png?size=180&exact", "180 × 180"},
	{"a slash at the end", "/helm/{name}/64/", "/face/player/{name}.png?size=64", "64 × 64"},
	{"an encoded query", "/avatars/{uuid}?size=64&amp;overlay", "/face/uuid/{uuid}.png?size=64", "64 × 64"},
	{"Mojang's names", "/helm/MHF_Alex/64", "/face/player/MHF_Alex.png?size=64&default=slim", "64 × 64"},
	{"VZGE's names", "/bust/64/X-Alex", "/bust/player/X-Alex.png?size=64&default=slim", "64 × 64"},
	{"VZGE's names", "/full/128/X-Steve", "/body/player/X-Steve.png?height=128&default=classic", "64 × 128"},
	{"Visage", "/skin/{uuid}.png", "/skin/uuid/{uuid}", "128 × 128"},
	{"Visage", "/cape/{hyphenated}.png", "/cape/uuid/{uuid}", "64 × 32"},
	{"viewers in pages", "/skin/{unknown}?default=classic", "/skin/player/{unknown}?default=classic", "64 × 64"},
	{"Dynmap", "/MinecraftSkins/{uuid}.png", "/skin/uuid/{uuid}", "128 × 128"},
	{"Mojang, before 2014", "/MinecraftCloaks/{name}.png", "/cape/player/{name}", "64 × 32"},
}

// Each address of another service has the picture or the file of our own address, in exactly the size
// that its user counts on, and caches keep it as long. docs/addresses.md lists them.
func TestCompatURLs(t *testing.T) {
	t.Parallel()
	w := openCompat(t)
	const unknownUUID = "8667ba71-b85a-4004-af54-457a9734eed7" // of which the default skin is slim
	replace := strings.NewReplacer(
		"{name}", "Steve", "{uuid}", strings.ReplaceAll(steveUUID, "-", ""), "{hyphenated}", steveUUID, "{tid}", "11",
		"{hash}", w.robot.Hash.String(), "{unknown}", "Nobody_1", "{none}", unknownUUID,
	)
	testenv.Check(t, len(compatURLs) >= 120, "there are %d addresses; want 120", len(compatURLs))
	lifetimes := map[string]string{byName: "a minute", byTexture: "a day", "public, max-age=60": "a minute"}
	var page strings.Builder
	page.WriteString("\n| used by | address | what comes back | pixels | kept for |\n|---|---|---|---|---|\n")
	used := map[string]bool{}
	for _, row := range compatURLs {
		address, equals := replace.Replace(row.address), replace.Replace(row.equals)
		var got, want reply
		testenv.Eventually(t, "heartbeats arrive in time, beside other tests", func() bool {
			got, want = w.get(t, address), w.get(t, equals)
			return got.header.Get("Cache-Control") != "public, max-age=1" && want.header.Get("Cache-Control") != "public, max-age=1"
		})
		if got.status != http.StatusOK || got.body != want.body || got.header.Get("Etag") != want.header.Get("Etag") {
			t.Errorf("%s: %d, %d bytes, ETag %s; want what %s has: %d, %d bytes, ETag %s",
				address, got.status, len(got.body), got.header.Get("Etag"), equals, want.status, len(want.body), want.header.Get("Etag"))
			continue
		}
		for _, name := range []string{"Content-Type", "Surrogate-Key", "Last-Modified", "Content-Disposition", "Cache-Control"} {
			cmptest.Same(t, got.header.Get(name), want.header.Get(name),
				"%s: %s differs from %s", address, name, equals)
		}
		lifetime := lifetimes[got.header.Get("Cache-Control")]
		testenv.Check(t, lifetime != "", "%s: Cache-Control %s", address, got.header.Get("Cache-Control"))
		size, kind := row.size, "PNG"
		if row.size == "WebP" {
			size, kind = "256 × 256", "WebP"
		} else if picture, err := png.Decode(bytes.NewReader([]byte(got.body))); err != nil {
			t.Errorf("%s: %v", address, err)
		} else if pixels := fmt.Sprintf("%d × %d", picture.Bounds().Dx(), picture.Bounds().Dy()); pixels != row.size {
			t.Errorf("%s: %s pixels; want %s", address, pixels, row.size)
		}
		testenv.Equal(t, got.header.Get("Content-Type"), "image/"+strings.ToLower(kind), "%s: Content-Type", address)
		fmt.Fprintf(&page, "| %s | `%s` | `%s`, %s | %s | %s |\n", row.from, row.address, row.equals, kind, size, lifetime)
		used[prefixOf(address)] = true
	}
	page.WriteString("\n")
	configtest.Section(t, "../../docs/addresses.md", "addresses", page.String())
	for _, route := range edge.CompatRoutes {
		testenv.Check(t, used[route.Prefix], "no address begins with %s", route.Prefix)
	}
}

// With EDGE_COMPAT_ROUTES=false only our own addresses are answered.
func TestCompatOff(t *testing.T) {
	t.Parallel()
	w := openCompat(t, func(s *setup) { s.api.CompatRoutes = false })
	own := regexp.MustCompile(`^/(skins|cloaks|legacy|Minecraft\w+)/(Steve|[0-9a-f-]{32,36})(\.png)?$|^/(skin|cape)/[0-9a-f-]{32,36}\.png$`)
	for _, row := range compatURLs {
		address := strings.NewReplacer("{name}", "Steve", "{uuid}", strings.ReplaceAll(steveUUID, "-", ""), "{hyphenated}", steveUUID, "{tid}", "11",
			"{hash}", w.robot.Hash.String(), "{unknown}", "Nobody_1", "{none}", steveUUID).Replace(row.address)
		want := http.StatusNotFound
		if own.MatchString(address) {
			want = http.StatusOK
		}
		testenv.Equal(t, w.get(t, address).status, want, "%s", address)
	}
}

// prefixOf returns the longest prefix of an address.
func prefixOf(address string) (longest string) {
	for _, route := range edge.CompatRoutes {
		if strings.HasPrefix(address, route.Prefix) && len(route.Prefix) > len(longest) {
			longest = route.Prefix
		}
	}
	return longest
}
