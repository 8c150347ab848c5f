-- A closet is listed by category. A texture's type may change, but never between
-- skin and cape.
ALTER TABLE closet_items ADD COLUMN cape boolean;
UPDATE closet_items c SET cape = (t.type = 'cape') FROM textures t WHERE t.tid = c.tid;
ALTER TABLE closet_items ALTER COLUMN cape SET NOT NULL;
COMMENT ON COLUMN closet_items.cape IS 'Whether the texture is a cape, so that a page is found without looking at textures.';

DROP INDEX closet_items_newest;
CREATE INDEX closet_items_newest ON closet_items (uid, cape, added_at DESC, tid DESC);

---- create above / drop below ----

DROP INDEX closet_items_newest;
ALTER TABLE closet_items DROP COLUMN cape;
CREATE INDEX closet_items_newest ON closet_items (uid, added_at DESC, tid DESC);
