package launchers

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// CheckAgent runs a game with authlib-injector against a new site. The JAR of authlib-injector and
// the directory of this package are given. Only the address of the site's homepage is configured.
// It needs a JDK of version 9 or later.
func CheckAgent(tb testing.TB, site *Site, jar, directory string) {
	tb.Helper()
	const email, name = "agent@example.com", "Agent_0"
	player := Player{Name: name, Model: skin.Slim, Skin: NewSheet(5, 64, 64), Cape: NewSheet(6, 64, 32)}
	site.AddUser(tb, email, player)
	g := startAgentGame(tb, site, jar, directory)

	var session struct {
		AccessToken     string
		SelectedProfile agentProfile
	}
	g.request(tb, 200, &session, "authserver", "/authenticate", "", map[string]any{
		"username": email, "password": Password, "agent": map[string]any{"name": "Minecraft", "version": 1},
	})
	me := session.SelectedProfile
	g.request(tb, 204, nil, "sessionserver", "/session/minecraft/join", "", map[string]any{
		"accessToken": session.AccessToken, "selectedProfile": me.ID, "serverId": "-7c9d5b0044c130109a5d7b5fb5c317c02b4e28c1",
	})
	var joined, signed, unsigned agentProfile
	g.request(tb, 200, &joined, "sessionserver", "/session/minecraft/hasJoined?username="+name+"&serverId=-7c9d5b0044c130109a5d7b5fb5c317c02b4e28c1", "", nil)
	g.request(tb, 204, nil, "sessionserver", "/session/minecraft/hasJoined?username="+name+"&serverId=1", "", nil)
	g.request(tb, 200, &signed, "sessionserver", "/session/minecraft/profile/"+me.ID+"?unsigned=false", "", nil)
	g.request(tb, 200, &unsigned, "sessionserver", "/session/minecraft/profile/"+me.ID, "", nil)
	g.request(tb, 204, nil, "sessionserver", "/session/minecraft/profile/992960dfc7a54afca041760004499434", "", nil)
	g.checkProfile(tb, joined, player)
	g.checkProfile(tb, signed, player)
	if slices.ContainsFunc(unsigned.Properties, func(p agentProperty) bool { return p.Signature != "" }) {
		tb.Errorf("the unsigned profile has signatures: %v", unsigned)
	}

	for _, service := range [][2]string{{"api", "/profiles/minecraft"}, {"minecraftservices", "/minecraft/profile/lookup/bulk/byname"}} {
		var found []agentProfile
		g.request(tb, 200, &found, service[0], service[1], "", []string{"agent_0", "nobody_has_this"})
		if len(found) != 1 || found[0].ID != me.ID || found[0].Name != name {
			tb.Errorf("%s%s: %v", service[0], service[1], found)
		}
	}
	var found agentProfile
	g.request(tb, 200, &found, "api", "/users/profiles/minecraft/AGENT_0", "", nil)
	testenv.Check(tb, found.ID == me.ID && found.Name == name, "the player by name: %v", found)
	g.request(tb, 200, &found, "minecraftservices", "/minecraft/profile/lookup/name/agent_0", "", nil)
	g.request(tb, 200, &found, "minecraftservices", "/minecraft/profile", session.AccessToken, nil)
	testenv.Check(tb, found.ID == me.ID && found.Name == name, "the player of the token: %v", found)

	var keys struct{ ProfilePropertyKeys []struct{ PublicKey string } }
	g.request(tb, 200, &keys, "minecraftservices", "/publickeys", "", nil)
	encoded, _ := site.PublicKey(tb)
	if !slices.ContainsFunc(keys.ProfilePropertyKeys, func(k struct{ PublicKey string }) bool {
		return strings.Contains(strings.ReplaceAll(encoded, "\n", ""), k.PublicKey)
	}) {
		tb.Error("the agent's keys lack the site's")
	}
	for path, want := range map[string]*skin.Sheet{"/MinecraftSkins/" + name + ".png": nil, "/MinecraftCloaks/" + name + ".png": player.Cape} {
		sheet, err := skin.Decode(g.request(tb, 200, nil, "skins", path, "", nil))
		if err != nil || want != nil && !bytes.Equal(sheet.Pix, want.Pix) {
			tb.Errorf("%s: not the player's texture: %v", path, err)
		}
	}
	g.request(tb, 404, nil, "skins", "/MinecraftSkins/nobody_has_this.png", "", nil)
}

// agentProfile is a profile as the game gets it.
type agentProfile struct {
	ID, Name   string
	Properties []agentProperty
}

type agentProperty struct{ Name, Value, Signature string }

// agentGame is a running game.
type agentGame struct {
	in  io.Writer
	out *bufio.Reader
}

// startAgentGame starts a game, which ends with the test.
func startAgentGame(tb testing.TB, site *Site, jar, directory string) agentGame {
	tb.Helper()
	classes := tb.TempDir()
	sources := filepath.Join(directory, "testdata/agent")
	source := filepath.Join(sources, "Game.java")
	stack.MustRun(tb, exec.CommandContext(tb.Context(), "javac", "-d", classes, "-sourcepath", sources, source))
	jar = testenv.Must(filepath.Abs(jar))(tb)
	game := exec.Command("java", "-javaagent:"+jar+"="+site.URL, "-cp", classes, "Game") //nolint:noctx // ends with its input, in the clean-up
	game.Dir = classes                                                                   // the agent writes its log there
	game.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var messages bytes.Buffer
	game.Stderr = &messages
	in := testenv.Must(game.StdinPipe())(tb)
	out := testenv.Must(game.StdoutPipe())(tb)
	testenv.Do(tb, game.Start())
	tb.Cleanup(func() {
		_ = in.Close()
		if err := game.Wait(); err != nil || tb.Failed() {
			tb.Errorf("the game ended: %v\n%s", err, messages.Bytes())
		}
	})
	return agentGame{in, bufio.NewReader(out)}
}

// run runs a command of the game and returns its result.
func (g agentGame) run(tb testing.TB, command ...string) string {
	tb.Helper()
	testenv.Must(fmt.Fprintln(g.in, strings.Join(command, "\t")))(tb)
	line, err := g.out.ReadString('\n')
	if err != nil {
		tb.Fatalf("%v: %v", command, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// request sends a request, with a body unless that is nil. The response must have a status. It
// decodes the body into into unless that is nil.
func (g agentGame) request(tb testing.TB, status int, into any, service, path, token string, body any) []byte {
	tb.Helper()
	encoded := ""
	if body != nil {
		encoded = string(testenv.Must(json.Marshal(body))(tb))
	}
	got, content, _ := strings.Cut(g.run(tb, "request", service, path, token, encoded), " ")
	decoded := testenv.Must(base64.StdEncoding.DecodeString(content))(tb)
	if got != fmt.Sprint(status) {
		tb.Fatalf("%s%s: status %s, not %d: %s", service, path, got, status, decoded)
	}
	if into != nil {
		if err := json.Unmarshal(decoded, into); err != nil {
			tb.Fatalf("%s%s: %v: %s", service, path, err, decoded)
		}
	}
	return decoded
}

// checkProfile has the game check the signatures of a profile and the addresses of its textures, and
// downloads them.
func (g agentGame) checkProfile(tb testing.TB, profile agentProfile, player Player) {
	tb.Helper()
	checked := 0
	for _, property := range profile.Properties {
		for value, want := range map[string]string{property.Value: "true true", property.Value + "A": "false false"} {
			verdict := g.run(tb, "verify", property.Name, value, property.Signature)
			testenv.Equal(tb, verdict, want, "the signature of property %s is valid for %s", property.Name, value)
		}
		if property.Name != "textures" {
			continue
		}
		var payload struct {
			Textures map[string]struct{ URL string }
		}
		testenv.Do(tb, json.Unmarshal(testenv.Must(base64.StdEncoding.DecodeString(property.Value))(tb), &payload))
		for slot, want := range map[string]*skin.Sheet{"SKIN": player.Skin, "CAPE": player.Cape} {
			address := payload.Textures[slot].URL
			testenv.Equal(tb, g.run(tb, "allowed", address), "true", "%s is an address of textures", address)
			file := testenv.Must(get(tb.Context(), address))(tb)
			if sheet, err := skin.Decode(file); err != nil || !bytes.Equal(sheet.Pix, want.Pix) {
				tb.Errorf("%s is not the player's texture: %v", address, err)
			}
			checked++
		}
	}
	elsewhere := g.run(tb, "allowed", "https://textures.example.net/textures/0")
	testenv.Equal(tb, elsewhere, "false", "another host may have textures")
	testenv.Check(tb, profile.Name == player.Name && checked == 2, "the profile is %v", profile)
}
