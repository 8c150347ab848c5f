package load_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// rawServer answers every request with raw bytes, in pieces, and closes the connection afterwards
// if closes is set.
func rawServer(t *testing.T, closes bool, pieces ...string) string {
	t.Helper()
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	answer := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		reader := bufio.NewReader(conn)
		for {
			if line, err := reader.ReadString('\n'); err != nil {
				return
			} else if line != "\r\n" {
				continue
			}
			for _, piece := range pieces {
				_, _ = io.WriteString(conn, piece)
			}
			if closes {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answer(conn)
		}
	}()
	return listener.Addr().String()
}

func TestAnswersInPieces(t *testing.T) {
	t.Parallel()
	f := func(length int, pieces ...string) {
		t.Helper()
		for _, share := range []float64{0, 1} {
			s := stream(1, 0, "/")
			s.Lengths, s.Order = []int{length}, load.Repeat(1, 10)
			s.InspectShare, s.Inspect = share, func(_, _ int, body []byte) error {
				testenv.Equal(t, len(body), length, "bytes that are looked at")
				return nil
			}
			got, whole := runRight(t, rawServer(t, false, pieces...), s), len(strings.Join(pieces, ""))
			if got.Total() != 10 || got.Bytes != int64(10*whole) {
				t.Errorf("%d answers of %d bytes have %d", got.Total(), whole, got.Bytes)
			}
		}
	}

	f(3, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
	f(3, "HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length:3\r\n\r\nabc")
	f(3, "HTTP/1", ".1 200 OK\r\nContent-Le", "ngth: 3\r\n\r", "\na", "bc")
	f(0, "HTTP/1.1 304 Not Modified\r\nContent-Length: 526\r\n\r\n")
	f(0, "HTTP/1.1 204 No Content\r\n\r\n")
	f(100_000, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", strings.Repeat("x", 99_999), "x")
}

func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, answer string
		fault        load.Fault
		want         string
		closes       bool
	}{
		{"another status", "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc", load.WrongStatus, "status 404; want one of [200]", false},
		{"another length", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd", load.WrongLength, "4 bytes; want 3", false},
		{"another body", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyz", load.WrongBody, `"xyz" is wrong`, false},
		{"a body shorter than Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", load.WrongLength, "ends before the body", true},
		{"a body longer than Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd", load.WrongLength, "data follows the answer", false},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", load.Broken, "no Content-Length", false},
		{"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", load.Broken, `Content-Length " -1"`, false},
		{"no HTTP", "hello\r\n\r\n", load.Broken, `not HTTP/1.1: "hello"`, false},
		{"no answer yet", "HTTP/1.1 103 Early Hints\r\n\r\n", load.Broken, "no final status", false},
		{"an endless header", strings.Repeat("x", 20_000), load.Broken, "header is too long", false},
		{"nothing", "", load.Broken, "closed before an answer", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := stream(1, 0, "/path")
			s.Statuses, s.Lengths, s.Order = []int{200}, []int{3}, load.Repeat(1, 2)
			s.InspectShare, s.Inspect = 1, func(request, status int, body []byte) error {
				if request != 0 || status != 200 || string(body) != "abc" {
					return fmt.Errorf("%q is wrong", body)
				}
				return nil
			}
			answers := testenv.Must(load.Run(t.Context(), rawServer(t, test.closes, test.answer), time.Minute, s))(t)
			if n := answers[0].Wrong[test.fault]; n != 2 || len(answers[0].Wrong) != 1 {
				t.Errorf("wrong answers are %v; want two of %s", answers[0].Wrong, test.fault)
			}
			testenv.ErrorHas(t, answers[0].First, test.want, "the first wrong answer")
			testenv.ErrorHas(t, answers[0].First, "/path", "the first wrong answer")
		})
	}
}
