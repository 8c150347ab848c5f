package postgres

import (
	"context"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.ShowcaseStore = (*DB)(nil)

// wallReserve is how many skins are read beyond the length of a wall, since reports may be open about some.
const wallReserve = 300

// selectWalls reads $2 entries from the front of the index of each order, and the rows of $1 of them.
var selectWalls = func() string {
	skins := (&list{query: core.LibraryQuery{Types: []skin.Type{skin.Classic, skin.Slim}}}).visible(nil, "")
	wall := func(o order, isMostLiked string) string {
		return `(SELECT tid, ` + isMostLiked + ` AS is_most_liked FROM ` + o.union(skins, "$2") + ` listed
			WHERE NOT EXISTS (SELECT FROM reports r WHERE r.tid = listed.tid AND r.state = 'open')` + o.orderBy + ` LIMIT $1)`
	}
	return `
	SELECT wall.is_most_liked, ` + textureColumns + `
	FROM (` + wall(newest, "false") + ` UNION ALL ` + wall(mostLiked, "true") + `) wall
	CROSS JOIN LATERAL (SELECT * FROM textures WHERE textures.tid = wall.tid AND textures.public OFFSET 0) t
	ORDER BY CASE WHEN wall.is_most_liked THEN t.likes END DESC, t.tid DESC`
}()

// wallsDisabled are the types of plans that would read more than the front of the indexes.
var wallsDisabled = []string{"enable_bitmapscan", "enable_hashjoin", "enable_mergejoin"}

// Walls returns the skins of the front page.
func (db *DB) Walls(ctx context.Context, limit int) (core.Walls, error) {
	rows, err := collect[struct {
		core.Texture
		IsMostLiked bool
	}](ctx, db.reads, withPlannerOff(statement{selectWalls, []any{limit, limit + wallReserve}}, wallsDisabled...)...)
	var walls core.Walls
	for _, row := range rows {
		if row.IsMostLiked {
			walls.MostLiked = append(walls.MostLiked, row.Texture)
		} else {
			walls.Newest = append(walls.Newest, row.Texture)
		}
	}
	return walls, failure("read the skins of the front page", err)
}

const (
	selectPlayerByKey = `SELECT ` + playerColumns + ` FROM players WHERE name_key = $1`

	selectTexturesByID = `SELECT ` + textureColumns + ` FROM textures t WHERE tid = ANY ($1)`
)

// WornPlayer returns a player with what it wears.
func (db *DB) WornPlayer(ctx context.Context, key string) (core.WornPlayer, error) {
	players, err := collect[core.Player](ctx, db.reads, statement{selectPlayerByKey, []any{key}})
	player, err := one(players, failure("read a player", err), errNoPlayer)
	if err != nil {
		return core.WornPlayer{}, err
	}
	worn := core.WornPlayer{ID: player.ID, NamedPlayer: core.NamedPlayer{UUID: player.UUID, Name: player.Name}}
	textures, err := collect[core.Texture](ctx, db.reads, statement{selectTexturesByID, []any{[]core.TextureID{player.Skin, player.Cape}}})
	for i := range textures {
		switch textures[i].ID {
		case player.Skin:
			worn.Skin = &textures[i]
		case player.Cape:
			worn.Cape = &textures[i]
		}
	}
	return worn, failure("read what a player wears", err)
}
