// Package yggproto has what core and edge must treat alike of the API of launchers and game
// servers: where it is, its errors, and which requests come from game servers.
package yggproto

import (
	"bytes"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// Root is the path of the API.
const Root = "/api/yggdrasil"

// The names of errors that launchers act on. Others have the reason phrase of their status.
const (
	ForbiddenOperation = "ForbiddenOperationException"
	IllegalArgument    = "IllegalArgumentException"
)

// ErrorBody is the JSON body of an error. Launchers take a body without it for success, whatever
// the status.
type ErrorBody struct {
	Error        string `json:"error"`
	ErrorMessage string `json:"errorMessage"`
}

// FormatError returns the status and the ErrorBody of an error response to a request for a path, and
// no body for a path that is not of the API. It is an httpserver.ErrorFormat.
//
// A launcher asks for the password again after ForbiddenOperation and nothing else, so authserver
// has that also for a token that is wrong, and for too many requests.
func FormatError(path []byte, f *fault.Error) (status int, body any) {
	rest, ok := cutRoot(path)
	if !ok {
		return 0, nil
	}
	isAuth := bytes.HasPrefix(rest, []byte("/authserver/"))
	status = httpserver.StatusOf(f)
	switch {
	case f.Kind == fault.Invalid || f.Kind == fault.Duplicate:
		status = fasthttp.StatusBadRequest
	case f.Kind == fault.Unauthenticated && (isAuth || isJoin(rest)), f.Kind == fault.TooMany && isAuth:
		status = fasthttp.StatusForbidden
	}
	name := fasthttp.StatusMessage(status)
	if status == fasthttp.StatusForbidden {
		name = ForbiddenOperation
	}
	return status, ErrorBody{name, f.Message}
}

// gameServerPaths begin the paths below Root that game servers request, and edges for the pages of many visitors.
var gameServerPaths = [][]byte{
	[]byte("/sessionserver/session/minecraft/hasJoined"),
	[]byte("/sessionserver/session/minecraft/profile/"),
	[]byte("/profile/"),
	[]byte("/textures/"),
	[]byte("/api/profiles/minecraft"),
	[]byte("/api/users/profiles/minecraft/"),
	[]byte("/api/minecraft/profile/lookup/"),
	[]byte("/minecraftservices/minecraft/profile/lookup/"),
	[]byte("/minecraftservices/player/attributes"),
	[]byte("/minecraftservices/privacy/blocklist"),
	[]byte("/minecraftservices/privileges"),
	[]byte("/minecraftservices/publickeys"),
}

// IsGameServer reports whether requests for a path come from game servers. A game server requests
// them for all its players from one address, so limits of an address must not count them.
func IsGameServer(path []byte) bool {
	rest, ok := cutRoot(path)
	if !ok {
		return false
	}
	if len(bytes.Trim(rest, "/")) == 0 { // what the site is
		return true
	}
	return slices.ContainsFunc(gameServerPaths, func(begin []byte) bool { return bytes.HasPrefix(rest, begin) })
}

// isJoin reports whether a path below Root is the path of joins.
func isJoin(rest []byte) bool {
	return string(bytes.TrimRight(rest, "/")) == "/sessionserver/session/minecraft/join"
}

// cutRoot returns a path without Root, and whether it is one of the API.
func cutRoot(path []byte) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(path, []byte(Root))
	return rest, ok && (len(rest) == 0 || rest[0] == '/')
}
