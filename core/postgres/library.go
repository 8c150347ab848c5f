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

// exactTotal is the number up to which the total of a list is exact. Counting further costs as
// much as reading the last pages.
const exactTotal = 1000

// The cost of a match in the index of names, in rows of a scan. With a million textures in
// memory a row of a scan takes 0.36 µs, a match 2.2 µs, or 0.6 µs if its row is not read. A row
// that is not in memory takes longer.
const (
	rowsPerMatch = 8
	rowsPerEntry = 2 // without reading the row
)

// rowLimits is how many rows are scanned before the index of names is considered: of all
// textures, and of one uploader on the first scan and on the second. How many of an uploader's
// names match says nothing about the names of the whole site.
type rowLimits struct{ all, uploader, uploaderMax int }

var defaultRowLimits = rowLimits{all: 10_000, uploader: 20_000, uploaderMax: 1_000_000}

// list is the state of reading a list of textures: the query, and what its statements have
// returned.
type list struct {
	user   core.User
	query  core.LibraryQuery
	limits rowLimits
	key    string // of the text to find in names

	from, to   int // bounds of the page in all matches
	maxCounted int // of the total

	total             int
	tids              []core.TextureID
	hasTotal, hasPage bool
}

func (db *DB) newList(user core.User, query core.LibraryQuery) *list {
	l := &list{user: user, query: query, limits: db.rowLimits, key: NameKey(query.Name), to: query.Page * query.PerPage}
	l.from, l.maxCounted = l.to-query.PerPage, max(exactTotal, l.to)+1
	return l
}

// FindTextures scans an index in the order of the list, until the page is full and the total
// known, or a limit of rows is reached. Then it scans on, or searches the index of names,
// whichever should cost less by the share of rows that matched. The planner does not choose: it
// has no usable statistics of words, of one uploader's textures, or of both together.
func (db *DB) FindTextures(ctx context.Context, user core.User, query core.LibraryQuery) (core.Page[core.LibraryTexture], error) {
	var page core.Page[core.LibraryTexture]
	err := db.lists.do(ctx, func() (err error) {
		page, err = db.findTextures(ctx, db.newList(user, query))
		return err
	})
	return page, failure("list textures", err)
}

func (db *DB) findTextures(ctx context.Context, l *list) (page core.Page[core.LibraryTexture], err error) {
	if l.key != "" {
		if err := db.fillForSearch(ctx, textureKeys); err != nil {
			return page, err
		}
	}
	result, err := db.runListQuery(ctx, l.walk(l.firstRows()))
	if err != nil {
		return page, err
	}
	l.add(result, true)
	if !l.isDone() {
		siteResult := result
		if l.query.Uploader != nil {
			if siteResult, err = db.runListQuery(ctx, l.sample()); err != nil {
				return page, err
			}
		}
		if rows := l.furtherRows(result, siteResult); rows > 0 {
			if result, err = db.runListQuery(ctx, l.walk(rows)); err != nil {
				return page, err
			}
			l.add(result, true)
		}
	}
	if !l.isDone() {
		result, err := db.runListQuery(ctx, l.search())
		if err != nil {
			return page, err
		}
		l.add(result, false)
	}
	page.Total, page.More = min(l.total, l.maxCounted-1), l.total >= l.maxCounted
	if len(l.tids) > 0 {
		seesAll := l.user.Permission >= core.Administrator
		textures := statement{selectTextures, []any{l.tids, l.user.ID, seesAll}}
		page.Items, err = collect[core.LibraryTexture](ctx, db.reads, textures)
	}
	return page, err
}

// listQuery is a statement that may return the page or the total.
type listQuery struct {
	statement
	disabled []string // plan types, by setting
}

func (db *DB) runListQuery(ctx context.Context, q listQuery) (listResult, error) {
	rows, err := collect[listResult](ctx, db.library, withPlannerOff(q.statement, q.disabled...)...)
	if err != nil {
		return listResult{}, err
	}
	return rows[0], nil
}

// listResult is what a listQuery returns.
type listResult struct {
	Scanned      int              // rows, in the order of the list
	Matched      int              // of them
	Truncated    bool             // whether more rows may match
	TIDs         []core.TextureID // of the page
	SiteTextures float64          // estimate of PostgreSQL; -1 if it has none
}

// add records the page and the total, if the result has them. A truncated result has the
// first matches only if it is ordered as the list.
func (l *list) add(r listResult, ordered bool) {
	if !l.hasTotal && (!r.Truncated || r.Matched >= l.maxCounted) {
		l.total, l.hasTotal = r.Matched, true
	}
	if !l.hasPage && (!r.Truncated || ordered && r.Matched >= l.to) {
		l.tids, l.hasPage = r.TIDs, true
	}
}

// isDone reports whether page and total are known.
func (l *list) isDone() bool { return l.hasPage && l.hasTotal }

// withPlannerOff returns a statement preceded by settings that disable plan types. These raise
// the estimated cost, for which PostgreSQL would use JIT, so that is disabled, too.
func withPlannerOff(s statement, off ...string) []statement {
	const set = `SELECT set_config('max_parallel_workers_per_gather', '0', true), set_config(name, 'off', true) FROM unnest($1::text[]) AS name`
	return []statement{{set, []any{append([]string{"jit", "enable_seqscan"}, off...)}}, s}
}

// firstRows returns how many rows the first scan reads.
func (l *list) firstRows() int {
	switch {
	case l.key == "":
		return l.maxCounted // every row matches
	case l.query.Uploader != nil:
		return max(l.limits.uploader, l.maxCounted)
	default:
		return max(l.limits.all, l.maxCounted)
	}
}

// furtherRows returns how many rows a second scan reads, given the result of the first and that
// of a scan of all the site's textures: enough for the total, enough for the page, or none. It
// takes the cheapest, with the search of the index of names that follows.
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
	toTotal, toPage := until(l.maxCounted, 1.2), until(l.to, 2) // with a margin: a scan that ends too early is wasted
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

// matchShare returns the share of scanned rows that match.
func matchShare(r listResult) float64 { return float64(r.Matched) / float64(max(r.Scanned, 1)) }

// visibleSet is a set of textures that the user may see, which one index has in order.
type visibleSet struct {
	ofUploader bool // in the index by uploader
	where      string
}

// types returns the texture types of the list.
func (l *list) types() []skin.Type {
	if len(l.query.Types) == 0 {
		return []skin.Type{skin.Classic, skin.Slim, skin.Cape}
	}
	return l.query.Types
}

// visible returns the sets of textures that the user may see, of the types and the uploader of
// the query. uploader is the SQL expression of a texture's uploader, 0 if that user is deleted.
func (l *list) visible(f *filter, uploader string) (parts []visibleSet) {
	of := func(user core.UserID) string { return uploader + " = " + f.argument(user) + " AND " }
	public, private := visibleSet{where: "public"}, visibleSet{} // an empty condition: no such set
	isAdministrator := l.user.Permission >= core.Administrator
	if uploaderID := l.query.Uploader; uploaderID != nil {
		public = visibleSet{true, of(*uploaderID) + "public"}
		if isAdministrator || l.user.ID != 0 && *uploaderID == l.user.ID {
			private = visibleSet{true, of(*uploaderID) + "NOT public"}
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

// order is a sort order of lists, with the table and columns to read.
type order struct{ table, uploader, columns, uploaderColumns, orderBy string }

// The place of a texture, the newest first, is in the indexes. Those by uploader have a
// different expression of it, so that the planner does not confuse the indexes.
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

// order returns the sort order of the list.
func (l *list) order() order {
	if l.query.ByLikes {
		return mostLiked
	}
	return newest
}

// union returns the first textures of several sets in this order. Each set has the limit, too,
// so that each is planned by itself.
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

// siteTextures is PostgreSQL's estimate of the number of textures.
const siteTextures = `(SELECT reltuples::float8 FROM pg_class WHERE oid = 'textures'::regclass)`

// sample scans the first rows of the same list for all uploaders.
func (l *list) sample() listQuery {
	all := *l
	all.query.Uploader = nil
	return all.walk(l.limits.all)
}

// walk scans at most this number of rows in the order of the list. The result is truncated if it has
// that many rows.
func (l *list) walk(rows int) listQuery {
	var f filter
	o, limit, condition := l.order(), f.argument(rows), "true"
	if l.key != "" {
		condition = "strpos(name_key, " + f.argument(l.key) + ") > 0"
	}
	sql := `
	SELECT count(*) AS scanned, count(*) FILTER (WHERE matches) AS matched, count(*) = ` + limit + ` AS truncated,
		coalesce((array_agg(tid) FILTER (WHERE matches))[` + f.argument(l.from+1) + `:` + f.argument(l.to) + `], '{}') AS tids, ` + siteTextures + ` AS site_textures
	FROM (SELECT tid, ` + condition + ` AS matches FROM ` + o.union(l.visible(&f, o.uploader), limit) + ` scanned) tested`
	return listQuery{statement{sql, f.args}, []string{"enable_bitmapscan", "enable_sort", "enable_incremental_sort"}}
}

// search searches the index of names, one for each type. If the page is known, it stops at the
// maximum total. Other conditions come after an OFFSET, so that no other index is used.
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

// selectTextures returns the textures that exist and that the user may see, in the order of the TIDs.
// It asks the primary: since the list was read a texture may have been deleted or made private,
// which a standby may not know yet.
const selectTextures = `
	SELECT ` + textureColumns + `, ` + itemName + `
	FROM unnest($1::bigint[]) WITH ORDINALITY AS requested (tid, n) CROSS JOIN LATERAL (SELECT * FROM textures WHERE textures.tid = requested.tid OFFSET 0) t
	WHERE t.public OR t.uploader = $2 OR $3
	ORDER BY requested.n`

const deleteTextureChanges = `DELETE FROM texture_changes WHERE at < $1`

// TrimTextureChanges deletes old rows of texture_changes, which only cores of the previous
// release read.
func (db *DB) TrimTextureChanges(ctx context.Context) (int, error) {
	tag, err := db.writes.Exec(ctx, deleteTextureChanges, time.Now().Add(-textureChangeRetention))
	return int(tag.RowsAffected()), failure("trim changes of textures", err)
}

// textureChangeRetention is how far back cores of the previous release read.
const textureChangeRetention = time.Hour
