package postgres

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fold"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.LibraryStore = (*DB)(nil)

// exactTotal is up to what number a list's total is exact. Counting on costs as much as
// showing the last pages.
const exactTotal = 1000

// rowLimits is how many rows are looked at before another index is considered.
type rowLimits struct {
	walked         int // along an order's index
	own, ownByItem int // of one uploader, and more for each texture up to the page's end
}

var defaultRowLimits = rowLimits{walked: 60_000, own: 20_000, ownByItem: 10}

// rowsPerMatch is how many rows of an order's index take as long as one texture that the index
// of names, or of an uploader, leads to.
const rowsPerMatch = 10

// list is a list of textures that is being read: its statements, in the order in which they
// are tried, and what they have told.
type list struct {
	user   core.User
	query  core.LibraryQuery
	limits rowLimits
	key    string // what is looked for in names

	from, to int // of the page, of all that is found
	most     int // that are counted

	total        int
	tids         []core.TextureID
	counted, got bool
	last         attempted
}

func (db *DB) newList(user core.User, query core.LibraryQuery) *list {
	l := &list{user: user, query: query, limits: db.rowLimits, key: fold.Key(query.Name), to: query.Page * query.PerPage}
	l.from, l.most = l.to-query.PerPage, max(exactTotal, l.to)+1
	return l
}

// FindTextures reads a list in the order of the page, along the index of that order, until
// the page is full and enough are counted, or so many rows were looked at. Only then it asks
// the index of names, or takes all of an uploader's and puts them in order. No plan is left
// to the planner: what it knows of words, of one user's textures and of what both have in
// common is too little to guess by.
func (db *DB) FindTextures(ctx context.Context, user core.User, query core.LibraryQuery) (core.Found[core.Texture], error) {
	var found core.Found[core.Texture]
	err := db.lists.do(ctx, func() (err error) {
		found, err = db.findTextures(ctx, db.newList(user, query))
		return err
	})
	return found, failure("list textures", err)
}

func (db *DB) findTextures(ctx context.Context, l *list) (found core.Found[core.Texture], err error) {
	if l.key != "" {
		if err := db.fillForSearch(ctx, textureKeys); err != nil {
			return found, err
		}
	}
	for _, next := range l.attempts() {
		if l.got && l.counted {
			break
		}
		attempt := next()
		if attempt.sql == "" {
			continue
		}
		rows, err := collect[attempted](ctx, db.library, planned(attempt.statement, attempt.off...)...)
		if err != nil {
			return found, err
		}
		l.take(rows[0], attempt.ordered)
	}
	found.Total, found.More = min(l.total, l.most-1), l.total >= l.most
	if len(l.tids) > 0 {
		found.Items, err = db.visibleTextures(ctx, l.user, l.tids)
	}
	return found, err
}

// attempted is what an attempt has found.
type attempted struct {
	Found    int              // no more than are counted
	Cut      bool             // whether there may be more than it has looked at
	TIDs     []core.TextureID // of the page
	Textures float64          // of the site, as PostgreSQL estimates; -1 if it does not
}

// take takes what an attempt has found. One that has been cut knows the first ones only if
// it has looked at textures in the order of the list.
func (l *list) take(a attempted, ordered bool) {
	l.last = a
	if !l.counted && (!a.Cut || a.Found >= l.most) {
		l.total, l.counted = a.Found, true
	}
	if !l.got && (!a.Cut || ordered && a.Found >= l.to) {
		l.tids, l.got = a.TIDs, true
	}
}

// attempt is a statement that may find a page.
type attempt struct {
	statement
	ordered bool     // in the order of the list
	off     []string // what the planner may not use
}

// planned returns a statement with what the planner may not use for it. That makes plans
// look so expensive that PostgreSQL would compile them.
func planned(s statement, off ...string) []statement {
	const set = `SELECT set_config('max_parallel_workers_per_gather', '0', true), set_config(name, 'off', true) FROM unnest($1::text[]) AS name`
	return []statement{{set, []any{append([]string{"jit", "enable_seqscan"}, off...)}}, s}
}

// attempts returns what is tried until the page and the total are known; the last tells
// both.
func (l *list) attempts() []func() attempt {
	uploader := l.query.Uploader
	own := l.limits.own + l.limits.ownByItem*l.to
	inOrder := func() attempt { return l.walk(nil, l.limits.walked) }
	search := func() attempt { return l.search() }
	gatherAll := func() attempt { return l.gather(math.MaxInt) }
	switch {
	case uploader == nil:
		return []func() attempt{inOrder, l.walkOn, search} // without a name each row that is looked at is found
	case !l.query.Liked:
		return []func() attempt{func() attempt { return l.walk(uploader, own) }, search}
	case l.key == "":
		return []func() attempt{func() attempt { return l.gather(own) }, inOrder, l.walkOn, gatherAll}
	default:
		return []func() attempt{func() attempt { return l.gather(own) }, inOrder, l.walkOn, search}
	}
}

// part is some of the textures that a user may see, which an index has in order.
type part struct {
	own   bool // of one uploader: the index is textures_uploader_newest
	where string
}

// types returns the types of textures that are listed.
func (l *list) types() []skin.Type {
	if len(l.query.Types) == 0 {
		return []skin.Type{skin.Steve, skin.Alex, skin.Cape}
	}
	return l.query.Types
}

// visible returns the textures that the user may see and that are of the types, of an
// uploader, if any.
func (l *list) visible(f *filter, uploader *core.UserID) (parts []part) {
	public, private := part{where: "public"}, part{} // no condition: none
	if uploader != nil {
		public = part{true, "coalesce(uploader, 0) = " + f.argument(*uploader) + " AND public"}
	}
	switch {
	case l.user.Permission >= core.Administrator && uploader == nil:
		private.where = "NOT public"
	case l.user.ID != 0 && uploader == nil:
		private = part{true, "coalesce(uploader, 0) = " + f.argument(l.user.ID) + " AND NOT public"}
	case l.user.Permission >= core.Administrator || l.user.ID != 0 && *uploader == l.user.ID:
		private = part{true, "coalesce(uploader, 0) = " + f.argument(*uploader) + " AND NOT public"}
	}
	for _, kind := range l.types() {
		for _, p := range []part{public, private} {
			if p.where != "" {
				parts = append(parts, part{p.own, p.where + " AND type = '" + kind.String() + "'"})
			}
		}
	}
	return parts
}

// wanted returns the condition of what is found among textures that the user may see.
func (l *list) wanted(f *filter, uploader *core.UserID) string {
	conditions := []string{"true"}
	if l.key != "" {
		conditions = append(conditions, "strpos(name_key, "+f.argument(l.key)+") > 0")
	}
	if uploader != nil {
		conditions = append(conditions, "coalesce(uploader, 0) = "+f.argument(*uploader))
	}
	return "coalesce(" + strings.Join(conditions, " AND ") + ", false)"
}

// Orders of lists. The place among the newest is what an index has: newest or ownNewest.
const (
	byNewest    = " ORDER BY place"
	byMostLiked = " ORDER BY likes DESC, tid DESC"

	newest    = "-tid AS place, tid"
	ownNewest = "0 - tid AS place, tid"
)

// merged returns textures of parts in an order, no more than a limit. Each part has the limit,
// too, so that it is planned by itself. Those that are not of one uploader are in a table.
func merged(columns, table string, parts []part, order, limit string) string {
	selects := make([]string, len(parts))
	for i, p := range parts {
		from, columns := table, columns
		if p.own {
			from, columns = "textures", strings.Replace(columns, newest, ownNewest, 1)
		}
		selects[i] = "(SELECT " + columns + " FROM " + from + " WHERE " + p.where + order + " LIMIT " + limit + ")"
	}
	return "(SELECT * FROM (" + strings.Join(selects, " UNION ALL ") + ") parts" + order + " LIMIT " + limit + ")"
}

// page selects what attempted holds, of rows with the columns n, by which they are in
// order, and wanted.
func (l *list) page(f *filter, order, cut string) string {
	return `
	SELECT least(count(*) FILTER (WHERE wanted), ` + f.argument(l.most) + `) AS found, ` + cut + ` AS cut,
		ARRAY(SELECT tid FROM found WHERE wanted` + order + ` LIMIT ` + f.argument(l.query.PerPage) + ` OFFSET ` + f.argument(l.from) + `) AS tids,
		(SELECT reltuples::float8 FROM pg_class WHERE oid = 'textures'::regclass) AS textures
	FROM found`
}

// walk looks at so many rows, of an uploader, if any, in the order of the list, until enough
// are found. The last of so many rows is found in any case: it says that there may be more.
func (l *list) walk(uploader *core.UserID, rows int) attempt {
	var f filter
	order, columns, limit := byNewest, newest+", uploader, name_key", f.argument(max(rows, l.most))
	table, rest, off := "textures", l.query.Uploader, []string{"enable_bitmapscan"} // rest is what the parts do not see to
	switch {
	case uploader != nil:
		rest, columns, off = nil, ownNewest+", name_key", ownOff
	case l.query.Liked:
		table, order, columns = "texture_likes", byMostLiked, "likes, tid, uploader, name_key"
	}
	sql := `
	WITH found AS MATERIALIZED (
		SELECT tid, n, wanted FROM (
			SELECT tid, row_number() OVER (ROWS UNBOUNDED PRECEDING) AS n, ` + l.wanted(&f, rest) + ` AS wanted
			FROM ` + merged(columns, table, l.visible(&f, uploader), order, limit) + ` looked
		) numbered
		WHERE wanted OR n = ` + limit + ` LIMIT ` + f.argument(l.most) + `
	)` + l.page(&f, " ORDER BY n", "coalesce(bool_or(n = "+limit+"), false)")
	return attempt{statement{sql, f.args}, true, off}
}

// ownOff leaves the index textures_uploader_newest. For an uploader of many textures another
// one might be read, by what it holds and the other does not.
var ownOff = []string{"enable_bitmapscan", "enable_indexonlyscan", "enable_sort"}

// walkOn is what follows a walk that has not found enough: a longer one, or none if another
// index should cost less. The share of wanted rows among those that were looked at tells how
// many more there must be, and to how many textures the other index leads.
func (l *list) walkOn() attempt {
	walked := max(l.limits.walked, l.most)
	if l.last.Found == 0 || l.last.Textures < 0 {
		return attempt{}
	}
	share := float64(l.last.Found) / float64(walked)
	rows := 1.25 * float64(l.most) / share // it is a guess
	matches := share * l.last.Textures
	if l.got && l.key != "" {
		matches = min(matches, float64(l.most)) // search looks at no more then
	}
	if min(rows, l.last.Textures) > rowsPerMatch*matches {
		return attempt{}
	}
	return l.walk(nil, int(rows))
}

// gather looks at so many rows of the uploader, and puts them in order.
func (l *list) gather(rows int) attempt {
	var f filter
	limit := f.argument(rows)
	sql := `
	WITH found AS MATERIALIZED (
		SELECT tid, likes, ` + l.wanted(&f, nil) + ` AS wanted
		FROM ` + merged(ownNewest+", likes, name_key", "textures", l.visible(&f, l.query.Uploader), byNewest, limit) + ` looked
	)` + l.page(&f, byMostLiked, "count(*) = "+limit)
	return attempt{statement{sql, f.args}, false, ownOff}
}

// search asks the index of names of each type. Where the page is known already, it looks at no
// more than are counted. Other conditions stand behind an OFFSET, so that no other index is used.
func (l *list) search() attempt {
	var f filter
	limit := math.MaxInt
	if l.got {
		limit = l.most
	}
	order := " ORDER BY tid DESC"
	if l.query.Liked {
		order = byMostLiked
	}
	var visible, named []string
	for _, p := range l.visible(&f, l.query.Uploader) {
		visible = append(visible, p.where)
	}
	key := f.argument(l.key)
	for _, kind := range l.types() {
		named = append(named, `
			(SELECT tid, likes, public, type, uploader FROM textures
			WHERE type = '`+kind.String()+`' AND trigram_text(name_key) LIKE (SELECT '%' || trigram_text(`+key+`) || '%') AND strpos(name_key, `+key+`) > 0 OFFSET 0)`)
	}
	sql := `
	WITH found AS MATERIALIZED (
		SELECT tid, likes, true AS wanted
		FROM (` + strings.Join(named, " UNION ALL") + `
		) named
		WHERE (` + strings.Join(visible, ") OR (") + `) LIMIT ` + f.argument(limit) + `
	)` + l.page(&f, order, "false")
	return attempt{statement{sql, f.args}, false, []string{"enable_indexscan", "enable_indexonlyscan"}}
}

// selectTextures has the order of the TIDs. A texture may have gone, or become private, a
// moment ago.
const selectTextures = `
	SELECT ` + textureColumns + `
	FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (tid, n) CROSS JOIN LATERAL (SELECT * FROM textures WHERE textures.tid = wanted.tid OFFSET 0) t
	WHERE t.public OR t.uploader = $2 OR $3
	ORDER BY wanted.n`

// visibleTextures returns those of the textures that exist and that a user may see.
func (db *DB) visibleTextures(ctx context.Context, user core.User, tids []core.TextureID) ([]core.Texture, error) {
	rows, err := collect[textureRow](ctx, db.reads, statement{selectTextures, []any{tids, user.ID, user.Permission >= core.Administrator}})
	if err != nil {
		return nil, err
	}
	textures := make([]core.Texture, len(rows))
	for i, row := range rows {
		if textures[i], err = row.texture(); err != nil {
			return nil, err
		}
	}
	return textures, nil
}

const deleteTextureChanges = `DELETE FROM texture_changes WHERE at < $1`

// TrimTextureChanges forgets which textures changed before a time. Cores of the release
// before read that; those of this one do not.
func (db *DB) TrimTextureChanges(ctx context.Context) (int, error) {
	tag, err := db.writes.Exec(ctx, deleteTextureChanges, time.Now().Add(-textureChangesKept))
	return int(tag.RowsAffected()), failure("trim changes of textures", err)
}

// textureChangesKept is how long cores of the release before count on.
const textureChangesKept = time.Hour
