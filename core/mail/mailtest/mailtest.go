// Package mailtest is a mail server for tests: it implements SMTP on a real socket, with TLS and
// authentication, records e-mails, and can be made to fail.
package mailtest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// Server is a mail server.
type Server struct {
	Host string
	Port int
	CA   string // file of the authority that signed its certificate

	options Options
	tls     *tls.Config

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	reply    func(command string) string
	mails    []Mail
	commands []string
	arrived  chan struct{} // closed and replaced at every e-mail
}

// Options are the features that a server offers and requires.
type Options struct {
	ImplicitTLS bool // TLS from the first byte
	StartTLS    bool // offered and required
	User        string
	Password    string // required if there is a user
	Auth        string // PLAIN, the default, or LOGIN
}

// Mail is an e-mail that a server has received.
type Mail struct {
	From, To string // of the envelope
	Header   mail.Header
	Text     string // decoded
	Raw      string
	Secure   bool // came over TLS
}

// Start starts a server, which is stopped when the test ends.
func Start(tb testing.TB, options Options) *Server {
	tb.Helper()
	s := &Server{options: options, conns: map[net.Conn]bool{}, arrived: make(chan struct{})}
	authority := tlsreloadtest.NewAuthority(tb)
	chain, key := authority.Issue(tb)
	certificate, err := tls.LoadX509KeyPair(chain, key)
	if err != nil {
		tb.Fatal(err)
	}
	s.CA = authority.File
	s.tls = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	s.listen(tb, "127.0.0.1:0")
	tb.Cleanup(s.Stop)
	return s
}

func (s *Server) listen(tb testing.TB, address string) {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	bound, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		tb.Fatal("the listener has no TCP address")
	}
	s.Host, s.Port = bound.IP.String(), bound.Port
	s.mu.Lock()
	s.listener = listener
	s.mu.Unlock()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[conn] = true
			s.mu.Unlock()
			go s.serve(conn)
		}
	}()
}

// Stop closes the listener and all connections.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.listener.Close()
	for conn := range s.conns {
		_ = conn.Close()
	}
}

// Restart starts a stopped server at the same address.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.listen(tb, net.JoinHostPort(s.Host, fmt.Sprint(s.Port)))
}

// SetReply sets a function that returns the reply to a command: "" for the usual reply, Hang for
// none, or other lines. A command is its whole line, "." for the end of an e-mail, or "" for a
// new connection.
func (s *Server) SetReply(reply func(command string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = reply
}

// Hang makes the server not reply any more.
const Hang = "hang"

// Mails returns the received e-mails.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// Commands returns the received commands, without e-mails and credentials.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Await waits until a number of e-mails has arrived, and returns them.
func (s *Server) Await(tb testing.TB, count int) []Mail {
	tb.Helper()
	deadline := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		mails, arrived := slices.Clone(s.mails), s.arrived
		s.mu.Unlock()
		if len(mails) >= count {
			return mails
		}
		select {
		case <-arrived:
		case <-deadline:
			tb.Fatalf("%d mails have arrived; want %d", len(mails), count)
		}
	}
}

// session is a connection to the server.
type session struct {
	*Server
	conn             net.Conn
	text             *textproto.Conn
	secure, signedIn bool
	from, to         string
}

func (s *Server) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	c := &session{Server: s, conn: conn, signedIn: s.options.User == ""}
	if s.options.ImplicitTLS {
		c.conn, c.secure = tls.Server(conn, s.tls), true
	}
	c.text = textproto.NewConn(c.conn)
	if !c.sendReply("", "220 mail.test ready") {
		return
	}
	for {
		line, err := c.text.ReadLine()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.commands = append(s.commands, line)
		s.mu.Unlock()
		if !c.execute(line) {
			return
		}
	}
}

// sendReply sends the scripted or the usual reply to a command, and reports whether it was the
// usual one.
func (s *session) sendReply(command, usual string) bool {
	return s.respond(s.scriptedReply(command), usual)
}

// scriptedReply returns the reply of the function of SetReply.
func (s *session) scriptedReply(command string) string {
	s.mu.Lock()
	reply := s.reply
	s.mu.Unlock()
	if reply == nil {
		return ""
	}
	return reply(command)
}

func (s *session) respond(scripted, usual string) bool {
	switch scripted {
	case "":
		return s.text.PrintfLine("%s", usual) == nil
	case Hang:
		_, _ = io.Copy(io.Discard, s.conn) // until the client disconnects
		return false
	default:
		_ = s.text.PrintfLine("%s", scripted)
		return false
	}
}

// execute executes a command, and reports whether the connection stays open.
func (s *session) execute(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb = strings.ToUpper(verb); {
	case verb == "EHLO":
		return s.ehlo(line)
	case verb == "STARTTLS":
		if !s.sendReply(line, "220 go ahead") {
			return true
		}
		s.conn, s.secure = tls.Server(s.conn, s.tls), true
		s.text = textproto.NewConn(s.conn)
		return true
	case verb == "AUTH":
		return s.authenticate(line, rest)
	case verb == "NOOP" || verb == "RSET":
		s.sendReply(line, "250 ok")
		return true
	case verb == "QUIT":
		s.sendReply(line, "221 bye")
		return false
	case s.options.StartTLS && !s.secure:
		return s.text.PrintfLine("530 5.7.0 Must issue a STARTTLS command first") == nil
	case !s.signedIn:
		return s.text.PrintfLine("530 5.7.0 Authentication required") == nil
	case verb == "MAIL":
		if s.sendReply(line, "250 ok") {
			s.from = envelope(rest)
		}
		return true
	case verb == "RCPT":
		if s.sendReply(line, "250 ok") {
			s.to = envelope(rest)
		}
		return true
	case verb == "DATA":
		return s.data(line)
	default:
		return s.text.PrintfLine("502 5.5.2 what") == nil
	}
}

func (s *session) ehlo(line string) bool {
	lines := []string{"250-mail.test", "250-8BITMIME", "250-ENHANCEDSTATUSCODES"}
	if s.options.StartTLS && !s.secure {
		lines = append(lines, "250-STARTTLS")
	}
	if s.options.User != "" {
		mechanisms := s.options.Auth
		if mechanisms == "" {
			mechanisms = "PLAIN"
		}
		lines = append(lines, "250-AUTH "+mechanisms)
	}
	s.sendReply(line, strings.Join(append(lines, "250 PIPELINING"), "\r\n"))
	return true
}

func (s *session) authenticate(line, rest string) bool {
	mechanism, initial, _ := strings.Cut(rest, " ")
	given := ""
	switch mechanism {
	case "PLAIN":
		decoded, _ := base64.StdEncoding.DecodeString(initial)
		given = string(decoded)
	case "LOGIN":
		for _, prompt := range []string{"VXNlcm5hbWU6", "UGFzc3dvcmQ6"} {
			_ = s.text.PrintfLine("334 %s", prompt)
			answer, err := s.text.ReadLine()
			if err != nil {
				return false
			}
			decoded, _ := base64.StdEncoding.DecodeString(answer)
			given += "\x00" + string(decoded)
		}
	}
	if given != "\x00"+s.options.User+"\x00"+s.options.Password {
		s.sendReply(line, "535 5.7.8 no such user as "+s.options.User)
		return true
	}
	s.signedIn = s.sendReply(line, "235 2.7.0 welcome")
	return true
}

// data receives an e-mail.
func (s *session) data(line string) bool {
	if !s.sendReply(line, "354 go ahead") {
		return true
	}
	raw, err := io.ReadAll(s.text.DotReader())
	if err != nil {
		return false
	}
	m, err := parse(raw)
	if err != nil {
		return s.text.PrintfLine("554 5.6.0 %s", err) == nil
	}
	m.From, m.To, m.Secure = s.from, s.to, s.secure
	scripted := s.scriptedReply(".")
	if scripted == "" { // before the client gets the reply
		s.mu.Lock()
		s.mails = append(s.mails, m)
		close(s.arrived)
		s.arrived = make(chan struct{})
		s.mu.Unlock()
	}
	s.respond(scripted, "250 2.0.0 queued")
	return true
}

// envelope returns the address between angle brackets.
func envelope(argument string) string {
	_, address, _ := strings.Cut(argument, "<")
	address, _, _ = strings.Cut(address, ">")
	return address
}

// parse parses an e-mail.
func parse(raw []byte) (Mail, error) {
	message, err := mail.ReadMessage(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return Mail{}, err
	}
	if encoding := message.Header.Get("Content-Transfer-Encoding"); encoding != "quoted-printable" {
		return Mail{}, fmt.Errorf("the transfer encoding is %q", encoding)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(message.Body))
	return Mail{Header: message.Header, Text: string(text), Raw: string(raw)}, err
}

// Subject returns the decoded subject.
func (m Mail) Subject(tb testing.TB) string {
	tb.Helper()
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		tb.Fatal(err)
	}
	return subject
}
