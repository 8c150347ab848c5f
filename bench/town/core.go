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

// core stands in for core: it knows what leads where, and nothing ever changes.
// While hits are measured an edge hears nothing of it but beats.
type core struct {
	leads map[mapping.Key]mapping.Mapping
	asked atomic.Int64 // for how many keys
}

var position = mapping.Cursor{Epoch: "town", Revision: 1}

// serve answers edges at a free port until what it returns is closed.
func (c *core) serve() (url string, server *http.Server, err error) {
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

func (c *core) lookup(w http.ResponseWriter, r *http.Request) {
	var question mapping.LookupRequest
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	c.asked.Add(int64(len(question.Keys)))
	answer := mapping.LookupResponse{Cursor: position}
	for _, key := range question.Keys {
		answer.Mappings = append(answer.Mappings, c.leads[key])
	}
	_ = json.NewEncoder(w).Encode(answer) // an edge that went away needs none
}

func (c *core) stream(w http.ResponseWriter, r *http.Request) {
	lines, opened := json.NewEncoder(w), time.Now()
	beat := time.NewTicker(100 * time.Millisecond)
	defer beat.Stop()
	for event := (mapping.Event{Cursor: position, Start: true}); ; event = (mapping.Event{Cursor: position, AsOf: time.Since(opened)}) {
		if lines.Encode(event) != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-beat.C:
		case <-r.Context().Done():
			return
		}
	}
}
