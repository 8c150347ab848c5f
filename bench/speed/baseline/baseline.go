// Package baseline starts the usual alternatives, so that Veneer is compared with them on the same
// machine in the same run: servers with the same responses, caches in front of the edge, and typical
// hand-written avatar servers. Each is installed the way its users do it and runs as they would run
// it, on loopback, with its log in a file. What is not installed is a MissingError, which says how
// to install it.
package baseline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/veneer-skins/veneer/bench/loopback"
)

// Env is the environment of a server.
type Env struct {
	// CPUs are the processors that it may use; all if empty.
	CPUs []int
	// WorkDir is a directory in which it creates one of its own. The caller removes it.
	WorkDir string
}

// mkdir creates a directory for one server.
func (e Env) mkdir(name string) (string, error) { return os.MkdirTemp(e.WorkDir, name+"-") }

// writeFile creates a directory for one server and a file in it. It returns the file's path.
func (e Env) writeFile(server, name, content string) (path string, err error) {
	directory, err := e.mkdir(server)
	if err != nil {
		return "", err
	}
	path = filepath.Join(directory, name)
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// Server is a server under test. It runs until Stop.
type Server struct {
	// Name is for tables, Version what the program reports.
	Name, Version string
	// Address is the host and port for requests; Conditional, for those with If-None-Match.
	// Mostly they are the same.
	Address, Conditional string
	// TLS: it uses TLS, with a self-signed certificate.
	TLS bool
	// OwnTags: its entity tags are not the edge's, or it has additional headers.
	OwnTags bool
	*Process

	target      func(*Response) string
	unsupported func(View) string
}

// Target returns the server's request target for a response.
func (s *Server) Target(a *Response) string {
	if s.target == nil {
		return a.Target
	}
	return s.target(a)
}

// Unsupported returns why the server cannot render a view, for which it answers 404; empty if it
// can.
func (s *Server) Unsupported(v View) string {
	if s.unsupported == nil {
		return ""
	}
	return s.unsupported(v)
}

// awaitListening returns the server once it listens, and stops it if it does not.
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
	fasthttpRole = "baseline-fasthttp"
	imagePNGRole = "baseline-image-png"
	argon2Role   = "baseline-argon2"
	reencodeRole = "baseline-reencode"
)

// startSelf starts this program again with arguments, which are made for a listen address.
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

// ServeRole runs this program as one of the baselines written in Go, if its arguments, without its
// name, say so. StartFasthttp, StartImagePNG, StartArgon2 and StartReencode start the running
// program again, so a program that calls them must call ServeRole first of all.
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

// MissingError says that a program to compare with is not installed.
type MissingError struct {
	What    string // the program
	Install string // how to install it
	Cause   error  // why it does not count as installed; nil if it is absent
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
