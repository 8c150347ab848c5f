// Package baseline starts the usual alternatives, so that Veneer is compared with them on the same
// machine in the same run: servers with the same responses, caches in front of the edge, and typical
// hand-written avatar servers. Each is installed the way its users do it and runs as they would run
// it, on loopback, with its log in a file. Program.Version says whether it is installed.
package baseline

import (
	"fmt"
	"os"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Server is a server under test. It ends with the test.
type Server struct {
	// Name is for messages.
	Name string
	// Address is the host and port for requests; Conditional, for those with If-None-Match.
	// Mostly they are the same.
	Address, Conditional string
	// Operators is the address of an edge's listener for operators.
	Operators string
	// TLS: it uses TLS, with a certificate that clients do not know.
	TLS bool
	// OwnTags: its entity tags are not the edge's, or it has additional headers.
	OwnTags bool
	*stack.Program

	target func(*Response) string
}

// Target returns the server's request target for a response.
func (s *Server) Target(a *Response) string {
	if s.target == nil {
		return a.Target
	}
	return s.target(a)
}

// newServer returns a server that has not started, with a free address.
func newServer(tb testing.TB, name string) *Server {
	tb.Helper()
	address := stack.FreeAddress(tb)
	return &Server{Name: name, Address: address, Conditional: address}
}

// start starts a command that listens at the server's addresses.
func (s *Server) start(tb testing.TB, environ []string, command ...string) *Server {
	tb.Helper()
	s.Program = stack.RunServer(tb, s.Address, environ, command...)
	s.AwaitListens(tb, s.Conditional)
	return s
}

// roles are the servers that this program is itself, by its first argument. The next one is the
// address.
var roles = map[string]func(address string, args []string) error{
	Fasthttp.Name: serveRecord(serveFasthttp), Loop.Name: serveRecord(serveLoop), Epoll.Name: serveRecord(serveEpoll),
	ImagePNG.Name: serveImagePNG, Argon2.Name: serveArgon2, Reencode.Name: serveReencode,
}

// Start starts this program again in a role: ImagePNG with the directory of textures, Argon2, or Reencode with the
// directory of files.
func (p Program) Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return newServer(tb, p.Name).startRole(tb, args...)
}

func (s *Server) startRole(tb testing.TB, args ...string) *Server {
	tb.Helper()
	self := testenv.Must(os.Executable())(tb)
	return s.start(tb, nil, append([]string{self, s.Name, s.Address}, args...)...)
}

// ServeRole runs this program as one of the baselines written in Go, and ends it, if its arguments say so. Those start
// the running program again, so a program that starts them must call ServeRole first of all.
func ServeRole() {
	if len(os.Args) > 2 && roles[os.Args[1]] != nil {
		fmt.Fprintln(os.Stderr, roles[os.Args[1]](os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
}
