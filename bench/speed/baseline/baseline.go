// Package rivals starts what people would otherwise use, so that Veneer is measured
// beside it on the same machine in the same run: servers that hold the same answers,
// caches in front of the edge, and programs that draw avatars the way people write
// them themselves. Each comes from where its users get it and is started as they would
// run it, on loopback, with its log in a file. What is not installed is a
// MissingError, which says how to install it.
package baseline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/veneer-skins/veneer/bench/loopback"
)

// Env is where a server runs.
type Env struct {
	// CPUs are the processors that it may use; all if there are none.
	CPUs []int
	// WorkDir is a directory in which it makes one of its own. Who made it removes it.
	WorkDir string
}

// mkdir makes a directory for one server.
func (p Env) mkdir(name string) (string, error) { return os.MkdirTemp(p.WorkDir, name+"-") }

// writeFile makes a directory for one server and a file in it, whose path it returns.
func (p Env) writeFile(server, name, content string) (path string, err error) {
	directory, err := p.mkdir(server)
	if err != nil {
		return "", err
	}
	path = filepath.Join(directory, name)
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// Server is a server that is measured. It runs until Stop.
type Server struct {
	// Name is what tables call it, Version what the program says that it is.
	Name, Version string
	// Address is the host and port where requests go; Conditional, where those go
	// that name an entity tag. Mostly they are the same.
	Address, Conditional string
	// TLS says that it is spoken to by TLS, with a certificate that nothing vouches for.
	TLS bool
	// OwnTags says that its entity tags are not the edge's, or that it has headers of
	// its own.
	OwnTags bool
	*Process

	target      func(*Answer) string
	unsupported func(View) string
}

// Target returns what the server is asked for in the place of an answer's target.
func (s *Server) Target(a *Answer) string {
	if s.target == nil {
		return a.Target
	}
	return s.target(a)
}

// Unsupported returns why the server cannot draw a view, to which it answers 404; empty if
// it can.
func (s *Server) Unsupported(v View) string {
	if s.unsupported == nil {
		return ""
	}
	return s.unsupported(v)
}

// awaitListening returns the server once it listens. One that does not is stopped.
func (s *Server) awaitListening(ctx context.Context) (*Server, error) {
	if s.Conditional == "" {
		s.Conditional = s.Address
	}
	if err := s.Await(ctx, func() error {
		if err := dial(s.Address); err != nil {
			return err
		}
		return dial(s.Conditional)
	}); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Roles of this program, as its first argument.
const (
	fasthttpRole = "rival-bare"
	imagePNGRole = "rival-image-png"
	argon2Role   = "rival-hash"
	reencodeRole = "rival-keep"
)

// startSelf starts this program again with arguments, of which the last are told where to
// listen.
func startSelf(ctx context.Context, env Env, name string, program Program, arguments func(address string) ([]string, error)) (*Server, error) {
	version, err := program.Version(ctx)
	if err != nil {
		return nil, err
	}
	address, err := loopback.FreeAddress()
	if err != nil {
		return nil, err
	}
	args, err := arguments(address)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := Run(env, name, nil, nil, append([]string{self}, args...)...)
	if err != nil {
		return nil, err
	}
	return (&Server{Name: program.Name, Version: version, Process: p, Address: address}).awaitListening(ctx)
}

// ServeRole has this program be one of the rivals that are written in Go, if its
// arguments, without its name, ask for that. StartFasthttp, StartImagePNG, StartArgon2 and
// StartReencode start the running program once more, so whoever calls them calls Serve before
// all else.
func ServeRole(args []string) (isRole bool, err error) {
	switch {
	case len(args) == 5 && args[0] == fasthttpRole:
		return true, serveFasthttp(os.Stdin, args[1], args[2], args[3], args[4])
	case len(args) == 3 && args[0] == imagePNGRole:
		return true, serveImagePNG(args[1], args[2])
	case len(args) == 2 && args[0] == argon2Role:
		return true, serveArgon2(args[1])
	case len(args) == 3 && args[0] == reencodeRole:
		return true, serveReencode(args[1], args[2])
	default:
		return false, nil
	}
}

// MissingError says that a program is not there to be measured beside.
type MissingError struct {
	What    string // the program
	Install string // how to install it
	Cause   error  // why it does not count as installed, if not for being absent
}

// Error says what is missing, why, and how to install it.
func (e *MissingError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s is missing (%v); to install it: %s", e.What, e.Cause, e.Install)
	}
	return fmt.Sprintf("%s is not installed; to install it: %s", e.What, e.Install)
}

// Unwrap returns the cause.
func (e *MissingError) Unwrap() error { return e.Cause }
