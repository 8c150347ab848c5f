//go:build !race

package main

import (
	"net"
	"testing"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestConnectionsAddToMemory(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	directory, _ := preparedStore(t)
	r := run(t, "EDGE_CORE_URL="+origintest.Start(t).URL, "EDGE_CORE_SECRETS="+origintest.Secret, "EDGE_OBJECTS_URL=file://"+directory)
	limit := func() float64 {
		return metricstest.Value(t, r.get(r.operators, "/metrics").Body, "go_gc_gomemlimit_bytes")
	}
	alone := limit()
	var all []net.Conn
	for range 600 {
		conn := testenv.Must(net.Dial("tcp", r.public))(t)
		defer func() { _ = conn.Close() }()
		all = append(all, conn)
	}
	testenv.Eventually(r, "the limit is higher", func() bool { return limit() == alone+512*(80<<10) })
	for _, conn := range all {
		_ = conn.Close()
	}
	testenv.Eventually(r, "the limit is as before", func() bool { return limit() == alone })
}
