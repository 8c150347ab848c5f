package edgeproto_test

import (
	"encoding/json"
	"testing"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	f := func(got, want edgeproto.Key) {
		t.Helper()
		testenv.Equal(t, got, want, "the key")
	}

	f(edgeproto.NameKey("Steve_99"), "name:steve_99")
	f(edgeproto.NameKey("steve_99"), edgeproto.NameKey("STEVE_99"))
	f(edgeproto.PIDKey(5), "pid:5")
	f(edgeproto.UIDKey(7), "uid:7")
	f(edgeproto.UIDKey(-7), "uid:-7")
	f(edgeproto.UUIDKey("7d444840-9dc0-11d1-b245-5ffdce74fad2"), "uuid:7d444840-9dc0-11d1-b245-5ffdce74fad2")
	f(edgeproto.TIDKey(12), "tid:12")
	f(edgeproto.HashKey(skin.HashOf([]byte("abc"))), "hash:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
}

func TestIsHeartbeat(t *testing.T) {
	t.Parallel()
	f := func(event edgeproto.Event, want bool) {
		t.Helper()
		testenv.Equal(t, event.IsHeartbeat(), want, "%+v is a heartbeat", event)
	}

	f(edgeproto.Event{Cursor: edgeproto.Cursor{Epoch: "e", Revision: 3}}, true)
	f(edgeproto.Event{Start: true}, false)
	f(edgeproto.Event{Keys: []edgeproto.Key{"tid:1"}}, false)
}

// The JSON forms are the protocol, also between core and edges of different versions.
func TestJSON(t *testing.T) {
	t.Parallel()
	position := edgeproto.Cursor{Epoch: "e", Revision: 3}
	hash := skin.HashOf([]byte("abc"))
	texture := &edgeproto.Texture{TID: 12, Hash: hash, Type: skin.Slim}

	checkJSON(t, edgeproto.LookupRequest{Keys: []edgeproto.Key{"uid:7"}}, `{"keys":["uid:7"]}`)
	checkJSON(t, edgeproto.LikedTextures{Hashes: []skin.Hash{hash}}, `{"hashes":["`+hash.String()+`"]}`)
	checkJSON(t, edgeproto.Event{Cursor: position, Start: true}, `{"epoch":"e","revision":3,"start":true}`)
	checkJSON(t, edgeproto.Event{Cursor: position, Start: true, Stream: "s"}, `{"epoch":"e","revision":3,"start":true,"stream":"s"}`)
	checkJSON(t, edgeproto.Acknowledgement{Cursor: position, Stream: "s"}, `{"epoch":"e","revision":3,"stream":"s"}`)
	checkJSON(t, edgeproto.Event{Cursor: position, Keys: []edgeproto.Key{"tid:1"}}, `{"epoch":"e","revision":3,"keys":["tid:1"]}`)
	checkJSON(t, edgeproto.Event{Cursor: position}, `{"epoch":"e","revision":3}`)
	checkJSON(t, edgeproto.LookupResponse{Cursor: position, Mappings: []edgeproto.Mapping{
		{},
		{Texture: texture},
		{User: &edgeproto.User{UID: 7, Avatar: 12, Texture: texture}},
		{Player: &edgeproto.Player{PID: 2, UUID: "u", Name: "Steve", Skin: texture}},
		{Texture: texture, Modified: 1790000000},
	}}, `{"epoch":"e","revision":3,"mappings":[`+
		`{},`+
		`{"texture":{"tid":12,"hash":"`+hash.String()+`","type":"alex"}},`+
		`{"user":{"uid":7,"avatar":12,"texture":{"tid":12,"hash":"`+hash.String()+`","type":"alex"}}},`+
		`{"player":{"pid":2,"uuid":"u","name":"Steve","skin":{"tid":12,"hash":"`+hash.String()+`","type":"alex"}}},`+
		`{"texture":{"tid":12,"hash":"`+hash.String()+`","type":"alex"},"modified":1790000000}]}`)
}

// checkJSON checks that a value is encoded as want, and that want is decoded to it.
func checkJSON[T any](t *testing.T, value T, want string) {
	t.Helper()
	got := testenv.Must(json.Marshal(value))(t)
	cmptest.Same(t, string(got), want, "%T is encoded differently", value)
	var back T
	testenv.Do(t, json.Unmarshal(got, &back))
	cmptest.Same(t, back, value, "%T is decoded differently", value)
}
