package postgres

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.MappingStore = (*DB)(nil)

// selectMappings is one statement, so that cursor and mappings come from one snapshot. It
// returns the cursor even if no key is found.
const selectMappings = `
	WITH matches AS (
		SELECT 'name:' || p.name_key AS key, p.pid, p.uuid, p.name, p.last_modified, 0::bigint AS uid, 0::bigint AS avatar, p.tid_skin AS tid, p.tid_cape
		FROM players p WHERE p.name_key = ANY ($1::text[])
		UNION ALL
		SELECT 'uuid:' || p.uuid, p.pid, p.uuid, p.name, p.last_modified, 0, 0, p.tid_skin, p.tid_cape
		FROM players p WHERE p.uuid = ANY ($2::uuid[])
		UNION ALL
		SELECT 'uid:' || u.uid, 0, NULL, '', NULL, u.uid, u.avatar, u.avatar, NULL
		FROM users u WHERE u.uid = ANY ($3::bigint[])
		UNION ALL
		SELECT 'tid:' || t.tid, 0, NULL, '', NULL, 0, 0, t.tid, NULL
		FROM textures t WHERE t.tid = ANY ($4::bigint[])
		UNION ALL
		SELECT 'hash:' || encode(t.hash, 'hex'), 0, NULL, '', NULL, 0, 0, min(t.tid), NULL
		FROM textures t WHERE t.hash = ANY ($5::bytea[]) GROUP BY t.hash
	)
	SELECT
		feed.epoch::text, feed.revision,
		f.key, f.pid, f.uuid, f.name, f.uid, f.avatar,
		ceil(extract(epoch FROM CASE WHEN f.pid > 0 THEN greatest(f.last_modified, t.retyped_at, c.retyped_at) ELSE t.upload_at END))::bigint AS modified,
		t.tid, t.hash, t.type, t.public, c.tid AS cape_tid, c.hash AS cape_hash, c.type AS cape_type
	FROM feed
	LEFT JOIN matches f ON true
	LEFT JOIN textures t ON t.tid = f.tid
	LEFT JOIN textures c ON c.tid = f.tid_cape`

type mappingRow struct {
	Epoch    string
	Revision int64

	Key              *edgeproto.Key
	PID, UID, Avatar *int64
	UUID             *uuid.UUID
	Name             *string
	Modified         *int64
	TID, CapeTID     *int64
	Hash, CapeHash   skin.Hash
	Type, CapeType   skin.Type
	Public           *bool
}

// keysByKind are the keys of a look-up, by their kind.
type keysByKind struct {
	names      []string
	uuids      []string // canonical
	uids, tids []int64
	hashes     []skin.Hash
}

// add adds a key. A malformed key is ignored, since nothing has it.
func (k *keysByKind) add(key edgeproto.Key) {
	kind, value, _ := strings.Cut(string(key), ":")
	number, numberErr := strconv.ParseInt(value, 10, 64)
	switch kind + ":" {
	case edgeproto.NamePrefix:
		// text in PostgreSQL holds neither, and no player has such a name.
		if utf8.ValidString(value) && !strings.Contains(value, "\x00") {
			k.names = append(k.names, value)
		}
	case edgeproto.UUIDPrefix:
		if id, err := uuid.Parse(value); err == nil {
			k.uuids = append(k.uuids, id.String())
		}
	case edgeproto.UIDPrefix:
		if numberErr == nil {
			k.uids = append(k.uids, number)
		}
	case edgeproto.TIDPrefix:
		if numberErr == nil {
			k.tids = append(k.tids, number)
		}
	case edgeproto.HashPrefix:
		if hash, err := skin.ParseHash(value); err == nil {
			k.hashes = append(k.hashes, hash)
		}
	}
}

// Mappings resolves keys. The mapping of a key that does not exist is empty.
func (db *DB) Mappings(ctx context.Context, keys []edgeproto.Key) (edgeproto.LookupResponse, error) {
	var k keysByKind
	for _, key := range keys {
		k.add(key)
	}
	rows, err := lookUp[mappingRow](ctx, db, statement{selectMappings, []any{k.names, k.uuids, k.uids, k.tids, k.hashes}})
	if err != nil {
		return edgeproto.LookupResponse{}, failure("read mappings", err)
	}

	response := edgeproto.LookupResponse{Mappings: make([]edgeproto.Mapping, len(keys))}
	mappings := make(map[edgeproto.Key]edgeproto.Mapping, len(rows))
	for _, row := range rows {
		response.Epoch, response.Revision = row.Epoch, row.Revision
		if row.Key == nil {
			continue
		}
		mappings[*row.Key] = row.mapping()
	}
	for i, key := range keys {
		response.Mappings[i] = mappings[key]
	}
	return response, nil
}

func (r mappingRow) mapping() edgeproto.Mapping {
	texture, cape := mappedTexture(r.TID, r.Hash, r.Type), mappedTexture(r.CapeTID, r.CapeHash, r.CapeType)
	switch {
	case *r.PID != 0:
		return edgeproto.Mapping{Player: &edgeproto.Player{PID: *r.PID, UUID: r.UUID.String(), Name: *r.Name, Skin: texture, Cape: cape}, Modified: *r.Modified}
	case *r.UID != 0:
		return edgeproto.Mapping{User: &edgeproto.User{UID: *r.UID, Avatar: *r.Avatar, Texture: texture}}
	default:
		if texture != nil {
			texture.Private = !*r.Public && strings.HasPrefix(string(*r.Key), edgeproto.TIDPrefix)
		}
		return edgeproto.Mapping{Texture: texture, Modified: *r.Modified}
	}
}

// mappedTexture returns nil where there is no texture.
func mappedTexture(tid *int64, hash skin.Hash, kind skin.Type) *edgeproto.Texture {
	if tid == nil {
		return nil
	}
	return &edgeproto.Texture{TID: *tid, Hash: hash, Type: kind}
}

// selectMostLiked reads the index of the order, and then the rows.
var selectMostLiked = `
	SELECT t.hash
	FROM ` + mostLiked.union((&list{}).visible(nil, ""), "$1") + ` liked
	CROSS JOIN LATERAL (SELECT hash FROM textures WHERE textures.tid = liked.tid OFFSET 0) t
	ORDER BY liked.likes DESC, liked.place`

// MostLiked returns the hashes of the public textures with the most likes. It uses the pool for
// reads, so that look-ups do not wait for it.
func (db *DB) MostLiked(ctx context.Context, limit int) ([]skin.Hash, error) {
	rows, err := collect[struct{ Hash skin.Hash }](ctx, db.reads, withPlannerOff(statement{selectMostLiked, []any{limit}}, "enable_bitmapscan")...)
	if err != nil {
		return nil, failure("read the most liked textures", err)
	}
	hashes := make([]skin.Hash, len(rows))
	for i, row := range rows {
		hashes[i] = row.Hash
	}
	return hashes, nil
}
