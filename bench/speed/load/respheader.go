package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// respHeader is the parsed header of a response: as much of HTTP as the measured servers use.
type respHeader struct {
	status int // 0 until the header is complete
	length int // of the body
	closes bool
}

var (
	headerEnd = []byte("\r\n\r\n")
	lineEnd   = []byte("\r\n")
	nameEnd   = []byte(":")
	lengthKey = []byte("Content-Length")
	closeKey  = []byte("Connection")
	closing   = []byte("close")
)

// parseRespHeader returns the header of a response and where its body begins, or a status of 0
// unless the header is complete.
func parseRespHeader(data []byte) (h respHeader, end int, err error) {
	const version, code = "HTTP/1.1 ", "200"
	end = bytes.Index(data, headerEnd)
	if end < 0 {
		return respHeader{}, 0, nil
	}
	first, rest, _ := bytes.Cut(data[:end], lineEnd)
	if len(first) < len(version+code) || string(first[:len(version)]) != version {
		return respHeader{}, 0, fmt.Errorf("not HTTP/1.1: %.20q", first)
	}
	if h.status, err = strconv.Atoi(string(first[len(version):len(version+code)])); err != nil || h.status < 200 {
		return respHeader{}, 0, fmt.Errorf("no final status in %.20q", first)
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
				return respHeader{}, 0, fmt.Errorf("invalid Content-Length %.40q", value)
			}
		case len(name) == len(closeKey) && bytes.EqualFold(name, closeKey):
			h.closes = bytes.EqualFold(bytes.TrimSpace(value), closing)
		}
	}
	switch {
	case h.status == 204 || h.status == 304: // may have a Content-Length without a body
		h.length = 0
	case h.length < 0:
		return respHeader{}, 0, errors.New("the answer has no Content-Length")
	}
	return h, end + len(headerEnd), nil
}
