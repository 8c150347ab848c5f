package town

import (
	"encoding/json"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/veneer-skins/veneer/shared/mapping"
)

// secret is the one that the edge shows the core.
const secret = "only-for-a-benchmark-on-loopback"

// fakeCore stands in for core: it knows what leads where, and nothing ever changes.
// While hits are measured an edge hears nothing of it but beats.
type fakeCore struct {
	mappings map[mapping.Key]mapping.Mapping
	lookups atomic.Int64 // for how many keys
}

var cursor = mapping.Cursor{Epoch: "town", Revision: 1}

// serve answers edges at a free port until what it returns is closed.
func (c *fakeCore) serve() (url string, server *http.Server, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+mapping.LookupPath, c.lookup)
	mux.HandleFunc("GET "+mapping.ChangesPath, c.stream)
	server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return "http://" + listener.Addr().String(), server, nil
}

func (c *fakeCore) lookup(w http.ResponseWriter, r *http.Request) {
	var lookup mapping.LookupRequest
	if err := json.NewDecoder(r.Body).Decode(&lookup); err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	c.lookups.Add(int64(len(lookup.Keys)))
	answer := mapping.LookupResponse{Cursor: cursor}
	for _, key := range lookup.Keys {
		answer.Mappings = append(answer.Mappings, c.mappings[key])
	}
	_ = json.NewEncoder(w).Encode(answer) // an edge that went away needs none
}

func (c *fakeCore) stream(w http.ResponseWriter, r *http.Request) {
	lines, opened := json.NewEncoder(w), time.Now()
	heartbeat := time.NewTicker(100 * time.Millisecond)
	defer heartbeat.Stop()
	for event := (mapping.Event{Cursor: cursor, Start: true}); ; event = (mapping.Event{Cursor: cursor, AsOf: time.Since(opened)}) {
		if lines.Encode(event) != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-heartbeat.C:
		case <-r.Context().Done():
			return
		}
	}
}
