// Package edgeapi is core's HTTP API for edges, with the protocol of package edgeproto:
// look-ups of keys, the stream of changes with its acknowledgements, and the most liked
// textures. Requests must carry a secret shared with the edges.
package edgeapi

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// streamWriteTimeout is the write timeout of each batch of events.
const streamWriteTimeout = 5 * time.Second

// maxBodyBytes bounds request bodies. edgeproto.MaxKeys names of edgeproto.MaxNameBytes take 384 KiB
// as JSON if each byte is escaped (\u003c), and the ids of their requests 17 KiB.
const maxBodyBytes = 512 << 10

// Purges waits for edges before it purges a CDN. A stream is named by its id.
type Purges interface {
	// Register adds a stream before anything is sent on it, which takes the place of the edge's
	// former one; uuid.Nil is for none.
	Register(ctx context.Context, former uuid.UUID) (stream uuid.UUID, err error)
	// Unregister records that a stream has ended.
	Unregister(stream uuid.UUID)
	// Acknowledge records that an edge has applied all changes up to a cursor.
	Acknowledge(stream uuid.UUID, applied edgeproto.Cursor)
}

// Server handles requests of edges.
type Server struct {
	mappings *core.Mappings
	feed     *core.Feed
	purges   Purges // nil: acknowledgements are not needed
	secrets  [][sha256.Size]byte
	http     httpserver.Options
	ctx      context.Context //nolint:containedctx // its end is the end of all streams
}

// New returns a server for edges that send one of the secrets. Its streams end with ctx. Edges
// are asked for acknowledgements if purges is not nil.
func New(ctx context.Context, options httpserver.Options, mappings *core.Mappings, feed *core.Feed, purges Purges, secrets []string) (*Server, error) {
	// Requests of edges have a trace context, which decides what is traced.
	options.Listener, options.Tracer, options.DefaultHeaders = "edges", options.Tracer.Follower(), httpserver.SetSecurityHeaders
	s := &Server{mappings: mappings, feed: feed, purges: purges, http: options, ctx: ctx}
	valid, err := edgeproto.Secrets(secrets)
	if err != nil {
		return nil, config.Errorf("EDGE_SECRETS", "%w", err)
	}
	for _, secret := range valid {
		s.secrets = append(s.secrets, sha256.Sum256([]byte(secret)))
	}
	return s, nil
}

// HTTP returns the HTTP server for the edges' listener.
func (s *Server) HTTP() *fasthttp.Server {
	lookups, changes := s.http.Route("POST "+edgeproto.LookupPath).AcceptBody(maxBodyBytes, 0), s.http.Route("GET "+edgeproto.ChangesPath)
	acknowledgements := s.http.Route("POST "+edgeproto.AcknowledgePath).AcceptBody(maxBodyBytes, 0)
	liked := s.http.Route("GET " + edgeproto.LikedPath)
	server := s.http.NewServer(s.http.HandleNoContext(func(rc *fasthttp.RequestCtx) error {
		httpserver.SetSecurityHeaders(rc)
		if err := rc.Conn().SetWriteDeadline(time.Now().Add(s.http.Limits.WorkTimeout + streamWriteTimeout)); err != nil {
			return err
		}
		if !s.authenticated(rc) {
			return fault.New(fault.Unauthenticated, "This listener is for edges that know its secret.")
		}
		switch string(rc.Path()) {
		case edgeproto.LookupPath:
			lookups.AssignTo(rc)
			return s.lookup(rc)
		case edgeproto.ChangesPath:
			changes.AssignTo(rc)
			return s.changes(rc)
		case edgeproto.AcknowledgePath:
			acknowledgements.AssignTo(rc)
			return s.acknowledge(rc)
		case edgeproto.LikedPath:
			liked.AssignTo(rc)
			ctx, cancel := s.http.RequestContext(rc)
			defer cancel()
			return s.liked(ctx, rc)
		default:
			return fault.New(fault.NotFound, "There is nothing at this path.")
		}
	}))
	server.WriteTimeout = 0 // streams do not end, so every response sets its own deadline
	return server
}

// authenticated reports whether a request carries one of the secrets. It compares digests, in
// constant time, with all of them.
func (s *Server) authenticated(rc *fasthttp.RequestCtx) bool {
	secret, _ := strings.CutPrefix(string(rc.Request.Header.Peek(fasthttp.HeaderAuthorization)), "Bearer ")
	digest := sha256.Sum256([]byte(secret))
	matches := 0
	for _, s := range s.secrets {
		matches |= subtle.ConstantTimeCompare(digest[:], s[:])
	}
	return matches == 1
}

// lookup handles POST edgeproto.LookupPath.
func (s *Server) lookup(rc *fasthttp.RequestCtx) error {
	if err := mustPost(rc); err != nil {
		return err
	}
	if err := httpserver.ReadBody(rc); err != nil {
		return err
	}
	ctx, cancel := s.http.RequestContext(rc)
	defer cancel()
	var lookup edgeproto.LookupRequest
	if err := json.Unmarshal(rc.PostBody(), &lookup); err != nil {
		return fault.New(fault.Malformed, "The body is no look-up request.")
	}
	if len(lookup.Requests) > 1 { // a single one equals the header
		httpserver.AddLogAttr(rc, slog.Any("request_ids", lookup.Requests))
	}
	response, err := s.mappings.Resolve(ctx, lookup)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, response)
}

func mustPost(rc *fasthttp.RequestCtx) error {
	if rc.IsPost() {
		return nil
	}
	rc.Response.Header.Set(fasthttp.HeaderAllow, fasthttp.MethodPost)
	return fault.New(fault.MethodNotAllowed, "Use POST.")
}

// acknowledge handles POST edgeproto.AcknowledgePath. While a site configures the webhook core
// by core, a core without one may get acknowledgements for streams of another core.
func (s *Server) acknowledge(rc *fasthttp.RequestCtx) error {
	if err := mustPost(rc); err != nil {
		return err
	}
	if err := httpserver.ReadBody(rc); err != nil {
		return err
	}
	var ack edgeproto.Acknowledgement
	if err := json.Unmarshal(rc.PostBody(), &ack); err != nil {
		return fault.New(fault.Malformed, "The body is no acknowledgement.")
	}
	stream, err := uuid.Parse(ack.Stream)
	if err != nil {
		return fault.Field("stream", "The stream must be named as its start named it.")
	}
	if s.purges != nil {
		s.purges.Acknowledge(stream, ack.Cursor)
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, struct{}{})
}

// changes handles GET edgeproto.ChangesPath.
func (s *Server) changes(rc *fasthttp.RequestCtx) error {
	if !rc.IsGet() {
		rc.Response.Header.Set(fasthttp.HeaderAllow, fasthttp.MethodGet)
		return fault.New(fault.MethodNotAllowed, "Use GET.")
	}
	revision, err := rc.QueryArgs().GetUint("revision")
	if err != nil && !errors.Is(err, fasthttp.ErrNoArgValue) {
		return fault.Field("revision", "The revision must be an integer.")
	}
	from := edgeproto.Cursor{Epoch: string(rc.QueryArgs().Peek("epoch")), Revision: int64(max(0, revision))}
	previous, err := uuid.ParseBytes(rc.QueryArgs().Peek("former"))
	if err != nil {
		previous = uuid.Nil // not the name of a stream
	}
	receivedAt, conn, peer := rc.Time(), rc.Conn(), rc.RemoteAddr().String()
	rc.SetConnectionClose() // a later request must not inherit the stream's deadline

	rc.SetContentType("application/x-ndjson")
	rc.SetBodyStreamWriter(func(w *bufio.Writer) {
		// The server's own recovery does not cover the body writer.
		defer func() {
			if panicked := recover(); panicked != nil {
				s.http.Log.Error("stream panicked", "peer", peer, "error", fmt.Sprintf("panic: %v\n%s", panicked, debug.Stack()))
			}
		}()
		s.http.Log.Info("edge connected", "peer", peer, "epoch", from.Epoch, "revision", from.Revision)
		lines := json.NewEncoder(w)
		err := s.follow(from, previous, receivedAt, func(events ...edgeproto.Event) error {
			// An edge that stops reading must not block the stream or the shutdown. The
			// deadline applies to all following writes.
			if err := conn.SetWriteDeadline(time.Now().Add(streamWriteTimeout)); err != nil {
				return err
			}
			for _, event := range events {
				if err := lines.Encode(event); err != nil {
					return err
				}
			}
			return w.Flush()
		})
		s.http.Log.Info("edge disconnected", slog.String("peer", peer), slog.Any("reason", err))
	})
	return nil
}

// follow sends a stream to its end. If acknowledgements are needed, the stream has a name. It is
// registered with the purger before the first heartbeat, which makes the edge trust its cached
// mappings.
func (s *Server) follow(from edgeproto.Cursor, previous uuid.UUID, receivedAt time.Time, send func(...edgeproto.Event) error) error {
	if s.purges == nil {
		return s.feed.Follow(s.ctx, from, receivedAt, send)
	}
	stream, err := s.purges.Register(s.ctx, previous)
	if err != nil {
		return err
	}
	defer s.purges.Unregister(stream)
	return s.feed.Follow(s.ctx, from, receivedAt, func(events ...edgeproto.Event) error {
		for i := range events {
			if events[i].Start {
				events[i].Stream = stream.String()
			}
		}
		return send(events...)
	})
}
