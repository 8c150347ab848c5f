//go:build engine

package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// top is the root of the repository.
const top = "../../.."

// engine is a Docker Engine of this test with a clone of the repository. The engine's data, images among them, and
// Debian's files are kept in a directory for the next run.
type engine struct {
	directory, work string
	origin, clone   string // the clone's remote repository, and the clone
	programs        string // what the operator has besides: docker, editor
	environ         []string
}

// start starts an engine with the images that the Dockerfiles begin with, and makes a clone.
func start(t *testing.T, directory string) *engine {
	t.Helper()
	for _, program := range []string{"dockerd", "docker", "debootstrap", "iptables"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			testenv.Skip(t, program+" and root are needed: deploy/dev/engine installs it")
		}
	}
	directory = testenv.Must(filepath.Abs(directory))(t)
	e := &engine{directory: directory, work: filepath.Join(directory, "work")}
	if err := exec.CommandContext(t.Context(), "pidof", "dockerd").Run(); err == nil {
		testenv.Skip(t, "another Docker Engine runs, whose network a second one would change")
	}
	// What a run that was killed has mounted.
	_ = exec.CommandContext(t.Context(), "sh", "-c", `grep -F " $0/" /proc/mounts | cut -d " " -f 2 | xargs -r umount --lazy`, e.work).Run()
	testenv.Do(t, os.RemoveAll(e.work))
	e.origin, e.clone, e.programs = filepath.Join(e.work, "origin"), filepath.Join(e.work, "veneer"), filepath.Join(e.work, "programs")
	for _, made := range []string{e.origin, e.programs} {
		testenv.Do(t, os.MkdirAll(made, 0o755))
	}
	e.environ = append(os.Environ(), "DOCKER_HOST=unix://"+filepath.Join(e.work, "socket"), "DOCKER_BUILDKIT=1", "PATH="+e.programs+":"+os.Getenv("PATH"))
	e.startDaemon(t)
	const trixie = "trixie"
	made := make(chan error, 1)
	go func() { made <- e.debian(t.Context(), trixie, "--include=docker-cli,docker-compose,ca-certificates") }() // mostly the network's time
	e.makeImages(t)
	testenv.Do(t, <-made)
	e.makeCompose(t, filepath.Join(e.directory, trixie))

	// The working tree is the remote repository, so that what is not yet committed is tested, too.
	e.command(t, top, "git ls-files --cached --others --exclude-standard -z | tar --null --files-from=- --create | tar --extract --directory="+e.origin)
	e.git(t, e.origin, "init", "--quiet")
	e.git(t, e.origin, "add", "--all")
	e.git(t, e.origin, "commit", "--quiet", "--message", "this release")
	testenv.Do(t, os.RemoveAll(e.clone)) // which dockerd makes for containers of a run that was killed
	e.git(t, e.work, "clone", "--quiet", e.origin, e.clone)
	return e
}

func (e *engine) startDaemon(t *testing.T) {
	t.Helper()
	log := testenv.Must(os.Create(filepath.Join(e.directory, "dockerd.log")))(t)
	daemon := exec.CommandContext(context.WithoutCancel(t.Context()), "dockerd", "--data-root", filepath.Join(e.directory, "data"), "--exec-root", filepath.Join(e.work, "exec"),
		"--pidfile", filepath.Join(e.work, "pid"), "--host", "unix://"+filepath.Join(e.work, "socket"))
	daemon.Stdout, daemon.Stderr = log, log
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	testenv.Do(t, daemon.Start())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	t.Cleanup(func() {
		_, _ = e.execute(context.WithoutCancel(t.Context()), e.work, "docker ps --all --quiet | xargs -r docker rm --force --volumes; docker network prune --force; docker volume prune --force", nil)
		_ = daemon.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = log.Close()
	})
	testenv.Eventually(t, "the engine answers", func() bool {
		select {
		case err := <-ended:
			ended <- err
			testenv.Skip(t, fmt.Sprintf("no engine starts here: %v\n%s", err, testenv.Must(os.ReadFile(log.Name()))(t)))
		default:
		}
		_, err := e.execute(t.Context(), e.work, "docker version", nil)
		return err == nil
	})
	// What a run that was killed has left.
	e.command(t, e.work, "docker ps --all --quiet | xargs -r docker rm --force --volumes; docker network prune --force; docker volume ls --quiet | xargs -r docker volume rm")
}

// debian makes a directory with the files of a release of Debian.
func (e *engine) debian(ctx context.Context, release, packages string) error {
	if _, err := os.Stat(filepath.Join(e.directory, release)); err == nil {
		return nil
	}
	printed, err := e.execute(ctx, e.directory, fmt.Sprintf("rm -rf new.%[1]s && debootstrap --variant=minbase %[2]s %[1]s new.%[1]s && "+
		"rm -rf new.%[1]s/var/lib/apt/lists/* new.%[1]s/var/cache/apt/archives/*.deb && mv new.%[1]s %[1]s", release, packages), nil)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", release, err, printed)
	}
	return nil
}

// makeImages makes what stands in for the images of a registry, from Debian's packages, under the names that the files of
// the repository have. Proxies of Go and apt come from the environment.
func (e *engine) makeImages(t *testing.T) {
	t.Helper()
	names := map[string]string{}
	for _, file := range []string{"docker-compose.yml", "deploy/core.Dockerfile"} {
		content := testenv.Must(os.ReadFile(filepath.Join(top, file)))(t)
		for _, match := range regexp.MustCompile(`(?m)^(?:FROM| +image:) (?:\w+/)?((\w+):\S+)`).FindAllSubmatch(content, -1) {
			names[string(match[2])] = regexp.MustCompile(`\S+$`).FindString(strings.TrimSuffix(string(match[0]), " AS build"))
		}
	}
	const path = "--change 'ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' --change 'CMD [\"bash\"]'"
	imported := func(name, script string) {
		t.Helper()
		if _, err := e.execute(t.Context(), e.work, "docker image inspect "+names[name], nil); err != nil {
			e.command(t, ".", script)
		}
	}
	testenv.Do(t, e.debian(t.Context(), "bookworm", ""))
	files := filepath.Join(e.directory, "bookworm")
	imported("debian", "tar --directory="+files+" --create . | docker import "+path+" - "+names["debian"])
	root := strings.TrimSpace(e.command(t, top, "go env GOROOT"))
	proxies := ""
	for _, name := range []string{"GOPROXY", "GONOSUMDB", "GOSUMDB", "http_proxy", "https_proxy", "no_proxy"} {
		if value := strings.TrimSpace(e.command(t, top, "go env "+name+" || true; echo \"${"+name+":-}\"")); value != "" {
			proxies += fmt.Sprintf(" --change 'ENV %s=%s'", name, strings.Fields(value)[0])
		}
	}
	imported("golang", fmt.Sprintf(`tar --create --transform='s,^%s/,./usr/local/go/,' --transform='s,^ca-certificates.crt$,./etc/ssl/certs/ca-certificates.crt,' \
		--directory=%s . --directory=%s %s --directory=/etc/ssl/certs ca-certificates.crt | docker import %s --change 'ENV GOPATH=/go GOTOOLCHAIN=local' %s - %s`,
		filepath.Base(root), files, filepath.Dir(root), filepath.Base(root), path, proxies, names["golang"]))
	for _, name := range []string{"postgres", "haproxy", "prometheus"} {
		testenv.Check(t, names[name] != "", "no file names an image of %s", name)
		e.command(t, ".", fmt.Sprintf("DOCKER_BUILDKIT=0 docker build --build-arg http_proxy --build-arg https_proxy --build-arg DEBIAN=%s --tag %s --file standins/%s.Dockerfile standins", names["debian"], names[name], name))
	}
}

// makeMinIO makes the image of MinIO of programs in a directory, which takes four minutes less than compiling them.
func (e *engine) makeMinIO(t *testing.T, programs string) {
	t.Helper()
	if programs == "" {
		return
	}
	_, last, _ := strings.Cut(e.read(t, "deploy/minio.Dockerfile"), "\n\n")
	last = strings.ReplaceAll(strings.ReplaceAll(last, "--from=build /veneer/.dev/bin/", ""), "@*", "")
	last = strings.Replace(last, "--from=build /etc/ssl/certs/", "", 1)
	context := filepath.Join(e.work, "minio")
	testenv.Do(t, os.Mkdir(context, 0o755))
	testenv.Do(t, os.WriteFile(filepath.Join(context, "Dockerfile"), []byte(last), 0o600))
	e.command(t, context, "mkdir deploy && cp -L "+programs+"/minio "+programs+"/mc /etc/ssl/certs/ca-certificates.crt . && cp -r "+e.clone+"/deploy/minio deploy && DOCKER_BUILDKIT=0 docker build --tag veneer-minio .")
	e.append(t, "docker-compose.override.yml", "  minio: {build: !reset null}")
}

// makeCompose makes the operator's docker command: the client and Compose of Debian 13, which sees the engine's socket
// and the operator's files at the same paths.
func (e *engine) makeCompose(t *testing.T, files string) {
	t.Helper()
	e.program(t, "compose", `#!/bin/bash -e
mkdir -p "$1$2"
mount --bind "$2" "$1$2"
cd / && exec env PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$1" sh -c 'cd "$0" && exec docker "$@"' "$3" "${@:4}"
`)
	e.program(t, "docker", fmt.Sprintf(`#!/bin/bash -e
# Compose has a view of the files of its own, in which it is mounted.
if [[ $1 != compose ]]; then exec %s "$@"; fi
exec unshare --mount bash %s/compose %s %s "$PWD" "$@"
`, testenv.Must(exec.LookPath("docker"))(t), e.programs, files, e.work))
}

func (e *engine) program(t *testing.T, name, content string) {
	t.Helper()
	testenv.Do(t, os.WriteFile(filepath.Join(e.programs, name), []byte(content), 0o755))
}

// execute runs a script in a directory and returns what it prints.
func (e *engine) execute(ctx context.Context, directory, script string, stdin io.Reader) (string, error) {
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	shell.Dir, shell.Env, shell.Stdin = directory, e.environ, stdin
	printed, err := shell.CombinedOutput()
	return string(printed), err
}

func (e *engine) command(t *testing.T, directory, script string) string {
	t.Helper()
	printed, err := e.execute(t.Context(), directory, script, nil)
	if err != nil {
		t.Fatalf("%s\n%s: %v", printed, script, err)
	}
	return printed
}

// try runs a script in the clone.
func (e *engine) try(t *testing.T, script string, stdin io.Reader) (string, error) {
	t.Helper()
	return e.execute(t.Context(), e.clone, script, stdin)
}

func (e *engine) shell(t *testing.T, script string) string {
	t.Helper()
	return e.command(t, e.clone, script)
}

func (e *engine) docker(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(e.programs, "docker"), arguments...)
	command.Env = e.environ
	return stack.MustRun(t, command)
}

func (e *engine) git(t *testing.T, directory string, arguments ...string) {
	t.Helper()
	stack.MustRun(t, exec.CommandContext(t.Context(), "git", append([]string{"-C", directory, "-c", "user.name=Veneer", "-c", "user.email=veneer@example.com"}, arguments...)...))
}

// blocks returns the commands of a page that have a label.
func (e *engine) blocks(t *testing.T, page, label string) (commands string) {
	t.Helper()
	for _, b := range stack.Blocks(t, top, page) {
		if strings.Join(b.Labels, " ") == label {
			commands += b.Commands
		}
	}
	testenv.Check(t, commands != "", "%s has no commands for %s", page, label)
	return commands
}

// run runs the commands of a page that have a label.
func (e *engine) run(t *testing.T, page, label string) string {
	t.Helper()
	return e.shell(t, e.blocks(t, page, label))
}

// named returns the command in a page's text that has a part.
func (e *engine) named(t *testing.T, page, part string) string {
	t.Helper()
	for _, match := range regexp.MustCompile("`(docker compose [^`]+)`").FindAllStringSubmatch(e.read(t, page), -1) {
		if strings.Contains(match[1], part) {
			return match[1]
		}
	}
	t.Fatalf("%s has no command with %s", page, part)
	return ""
}

// atTerminal runs the commands of a page at a terminal, and answers each question.
func (e *engine) atTerminal(t *testing.T, page, label string, answers ...string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "script", "--quiet", "--return", "--flush", "--command", e.blocks(t, page, label), "/dev/null")
	shell.Dir, shell.Env = e.clone, append(slices.Clone(e.environ), "SHELL=/bin/bash")
	stdin, stdout := testenv.Must(shell.StdinPipe())(t), testenv.Must(shell.StdoutPipe())(t)
	testenv.Do(t, shell.Start())
	var printed bytes.Buffer
	for buffer := make([]byte, 1); ; {
		if _, err := stdout.Read(buffer); err != nil {
			break
		}
		printed.Write(buffer)
		if len(answers) > 0 && bytes.HasSuffix(printed.Bytes(), []byte(": ")) {
			_ = testenv.Must(io.WriteString(stdin, answers[0]+"\r"))(t)
			answers = answers[1:]
		}
	}
	if err := shell.Wait(); err != nil || len(answers) > 0 {
		t.Fatalf("%v, unanswered %d:\n%s", err, len(answers), printed.String())
	}
}

func (e *engine) read(t *testing.T, path string) string {
	t.Helper()
	return string(testenv.Must(os.ReadFile(filepath.Join(e.clone, path)))(t))
}

// append appends lines to a file of the clone.
func (e *engine) append(t *testing.T, path string, lines ...string) {
	t.Helper()
	file := testenv.Must(os.OpenFile(filepath.Join(e.clone, path), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(t)
	_ = testenv.Must(file.WriteString(strings.Join(lines, "\n") + "\n"))(t)
	testenv.Do(t, file.Close())
}

// pid returns the process of a container; 0 if it has none.
func (e *engine) pid(t *testing.T, id string) int {
	t.Helper()
	return testenv.Must(strconv.Atoi(strings.TrimSpace(e.docker(t, "inspect", "--format", "{{.State.Pid}}", id))))(t)
}

// awaitHealthy waits until all containers that run are healthy, of those that have a check.
func (e *engine) awaitHealthy(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, "all are healthy", func() bool {
		printed := e.docker(t, "ps", "--format", "{{.Status}}")
		return !strings.Contains(printed, "health: starting") && !strings.Contains(printed, "unhealthy") && !strings.Contains(printed, "Restarting")
	})
}
