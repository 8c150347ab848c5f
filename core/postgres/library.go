package postgres

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

var _ core.LibraryStore = (*DB)(nil)

// exactTotal is up to what number a list's total is exact. Counting on costs as much as
// showing the last pages.
const exactTotal = 1000

// What a texture costs that the index of names leads to, in rows that a walk looks at. With a
// million textures in memory a row takes 0.36 µs, a texture 2.2 µs, or 0.6 if its row is not read;
// where not all is in memory its row takes longer.
const (
	rowsPerMatch = 8
	rowsPerEntry = 2 // its row is not read
)

// rowLimits is how many rows are looked at before the index of names is considered: of all
// textures, and of one uploader at first and in the end. What share of an uploader's names has a
// word does not tell how many textures of the site have it.
type rowLimits struct{ all, uploader, uploaderMax int }

var defaultRowLimits = rowLimits{all: 10_000, uploader: 20_000, uploaderMax: 1_000_000}

// list is a list of textures that is being read: its statements, in the order in which they
// are tried, and what they have told.
type list struct {
	user   core.User
	query  core.LibraryQuery
	limits rowLimits
	key    string // what is looked for in names

	from, to   int // of the page, of all that is found
	maxCounted int // that are counted

	total             int
	tids              []core.TextureID
	hasTotal, hasPage bool
}

func (db *DB) newList(user core.User, query core.LibraryQuery) *list {
	l := &list{user: user, query: query, limits: db.rowLimits, key: NameKey(query.Name), to: query.Page * query.PerPage}
	l.from, l.maxCounted = l.to-query.PerPage, max(exactTotal, l.to)+1
	return l
}

// FindTextures reads a list in the order of the page, along an index of that order, until the
// page is full and enough are counted, or so many rows were looked at. Then it goes on, or asks
// the index of names, whichever should cost less by the share of rows that were found. No plan
// is left to the planner: what it knows of words, of one user's textures and of what both have
// in common is too little to guess by.
func (db *DB) FindTextures(ctx context.Context, user core.User, query core.LibraryQuery) (core.Page[core.Texture], error) {
	var found core.Page[core.Texture]
	err := db.lists.do(ctx, func() (err error) {
		found, err = db.findTextures(ctx, db.newList(user, query))
		return err
	})
	return found, failure("list textures", err)
}

func (db *DB) findTextures(ctx context.Context, l *list) (found core.Page[core.Texture], err error) {
	if l.key != "" {
		if err := db.fillForSearch(ctx, textureKeys); err != nil {
			return found, err
		}
	}
	result, err := db.runListQuery(ctx, l.walk(l.firstRows()))
	if err != nil {
		return found, err
	}
	l.add(result, true)
	if !l.isDone() {
		siteResult := result
		if l.query.Uploader != nil {
			if siteResult, err = db.runListQuery(ctx, l.sample()); err != nil {
				return found, err
			}
		}
		if rows := l.furtherRows(result, siteResult); rows > 0 {
			if result, err = db.runListQuery(ctx, l.walk(rows)); err != nil {
				return found, err
			}
			l.add(result, true)
		}
	}
	if !l.isDone() {
		result, err := db.runListQuery(ctx, l.search())
		if err != nil {
			return found, err
		}
		l.add(result, false)
	}
	found.Total, found.More = min(l.total, l.maxCounted-1), l.total >= l.maxCounted
	if len(l.tids) > 0 {
		found.Items, err = db.visibleTextures(ctx, l.user, l.tids)
	}
	return found, err
}

// listQuery is a statement that may find a page.
type listQuery struct {
	statement
	disabled []string // what the planner may not use
}

func (db *DB) runListQuery(ctx context.Context, a listQuery) (listResult, error) {
	rows, err := collect[listResult](ctx, db.library, withPlannerOff(a.statement, a.disabled...)...)
	if err != nil {
		return listResult{}, err
	}
	return rows[0], nil
}

// listResult is what an attempt has found.
type listResult struct {
	Scanned      int              // textures, in the order of the list
	Matched      int              // of them
	Truncated    bool             // whether there may be more than it has looked at
	TIDs         []core.TextureID // of the page
	SiteTextures float64          // of the site, as PostgreSQL estimates; -1 if it does not
}

// add takes what an attempt has found. One that has been cut knows the first ones only if
// it has looked at textures in the order of the list.
func (l *list) add(a listResult, ordered bool) {
	if !l.hasTotal && (!a.Truncated || a.Matched >= l.maxCounted) {
		l.total, l.hasTotal = a.Matched, true
	}
	if !l.hasPage && (!a.Truncated || ordered && a.Matched >= l.to) {
		l.tids, l.hasPage = a.TIDs, true
	}
}

// isDone reports whether the page and the total are known.
func (l *list) isDone() bool { return l.hasPage && l.hasTotal }

// withPlannerOff returns a statement with what the planner may not use for it. That makes plans
// look so expensive that PostgreSQL would compile them.
func withPlannerOff(s statement, off ...string) []statement {
	const set = `SELECT set_config('max_parallel_workers_per_gather', '0', true), set_config(name, 'off', true) FROM unnest($1::text[]) AS name`
	return []statement{{set, []any{append([]string{"jit", "enable_seqscan"}, off...)}}, s}
}

// firstRows returns how many rows the first walk looks at.
func (l *list) firstRows() int {
	switch {
	case l.key == "":
		return l.maxCounted // each is found
	case l.query.Uploader != nil:
		return max(l.limits.uploader, l.maxCounted)
	default:
		return max(l.limits.all, l.maxCounted)
	}
}

// furtherRows returns how many rows a second walk looks at, by what the first one and one of
// all of the site's textures have found: as many as the total takes, as the page takes, or none,
// whichever should cost the least together with the index of names.
func (l *list) furtherRows(result, siteResult listResult) int {
	matches := matchShare(siteResult) * siteResult.SiteTextures
	if matches <= 0 {
		return 0
	}
	last := max(siteResult.SiteTextures, float64(result.Scanned)) + 1
	if l.query.Uploader != nil {
		last = float64(l.limits.uploaderMax)
	}
	until := func(matched int, margin float64) float64 {
		return min(margin*float64(matched)/matchShare(result), last)
	}
	toTotal, toPage := until(l.maxCounted, 1.2), until(l.to, 2) // a walk that ends too early was in vain
	all, counted := rowsPerMatch*matches, rowsPerEntry*matches+rowsPerMatch*min(matches, float64(l.maxCounted))
	if l.hasPage {
		toPage, all = 0, counted
	}
	switch min(toTotal, toPage+counted, all) {
	case toTotal:
		return int(toTotal)
	case all:
		return 0
	default:
		return int(toPage)
	}
}

// matchShare returns the share of textures that were found among those that were looked at.
func matchShare(a listResult) float64 { return float64(a.Matched) / float64(max(a.Scanned, 1)) }

// visibleSet is some of the textures that a user may see, which an index has in order.
type visibleSet struct {
	ofUploader bool // of one uploader
	where      string
}

// types returns the types of textures that are listed.
func (l *list) types() []skin.Type {
	if len(l.query.Types) == 0 {
		return []skin.Type{skin.Classic, skin.Slim, skin.Cape}
	}
	return l.query.Types
}

// visible returns the textures that the user may see and that are of the types and of the
// uploader. An expression stands for the uploader of a texture, 0 if that user is deleted.
func (l *list) visible(f *filter, uploader string) (parts []visibleSet) {
	of := func(user core.UserID) string { return uploader + " = " + f.argument(user) + " AND " }
	public, private := visibleSet{where: "public"}, visibleSet{} // no condition: none
	isAdministrator := l.user.Permission >= core.Administrator
	if wanted := l.query.Uploader; wanted != nil {
		public = visibleSet{true, of(*wanted) + "public"}
		if isAdministrator || l.user.ID != 0 && *wanted == l.user.ID {
			private = visibleSet{true, of(*wanted) + "NOT public"}
		}
	} else if isAdministrator {
		private.where = "NOT public"
	} else if l.user.ID != 0 {
		private = visibleSet{true, of(l.user.ID) + "NOT public"}
	}
	for _, kind := range l.types() {
		for _, p := range []visibleSet{public, private} {
			if p.where != "" {
				parts = append(parts, visibleSet{p.ofUploader, p.where + " AND type = '" + kind.String() + "'"})
			}
		}
	}
	return parts
}

// order is an order of lists, and what is read in it.
type order struct{ table, uploader, columns, uploaderColumns, orderBy string }

// The place of a texture, the newest first, is what the indexes have. That of an uploader's is
// another expression, so that the planner takes no other index for them.
var (
	newest = order{
		table: "textures", uploader: "coalesce(uploader, 0)",
		columns: "-tid AS place, tid, name_key", uploaderColumns: "0 - tid AS place, tid, name_key", orderBy: " ORDER BY place",
	}
	mostLiked = order{
		table: "texture_likes", uploader: "uploader",
		columns: "likes, -tid AS place, tid, name_key", uploaderColumns: "likes, 0 - tid AS place, tid, name_key", orderBy: " ORDER BY likes DESC, place",
	}
)

// order returns the order of the list.
func (l *list) order() order {
	if l.query.ByLikes {
		return mostLiked
	}
	return newest
}

// union returns textures of parts in the order, no more than a limit. Each part has the
// limit, too, so that it is planned by itself.
func (o order) union(parts []visibleSet, limit string) string {
	selects := make([]string, len(parts))
	for i, p := range parts {
		columns := o.columns
		if p.ofUploader {
			columns = o.uploaderColumns
		}
		selects[i] = "(SELECT " + columns + " FROM " + o.table + " WHERE " + p.where + o.orderBy + " LIMIT " + limit + ")"
	}
	return "(SELECT * FROM (" + strings.Join(selects, " UNION ALL ") + ") parts" + o.orderBy + " LIMIT " + limit + ")"
}

// siteTextures is how many textures there are, as PostgreSQL estimates.
const siteTextures = `(SELECT reltuples::float8 FROM pg_class WHERE oid = 'textures'::regclass)`

// sample looks at the first rows of the same list of all uploaders.
func (l *list) sample() listQuery {
	all := *l
	all.query.Uploader = nil
	return all.walk(l.limits.all)
}

// walk looks at so many rows in the order of the list. There may be more if there are so many.
func (l *list) walk(rows int) listQuery {
	var f filter
	o, limit, wanted := l.order(), f.argument(rows), "true"
	if l.key != "" {
		wanted = "strpos(name_key, " + f.argument(l.key) + ") > 0"
	}
	sql := `
	SELECT count(*) AS scanned, count(*) FILTER (WHERE matches) AS matched, count(*) = ` + limit + ` AS truncated,
		coalesce((array_agg(tid) FILTER (WHERE matches))[` + f.argument(l.from+1) + `:` + f.argument(l.to) + `], '{}') AS tids, ` + siteTextures + ` AS site_textures
	FROM (SELECT tid, ` + wanted + ` AS matches FROM ` + o.union(l.visible(&f, o.uploader), limit) + ` scanned) tested`
	return listQuery{statement{sql, f.args}, []string{"enable_bitmapscan", "enable_sort", "enable_incremental_sort"}}
}

// search asks the index of names of each type. Where the page is known already, it looks at no
// more than are counted. Other conditions stand behind an OFFSET, so that no other index is used.
func (l *list) search() listQuery {
	var f filter
	limit := math.MaxInt
	if l.hasPage {
		limit = l.maxCounted
	}
	orderBy := " ORDER BY tid DESC"
	if l.query.ByLikes {
		orderBy = " ORDER BY likes DESC, tid DESC"
	}
	var visible, byName []string
	for _, p := range l.visible(&f, newest.uploader) {
		visible = append(visible, p.where)
	}
	key := f.argument(l.key)
	for _, kind := range l.types() {
		byName = append(byName, `
			(SELECT tid, likes, public, type, uploader FROM textures WHERE type = '`+kind.String()+`' AND name_key LIKE '%' || `+key+` || '%' OFFSET 0)`)
	}
	sql := `
	WITH matches AS MATERIALIZED (
		SELECT tid, likes FROM (` + strings.Join(byName, " UNION ALL") + `
		) by_name
		WHERE (` + strings.Join(visible, ") OR (") + `) LIMIT ` + f.argument(limit) + `
	)
	SELECT 0 AS scanned, count(*) AS matched, false AS truncated, 0::float8 AS site_textures,
		ARRAY(SELECT tid FROM matches` + orderBy + ` LIMIT ` + f.argument(l.query.PerPage) + ` OFFSET ` + f.argument(l.from) + `) AS tids
	FROM matches`
	return listQuery{statement{sql, f.args}, []string{"enable_indexscan", "enable_indexonlyscan"}}
}

// selectTextures has the order of the TIDs. A texture may have gone, or become private, since
// the list was read; a standby may tell of neither. So the primary is asked.
const selectTextures = `
	SELECT ` + textureColumns + `
	FROM unnest($1::bigint[]) WITH ORDINALITY AS requested (tid, n) CROSS JOIN LATERAL (SELECT * FROM textures WHERE textures.tid = requested.tid OFFSET 0) t
	WHERE t.public OR t.uploader = $2 OR $3
	ORDER BY requested.n`

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
	tag, err := db.writes.Exec(ctx, deleteTextureChanges, time.Now().Add(-textureChangeRetention))
	return int(tag.RowsAffected()), failure("trim changes of textures", err)
}

// textureChangeRetention is how long cores of the release before count on.
const textureChangeRetention = time.Hour
