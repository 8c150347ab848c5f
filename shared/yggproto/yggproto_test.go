package yggproto_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

func TestFormatError(t *testing.T) {
	t.Parallel()
	f := func(path string, kind fault.Kind, status int, name string) {
		t.Helper()
		gotStatus, got := yggproto.FormatError([]byte(path), fault.New(kind, "No."))
		var want any
		if name != "" {
			want = yggproto.ErrorBody{Error: name, ErrorMessage: "No."}
		}
		if diff := cmp.Diff(want, got); diff != "" || gotStatus != status {
			t.Errorf("%s, %s: status %d; want %d; (-want +got):\n%s", path, kind, gotStatus, status, diff)
		}
	}
	const auth, join, lookup = yggproto.Root + "/authserver/validate", yggproto.Root + "/sessionserver/session/minecraft/join", yggproto.Root + "/sessionserver/session/minecraft/hasJoined"
	for _, path := range []string{yggproto.Root, yggproto.Root + "/", auth, join, join + "/", lookup, yggproto.Root + "/nothing"} {
		f(path, fault.Unavailable, 503, "Service Unavailable")
		f(path, fault.Timeout, 408, "Request Timeout")
		f(path, fault.TooLarge, 413, "Request Entity Too Large")
		f(path, fault.NotFound, 404, "Not Found")
		f(path, fault.Invalid, 400, "Bad Request")
		f(path, fault.Duplicate, 400, "Bad Request")
		f(path, fault.Internal, 500, "Internal Server Error")
		f(path, fault.Forbidden, 403, yggproto.ForbiddenOperation)
		f(path, fault.Banned, 403, yggproto.ForbiddenOperation)
	}
	f(auth, fault.TooMany, 403, yggproto.ForbiddenOperation)
	f(join, fault.TooMany, 429, "Too Many Requests")
	f(lookup, fault.TooMany, 429, "Too Many Requests")
	f(auth, fault.Unauthenticated, 403, yggproto.ForbiddenOperation)
	f(join, fault.Unauthenticated, 403, yggproto.ForbiddenOperation)
	f(lookup, fault.Unauthenticated, 401, "Unauthorized")
	for _, path := range []string{"", "/", "/api", "/api/user", "/api/yggdrasilx", "/api/Yggdrasil/", "/x/api/yggdrasil"} {
		f(path, fault.Unavailable, 0, "")
	}
}

func TestIsGameServer(t *testing.T) {
	t.Parallel()
	f := func(path string, want bool) {
		t.Helper()
		testenv.Equal(t, yggproto.IsGameServer([]byte(path)), want, "%s", path)
	}
	for _, path := range []string{
		"", "/", "/sessionserver/session/minecraft/hasJoined", "/sessionserver/session/minecraft/profile/1", "/api/profiles/minecraft",
		"/api/users/profiles/minecraft/Ann_1", "/minecraftservices/minecraft/profile/lookup/1", "/minecraftservices/minecraft/profile/lookup/bulk/byname", "/minecraftservices/publickeys",
		"/profile/Ann_1", "/textures/Ann_1",
	} {
		f(yggproto.Root+path, true)
		f("/api"+path, false)
	}
	for _, path := range []string{
		"/authserver/authenticate", "/authserver/validate", "/sessionserver/session/minecraft/join", "/api/user/profile/1/skin", "/minecraftservices/minecraft/profile",
		"/minecraftservices/player/certificates", "/skins/MinecraftSkins/Ann_1.png", "/nothing", "x",
	} {
		f(yggproto.Root+path, false)
	}
}
