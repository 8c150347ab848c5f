package main

import (
	"context"
	_ "embed" // for nginx.conf
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// patience is how long a server may take until it answers.
const patience = 30 * time.Second

// process is a server that is measured, alone on its processor.
type process struct {
	command *exec.Cmd
	log     string // path of what it says
}

// start starts a server on one processor. It gets nothing of this program's
// environment but the path, and does not outlive it.
func start(cpu int, log string, in io.Reader, environ []string, command ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	p := &process{exec.Command("taskset", append([]string{"-c", strconv.Itoa(cpu)}, command...)...), log} //nolint:noctx // stop ends it
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environ...)
	p.command.Stdin, p.command.Stdout, p.command.Stderr = in, out, out
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) stop() {
	_ = p.command.Process.Kill() // nothing it knows is worth keeping
	_ = p.command.Wait()
}

// await waits until what is asked answers.
func (p *process) await(ctx context.Context, ask func() error) error {
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(p.log)
			return fmt.Errorf("%s does not answer: %w; it says:\n%s", p.command.Args[3], err, said)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// processorTime returns what all threads of the process have taken, to the
// nanosecond.
func (p *process) processorTime() (time.Duration, error) {
	// The clock of another process, as clock_getcpuclockid(3) makes it.
	clock := int32(^p.command.Process.Pid<<3 | 2)
	var taken unix.Timespec
	if err := unix.ClockGettime(clock, &taken); err != nil {
		return 0, fmt.Errorf("read the processor time of a server: %w", err)
	}
	return time.Duration(taken.Nano()), nil
}

// freeAddress returns an address of loopback at which nothing listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// freeAddresses returns two of them.
func freeAddresses() (first, second string, err error) {
	if first, err = freeAddress(); err != nil {
		return "", "", err
	}
	second, err = freeAddress()
	return first, second, err
}

// listens reports whether something does at an address.
func listens(address string) error {
	conn, err := net.Dial("tcp", address) //nolint:noctx // to loopback, where nothing waits
	if err != nil {
		return err
	}
	return conn.Close()
}

// startEdge starts the edge with its defaults: nothing is set but what has none,
// and where it listens.
func startEdge(ctx context.Context, cpu int, binary, work, textures, core string) (*rival, error) {
	public, operators, err := freeAddresses()
	if err != nil {
		return nil, err
	}
	p, err := start(cpu, filepath.Join(work, "edge.log"), nil, []string{
		"EDGE_LISTEN=" + public, "EDGE_OPS_LISTEN=" + operators,
		"EDGE_CORE_URL=" + core, "EDGE_CORE_SECRETS=" + secret, "EDGE_OBJECTS_URL=file://" + textures,
	}, binary, "serve")
	if err != nil {
		return nil, err
	}
	edge := &rival{name: "edge", process: p, full: public, unmodified: public, target: func(a *answer) string { return a.Target }}
	return edge, p.await(ctx, func() error {
		health := exec.CommandContext(ctx, binary, "health")
		health.Env = []string{"EDGE_OPS_LISTEN=" + operators}
		return health.Run()
	})
}

// startBare starts this program again, as the bare server.
func startBare(ctx context.Context, cpu int, work string, r *record) (*rival, error) {
	full, unmodified, err := freeAddresses()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p, err := start(cpu, filepath.Join(work, "bare.log"), in, nil, self, bareRole, full, unmodified)
	if err = errors.Join(err, in.Close()); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	rival := &rival{name: "bare", process: p, full: full, unmodified: unmodified, target: func(a *answer) string { return a.Target }}
	if err = gob.NewEncoder(out).Encode(r); err != nil {
		err = fmt.Errorf("hand the record to the bare server: %w", err)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return rival, err
	}
	return rival, p.await(ctx, func() error { return errors.Join(listens(full), listens(unmodified)) })
}

// startNginx starts nginx over one of the directories of writeFiles.
func startNginx(ctx context.Context, cpu int, work, directory string, open int, target func(*answer) string, r *record) (*rival, error) {
	full, unmodified, err := freeAddresses()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(work, directory+".conf")
	if err := os.WriteFile(config, []byte(nginxConfig(full, unmodified, work, directory, open, typical(r.Full).Headers)), 0o600); err != nil {
		return nil, err
	}
	p, err := start(cpu, filepath.Join(work, directory+".log"), nil, nil, "nginx", "-c", config)
	if err != nil {
		return nil, err
	}
	rival := &rival{name: "nginx, " + directory, process: p, full: full, unmodified: unmodified, ownTags: true, target: target}
	return rival, p.await(ctx, func() error { return errors.Join(listens(full), listens(unmodified)) })
}

// The directories that nginx serves.
const (
	byAddress = "by address" // a file for every address
	byBody    = "by body"    // a file for every different body
)

// addressFile returns the path of an answer's file by address. It is as long as the
// address.
func addressFile(a *answer) string { return strings.ReplaceAll(a.Target, "?", ",") }

// bodyFile returns the path of an answer's file by body, followed by a query that
// nginx does not look at: so the request is as long as that for the address.
func bodyFile(a *answer) string {
	file := fmt.Sprintf("/%05d?", a.Body)
	return file + a.Target[min(len(file), len(a.Target)):]
}

// writeFiles writes the directories that nginx serves. Equal bodies are one file in
// both, whatever it is called.
func writeFiles(work string, r *record) error {
	body := func(number int) string { return filepath.Join(work, byBody, fmt.Sprintf("%05d", number)) }
	if err := os.Mkdir(filepath.Join(work, byBody), 0o700); err != nil {
		return err
	}
	for i := range r.Bodies {
		if err := os.WriteFile(body(i), r.Bodies[i], 0o600); err != nil {
			return err
		}
	}
	for i := range r.Full {
		name := filepath.Join(work, byAddress, addressFile(&r.Full[i]))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.Link(body(r.Full[i].Body), name); err != nil {
			return err
		}
	}
	return nil
}

//go:embed nginx.conf
var nginxConf string

// nginxConfig returns a configuration of one process that does as little as can
// be: it keeps files open, and adds no header that it can be kept from adding. What
// the headers say is the same for all files, and as long as it is on average.
func nginxConfig(full, unmodified, work, directory string, open int, headers []header) string {
	var added, tag, mime string
	for _, h := range headers {
		line := fmt.Sprintf("add_header %s %s;\n", h.Name, strconv.Quote(h.Value))
		switch h.Name {
		case fasthttp.HeaderContentType:
			mime = h.Value
		case etag:
			tag = line
		default:
			added += line
		}
	}
	return strings.NewReplacer(
		"{full}", full, "{unmodified}", unmodified, "{work}", work, "{directory}", directory, "{open}", strconv.Itoa(open),
		"{type}", mime, "{headers}", added, "{etag}", tag,
	).Replace(nginxConf)
}

// mayOpen lets the servers that are started open as many files as the machine
// allows, and returns how many of those nginx can keep open for itself.
func mayOpen() (files int, err error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	limit.Cur = limit.Max
	const others = 1024 // connections first of all
	// Once it is set here it holds for those who are started, too.
	return int(min(limit.Max, math.MaxInt32)) - others, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
