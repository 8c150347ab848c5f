package faults

import (
	"net/netip"
	"time"

	"github.com/veneer-skins/veneer/bench/system/bodies"
	"github.com/veneer-skins/veneer/bench/system/stack"
)

const hostileBodiesDescription = "3,100 clients of 13 addresses hold uploads: 1,000 send a header and nothing else, 1,000 send 9,000 bytes and then one a second, " +
	"1,000 send 128,000 bytes of 1 MiB and stop, 100 announce 1 TiB; 400 clients of one address more send a header; " +
	"10 s each at haproxy before cores, and before edges that pass the API on, with HTTP/1.1 and HTTP/2; an upload that is ended begins again 3 s later"

const (
	// memoryLimit is less than the mem_limit of core and of the edges in docker-compose.yml.
	memoryLimit = 768 << 20
	// hostileAddresses share the clients, so that each has fewer than the 256 connections that
	// haproxy grants to an address.
	hostileAddresses = 13
)

// hostileBodies runs slow-body attacks, over one route after another.
func (h *harness) hostileBodies() {
	h.Helper()
	share, duration := 1, 10*time.Second
	if h.Quick {
		share, duration = 10, time.Second
	}
	address := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, byte(n), 1}) } // each in a network of its own
	var many []netip.Addr
	for n := range hostileAddresses {
		many = append(many, address(1+n))
	}
	one := []netip.Addr{address(100)}
	bearers := h.writeLog.bearers(3500 / share)
	upload := func(n int, announced int64, part int, each time.Duration) (all []bodies.Upload) {
		for i := range n / share {
			u := bodies.Upload{Path: "/api/textures", Bearer: bearers[0], ContentLength: announced, InitialBytes: part, Interval: each}
			if i%10 == 0 {
				u.Path = "/avatar/1" // where no body is expected
			}
			bearers = bearers[1:]
			all = append(all, u)
		}
		return all
	}
	hostile := upload(1000, bodies.MaxUploadLength, 0, 0)
	hostile = append(hostile, upload(1000, bodies.MaxUploadLength, 9000, time.Second)...)
	hostile = append(hostile, upload(1000, bodies.MaxUploadLength, 128_000, 0)...)
	hostile = append(hostile, upload(100, 1<<40, 1<<20, 0)...)
	more := upload(400, bodies.MaxUploadLength, 0, 0)

	for _, p := range append(h.Cores[:], h.Edges[:]...) {
		p.ResetPeak(h)
	}
	for _, route := range []struct {
		name, address string
		http2         bool
	}{
		{"cores, HTTP/1.1", h.Address, false},
		{"cores, HTTP/2", h.Address, true},
		{"edges, HTTP/1.1", h.EdgesAddress, false},
		{"edges, HTTP/2", h.EdgesAddress, true},
	} {
		refused := h.RejectedConnections(h)
		base := "http://" + route.address
		attack := bodies.Start(h.Context(), bodies.Target{Base: base, HTTP2: route.http2, From: many}, hostile)
		h.Cleanup(attack.Stop)
		others := bodies.Start(h.Context(), bodies.Target{Base: base, HTTP2: route.http2, From: one}, more)
		h.Cleanup(others.Stop)
		h.sleep(duration)
		attack.Stop()
		others.Stop()
		h.addNote("%s: %s; haproxy refused %d connections", route.name, attack, h.RejectedConnections(h)-refused)
	}
	core, edge := h.peakMemory(h.Cores[:]), h.peakMemory(h.Edges[:])
	h.addNote("a core uses at most %d MiB of memory, an edge %d MiB", core>>20, edge>>20)
	if core >= memoryLimit || edge >= memoryLimit {
		h.addProblem("a program uses more memory than the %d MiB of docker-compose.yml", memoryLimit>>20)
	}
}

// peakMemory returns the highest peak of resident memory among programs.
func (h *harness) peakMemory(programs []*stack.Process) (bytes int64) {
	for _, p := range programs {
		_, most := p.Memory(h)
		bytes = max(bytes, most)
	}
	return bytes
}
