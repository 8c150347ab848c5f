//go:build engine

// Package engine runs the container files on a real Docker Engine, with the commands of their pages. It takes root and
// many minutes, so make engine alone has its tag.
package engine

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

const (
	email, password = "you@example.com", "correct horse"
	containers      = "docs/operations/containers.md"
	upgrades        = "docs/operations/upgrades.md"
	backups         = "docs/operations/backup.md"
)

// operator is a user of the pages, with a clone of the repository.
type operator struct {
	*engine

	base, backup string
	site.Client

	player, skin, drawn int

	hash     string            // of the skin that Ann wears
	pictures map[string]string // bodies by path, before anything was restored
}

// An operator installs Veneer, changes settings, runs more of it, upgrades and monitors it, backs it up and restores it. Each step
// goes on where the one before ended.
func TestEngine(t *testing.T) {
	o := &operator{engine: start(t, os.Getenv("TEST_ENGINE")), base: "http://" + stack.FreeAddress(t)}
	o.Base, o.backup = o.base, filepath.Join(o.work, "backup")
	testenv.Do(t, os.Mkdir(o.backup, 0o700))
	for _, step := range []struct {
		name   string
		run    func(t *testing.T)
		isLong bool
	}{
		{"install", o.install, false},
		{"settings", o.settings, true},
		{"secret", o.secret, true},
		{"more of each", o.scale, false},
		{"kill", o.kill, false},
		{"upgrade", o.upgrade, false},
		{"monitor", o.monitor, true},
		{"back up", o.backUp, false},
		{"restore", o.restore, true},
		{"restore from nothing", o.restoreFromNothing, false},
		{"remove", o.remove, false},
	} {
		if step.isLong && testing.Short() {
			continue
		}
		began := time.Now()
		if !t.Run(step.name, step.run) {
			t.Fatal(o.shell(t, "docker compose ps --all; docker compose logs --tail 40"))
		}
		t.Logf("%s: %s", step.name, time.Since(began).Round(time.Second))
	}
}

// set sets variables in .env, as NAME=VALUE.
func (o *operator) set(t *testing.T, variables ...string) {
	t.Helper()
	o.append(t, ".env", variables...)
}

func (o *operator) install(t *testing.T) {
	t.Helper()
	address := strings.TrimPrefix(o.base, "http://")
	o.set(t, "VENEER_LISTEN="+address, "CORE_PUBLIC_URL="+o.base, "VENEER_BACKUP="+o.backup)
	o.append(t, "docker-compose.override.yml", "services:", "  haproxy: {labels: {test: engine}}")
	o.makeMinIO(t, os.Getenv("TEST_ENGINE_MINIO"))
	printed := o.run(t, containers, "install")
	testenv.Check(t, !strings.Contains(printed, "Pulling"), "something was pulled:\n%s", printed)
	o.atTerminal(t, containers, "first-user", password, password)

	o.LogIn(t, email, password)
	texture := o.Upload(t, "Explorer", skin.Classic, artwork.Explorer())
	o.hash = texture.Hash
	o.player, o.skin = o.AddPlayer(t, "Ann"), texture.TID
	o.SetSkin(t, o.player, o.skin)
	o.pictures = map[string]string{}
	for _, path := range []string{"/avatar/player/Ann?png", "/body/player/ann.png", "/textures/" + o.hash, "/helm/Ann/64.png", "/head/player/Ann.webp?size=100&exact"} {
		o.pictures[path] = ""
	}
	o.pictures = o.shown(t)
	for path, picture := range o.pictures {
		testenv.Check(t, len(picture) > 100, "%s is %q", path, picture)
	}
	for _, path := range []string{"/", "/console/", "/api/docs", "/api/yggdrasil"} {
		status, _ := o.Do(t, http.MethodGet, path, nil)
		testenv.Equal(t, status, http.StatusOK, "%s", path)
	}
	for _, path := range []string{"/metrics", "/readyz"} {
		status, _ := o.Do(t, http.MethodGet, path, nil)
		testenv.Equal(t, status, http.StatusNotFound, "%s, from outside", path)
	}
	revision := strings.TrimSpace(o.shell(t, "git describe --always --dirty"))
	for _, image := range []string{"veneer-core", "veneer-edge", "veneer-backup"} {
		label := o.docker(t, "image", "inspect", "--format", `{{index .Config.Labels "org.opencontainers.image.revision"}}`, image)
		testenv.Equal(t, strings.TrimSpace(label), revision, "revision of %s", image)
	}
	t.Log(o.docker(t, "image", "ls", "--format", "{{.Repository}} {{.Size}}"))
	doctor := o.shell(t, "docker compose exec -T core core doctor || true")
	testenv.Check(t, strings.Contains(doctor, "ok       backup") && !strings.Contains(doctor, "\nfailed"), "core doctor:\n%s", doctor)
	t.Log(doctor)
}

// shown returns what the paths of pictures show now.
func (o *operator) shown(t *testing.T) map[string]string {
	t.Helper()
	shown := map[string]string{}
	for path := range o.pictures {
		status, body := o.Do(t, http.MethodGet, path, nil)
		testenv.Equal(t, status, http.StatusOK, "%s", path)
		shown[path] = body
	}
	return shown
}

// edit has the page's editor do this to its file.
func (o *operator) edit(t *testing.T, expression string) {
	t.Helper()
	o.program(t, "editor", "#!/bin/sh\nexec sed -i '"+expression+"' \"$1\"\n")
}

func (o *operator) settings(t *testing.T) {
	t.Helper()
	testenv.Do(t, os.WriteFile(filepath.Join(o.clone, "deploy/compose/site/rules.md"), []byte("Be kind."), 0o644))
	o.edit(t, "s/^#CORE_SITE_PAGES=.*/CORE_SITE_PAGES=\\/etc\\/veneer\\/site/")
	failed := o.underLoad(t, func() { t.Log(o.run(t, containers, "settings")) })
	cmptest.Same(t, failed, none, "requests that failed while a setting was changed")
	_, rules := o.Do(t, http.MethodGet, "/site/rules", nil)
	testenv.Contains(t, rules, "Be kind.", "the rules of the site")

	// What is wrong is said, and the old container goes on.
	o.edit(t, "s/^#CORE_TOKEN_TTL=.*/CORE_TOKEN_TTL=never/")
	failed = o.underLoad(t, func() {
		printed, err := o.try(t, "set +eu\n"+o.blocks(t, containers, "settings"), nil) // as pasted into a shell
		testenv.Check(t, err != nil && strings.Contains(printed, `CORE_TOKEN_TTL is "never"`), "with a wrong setting: %v\n%s", err, printed)
	})
	cmptest.Same(t, failed, none, "requests that failed while a setting was wrong")
	o.edit(t, "s/^#CORE_LOG_SAMPLE_RATE=.*/CORE_LOG_SAMPLE_RATE=1/")
	o.run(t, containers, "settings")
	printed, err := o.try(t, "deploy/replace postgres", nil)
	testenv.Check(t, err != nil && strings.Contains(printed, "postgres cannot run twice"), "a second PostgreSQL: %v\n%s", err, printed)

	// Proxies in front, separated by spaces: the client is the last address that is none of them.
	o.set(t, "VENEER_TRUSTED_PROXIES=10.213.30.1/32 192.0.2.0/24")
	o.shell(t, "deploy/replace core edge && docker compose up --detach --wait")
	httpservertest.Call(t, nil, http.MethodGet, o.base+"/api/docs", http.Header{"X-Forwarded-For": {"203.0.113.77, 192.0.2.9"}}, "")
	testenv.Contains(t, o.shell(t, "docker compose logs core"), `203.0.113.77`, "core's log of a request through two proxies")
}

func (o *operator) secret(t *testing.T) {
	t.Helper()
	o.append(t, "deploy/compose/core.env", "CORE_SMTP_HOST=mail.example.com", "CORE_SMTP_USER=veneer", "CORE_SMTP_FROM=noreply@example.com", "CORE_MAIL_URL="+o.base)
	testenv.Do(t, os.Remove(filepath.Join(o.clone, "deploy/compose/secrets/smtp_password")))
	if printed, err := o.try(t, o.blocks(t, containers, "secret"), strings.NewReader("of the mail server\n")); err != nil {
		t.Fatalf("%s%v", printed, err)
	}
	testenv.Equal(t, o.read(t, "deploy/compose/secrets/smtp_password"), "of the mail server\n", "the secret")
	cmptest.Same(t, o.shown(t), o.pictures, "pictures")
}

func (o *operator) scale(t *testing.T) {
	t.Helper()
	o.set(t, "VENEER_EDGES=3", "VENEER_CORES=2")
	failed := o.underLoad(t, func() { o.shell(t, "docker compose up --detach --wait") })
	cmptest.Same(t, failed, none, "requests that failed while there were more edges and cores")
	ids := append(o.ids(t, "edge"), o.ids(t, "core")...)
	testenv.Equal(t, len(ids), 5, "edges and cores")
	for _, id := range ids {
		address := strings.TrimSpace(o.docker(t, "inspect", "--format", `{{.NetworkSettings.Networks.veneer_front.IPAddress}}`, id))
		testenv.Eventually(t, address+" serves", func() bool {
			for i := range 50 {
				o.Do(t, http.MethodGet, fmt.Sprint("/avatar/user/", 1000+i), nil)
				o.Do(t, http.MethodGet, "/api/user", nil)
			}
			return served.MatchString(o.get(t, "http://"+address+":9080/metrics", "http://"+address+":9081/metrics"))
		})
	}
}

func (o *operator) kill(t *testing.T) {
	t.Helper()
	services := []string{"core", "edge", "minio", "backup", "postgres", "haproxy"}
	for _, service := range services {
		failed := o.underLoad(t, func() { o.killFirst(t, service) })
		t.Logf("%s killed: %v failed", service, failed)
		if service != "haproxy" {
			testenv.Equal(t, failed["picture"], 0, "pictures that failed when %s was killed", service)
		}
		if service != "haproxy" && service != "postgres" {
			testenv.Equal(t, failed["API"], 0, "requests of the API that failed when %s was killed", service)
		}
		testenv.Check(t, failed["picture"]+failed["API"] < 200, "requests failed for five seconds when %s was killed", service)
	}
	o.killFirst(t, services...)
	cmptest.Same(t, o.shown(t), o.pictures, "pictures after all were killed")
}

// killFirst kills a container of each service, as a fault does, and waits until all are healthy again.
func (o *operator) killFirst(t *testing.T, services ...string) {
	t.Helper()
	killed := map[string]int{}
	for _, service := range services {
		id := o.ids(t, service)[0]
		killed[id] = o.pid(t, id)
		testenv.Do(t, syscall.Kill(killed[id], syscall.SIGKILL))
	}
	for id, pid := range killed {
		testenv.Eventually(t, id+" is started again", func() bool { now := o.pid(t, id); return now != 0 && now != pid })
	}
	o.awaitHealthy(t)
}

func (o *operator) upgrade(t *testing.T) {
	t.Helper()
	o.git(t, o.origin, "commit", "--quiet", "--allow-empty", "--message", "next release")
	before := o.shell(t, "docker compose exec -T core core version")
	failed := o.underLoad(t, func() { o.run(t, upgrades, "compose-upgrade") })
	cmptest.Same(t, failed, none, "requests that failed during an upgrade")
	if after := o.shell(t, "docker compose exec -T core core version"); after == before {
		t.Errorf("the version is as before: %s", after)
	}

	// haproxy reads its file again without a lost connection, and Docker still restarts it.
	o.append(t, "deploy/compose/haproxy.cfg", "# new")
	failed = o.underLoad(t, func() { o.shell(t, o.named(t, upgrades, "kill -HUP 1")) })
	cmptest.Same(t, failed, none, "requests that failed while haproxy was reloaded")
	o.killFirst(t, "haproxy")
	o.shell(t, o.named(t, upgrades, "restart --timeout"))
	o.awaitHealthy(t)
	o.git(t, o.clone, "checkout", "--quiet", ".") // else the next images have another revision
}

func (o *operator) monitor(t *testing.T) {
	t.Helper()
	address := stack.FreeAddress(t)
	_, port := stack.HostPort(address)
	o.set(t, "COMPOSE_PROFILES=monitoring", "VENEER_PROMETHEUS_PORT="+port)
	o.append(t, "docker-compose.override.yml", "  grafana: {profiles: !override [unused]}") // Debian has no package of it
	o.shell(t, "docker compose up -d")
	testenv.Eventually(t, "Prometheus has found cores and edges", func() bool {
		jobs, _ := stack.Prometheus(address).AwaitHealthy(t)
		return maps.Equal(jobs, map[string]bool{"veneer-core": true, "veneer-edge": true})
	})
}

func (o *operator) backUp(t *testing.T) {
	t.Helper()
	o.run(t, backups, "compose-backup")
	textures := filepath.Join(o.backup, "textures")
	file := filepath.Join(textures, o.hash[:2], o.hash+".png")
	content := testenv.Must(os.ReadFile(file))(t)
	refuses := func(what string) {
		t.Helper()
		printed, err := o.try(t, "docker compose exec -T backup core backup verify /backup", nil)
		testenv.Check(t, err != nil && strings.Contains(printed, o.hash), "a backup with a file %s: %v\n%s", what, err, printed)
	}
	testenv.Do(t, os.Truncate(file, 10))
	refuses("truncated")
	testenv.Do(t, os.Remove(file))
	refuses("removed")
	testenv.Do(t, os.Chown(filepath.Dir(file), 1000, 1000))
	printed, err := o.try(t, "docker compose exec -T backup core backup /backup", nil)
	testenv.Check(t, err != nil && strings.Contains(printed, "permission denied"), "a backup into a folder of another user: %v\n%s", err, printed)
	testenv.Do(t, os.Chown(filepath.Dir(file), 0, 0))
	o.run(t, backups, "compose-backup")
	testenv.Equal(t, string(testenv.Must(os.ReadFile(file))(t)), string(content), "the file in the next backup")
}

// wantRestored checks that the site is as it was when it was backed up.
func (o *operator) wantRestored(t *testing.T) {
	t.Helper()
	status, _ := o.Do(t, http.MethodGet, "/api/user", nil)
	testenv.Equal(t, status, http.StatusUnauthorized, "with a token from before")
	testenv.Eventually(t, "the edges have forgotten what came later", func() bool {
		status, _ := o.Do(t, http.MethodGet, "/avatar/player/Late", nil)
		return status == http.StatusNotFound
	})
	cmptest.Same(t, o.shown(t), o.pictures, "pictures")
	o.LogIn(t, email, password)
}

func (o *operator) restore(t *testing.T) {
	t.Helper()
	tid := o.Upload(t, "Ranger", skin.Slim, artwork.Ranger()).TID
	o.SetSkin(t, o.AddPlayer(t, "Late"), tid)
	testenv.Eventually(t, "a player has a picture", func() bool {
		status, _ := o.Do(t, http.MethodGet, "/avatar/player/Late", nil)
		return status == http.StatusOK
	})
	failed := o.underLoad(t, func() { o.run(t, backups, "compose-restore") })
	testenv.Equal(t, failed["picture"], 0, "pictures that failed during a restore")
	o.wantRestored(t)
}

func (o *operator) restoreFromNothing(t *testing.T) {
	t.Helper()
	o.shell(t, o.named(t, containers, "down --volumes"))
	// Other projects have taken all networks that Docker gives out first.
	for i := range 16 {
		o.docker(t, "network", "create", fmt.Sprint("other-", i))
	}
	o.run(t, backups, "compose-restore")
	o.wantRestored(t)
}

func (o *operator) remove(t *testing.T) {
	t.Helper()
	o.shell(t, o.named(t, containers, "down --volumes"))
	testenv.Equal(t, o.docker(t, "ps", "--all", "--quiet"), "", "containers that are left")
	testenv.Equal(t, o.docker(t, "volume", "ls", "--quiet"), "", "volumes that are left")
	testenv.Check(t, len(testenv.Must(os.ReadDir(o.backup))(t)) > 0, "the backups are gone")
}

// none are requests that failed, when none did.
var none = map[string]int{"picture": 0, "new picture": 0, "API": 0, "write": 0}

// served matches the metrics of a program that has answered requests.
var served = regexp.MustCompile(`(?m)^veneer_requests_total\{.*listener="public".*status="2xx".*\} [1-9]`)

// underLoad requests pictures and the API up to twenty times a second while work is done, and writes every two seconds. It returns how
// many failed.
func (o *operator) underLoad(t *testing.T, work func()) map[string]int {
	t.Helper()
	failed, sent, slowest := maps.Clone(none), 0, time.Duration(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
			select {
			case <-stop:
				tick.Stop()
				return
			default:
			}
			sent++
			o.drawn++
			for what, path := range map[string]string{
				"picture": "/avatar/player/Ann?png", "new picture": fmt.Sprintf("/body/player/Ann.png?height=%d&width=%d&exact", 100+o.drawn%300, 60+o.drawn/300%80),
				"API": "/api/user", "write": fmt.Sprintf("/api/players/%d/textures", o.player),
			} {
				method, contentType, body := http.MethodGet, "", []byte(nil)
				if what == "write" {
					if o.drawn%40 != 0 { // a user may change something once a second
						continue
					}
					method, contentType, body = http.MethodPut, "application/json", fmt.Appendf(nil, `{"skin":%d}`, o.skin)
				}
				began := time.Now()
				status, body, err := o.Try(t.Context(), method, path, contentType, body)
				slowest = max(slowest, time.Since(began))
				if err != nil || status != http.StatusOK {
					if failed[what]++; failed[what] <= 3 {
						t.Logf("%s %s: %d %.100s %v", time.Now().Format("15:04:05.000"), path, status, body, err)
					}
				}
			}
		}
	}()
	work()
	close(stop)
	<-stopped
	testenv.Check(t, sent > 0, "no request was sent")
	t.Logf("%d requests each, the slowest took %s", sent, slowest.Round(time.Millisecond))
	return failed
}

// get returns the body of the first URL that answers.
func (o *operator) get(t *testing.T, urls ...string) string {
	t.Helper()
	for _, url := range urls {
		request := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
		if response, err := http.DefaultClient.Do(request); err == nil {
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			return string(body)
		}
	}
	return ""
}

// ids returns the containers of a service, sorted.
func (o *operator) ids(t *testing.T, service string) []string {
	t.Helper()
	ids := strings.Fields(o.docker(t, "ps", "--quiet", "--filter", "label=com.docker.compose.service="+service))
	testenv.Check(t, len(ids) > 0, "%s does not run", service)
	slices.Sort(ids)
	return ids
}
