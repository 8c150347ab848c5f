package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// head is what the beginning of an answer says: as much of HTTP as servers that are
// measured speak.
type head struct {
	status int // 0 until the head is whole
	length int // of the body
	closes bool
}

var (
	headEnd   = []byte("\r\n\r\n")
	lineEnd   = []byte("\r\n")
	nameEnd   = []byte(":")
	lengthKey = []byte("Content-Length")
	closeKey  = []byte("Connection")
	closing   = []byte("close")
)

// parseHead returns the head of an answer and where its body begins, or a status of 0
// unless all of the head has come.
func parseHead(come []byte) (h head, end int, err error) {
	const version, code = "HTTP/1.1 ", "200"
	end = bytes.Index(come, headEnd)
	if end < 0 {
		return head{}, 0, nil
	}
	first, rest, _ := bytes.Cut(come[:end], lineEnd)
	if len(first) < len(version+code) || string(first[:len(version)]) != version {
		return head{}, 0, fmt.Errorf("%.20q is the answer", first)
	}
	if h.status, err = strconv.Atoi(string(first[len(version):len(version+code)])); err != nil || h.status < 200 {
		return head{}, 0, fmt.Errorf("%.20q has no status of an answer", first)
	}
	h.length = -1
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, lineEnd)
		name, value, _ := bytes.Cut(line, nameEnd)
		// Few names are as long as these, so few are compared.
		switch {
		case len(name) == len(lengthKey) && bytes.EqualFold(name, lengthKey):
			if h.length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || h.length < 0 {
				return head{}, 0, fmt.Errorf("%.40q is the answer's length", value)
			}
		case len(name) == len(closeKey) && bytes.EqualFold(name, closeKey):
			h.closes = bytes.EqualFold(bytes.TrimSpace(value), closing)
		}
	}
	switch {
	case h.status == 204 || h.status == 304: // may tell the length of what it does not send
		h.length = 0
	case h.length < 0:
		return head{}, 0, errors.New("the answer does not tell its length")
	}
	return h, end + len(headEnd), nil
}
