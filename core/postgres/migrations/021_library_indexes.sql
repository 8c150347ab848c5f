-- core migrate builds these CONCURRENTLY before it runs this file, where there are textures:
-- it takes minutes for millions.
--
-- An index for each order of the lists, of all textures and of one uploader's. They have all
-- that lists are filtered by, so that they are read alone and from end to end, not rows all over
-- the table. The uploader is 0 where the user is deleted: an index that is searched for NULL has no
-- order. Each has an order that no other index has, so that the planner takes none
-- of the others in its place.
CREATE INDEX IF NOT EXISTS textures_newest ON textures (public, type, (-tid)) INCLUDE (tid, name_key);
CREATE INDEX IF NOT EXISTS textures_uploader_newest ON textures (coalesce(uploader, 0), public, type, (0 - tid)) INCLUDE (tid, uploader, name_key);
CREATE INDEX IF NOT EXISTS texture_likes_most ON texture_likes (public, type, likes DESC, (-tid)) INCLUDE (tid, name_key);
CREATE INDEX IF NOT EXISTS texture_likes_uploader_most ON texture_likes (uploader, public, type, likes DESC, (0 - tid)) INCLUDE (tid, name_key);

-- The operator class is found in whatever schema the extension has been created.
SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), (
  SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'
)), false);
-- One of each type: a word such as "cape" is in many names, but not in those of skins. A list
-- of what was added and is to be put in later would hold up a write when it is full: for 2.8 s,
-- as measured with ten million textures.
CREATE INDEX IF NOT EXISTS textures_name_steve ON textures USING gin (name_key gin_trgm_ops) WITH (fastupdate = off) WHERE type = 'steve';
CREATE INDEX IF NOT EXISTS textures_name_alex ON textures USING gin (name_key gin_trgm_ops) WITH (fastupdate = off) WHERE type = 'alex';
CREATE INDEX IF NOT EXISTS textures_name_cape ON textures USING gin (name_key gin_trgm_ops) WITH (fastupdate = off) WHERE type = 'cape';

CREATE INDEX IF NOT EXISTS textures_name_key_missing ON textures (tid) WHERE name_key IS NULL;

-- Lists are read from indexes alone where the visibility map has the page of a row. A like takes a
-- page of 36 rows of textures out of it, and one of 97 of texture_likes. VACUUM puts them back when
-- three in ten thousand textures have been liked, not a fifth, and when a hundredth is new.
ALTER TABLE textures SET (autovacuum_vacuum_scale_factor = 0.0003, autovacuum_vacuum_insert_scale_factor = 0.01);
ALTER TABLE texture_likes SET (autovacuum_vacuum_scale_factor = 0.0003, autovacuum_vacuum_insert_scale_factor = 0.01);

---- create above / drop below ----

ALTER TABLE texture_likes RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
ALTER TABLE textures RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
DROP INDEX textures_name_key_missing, textures_name_cape, textures_name_alex, textures_name_steve, textures_uploader_newest, texture_likes_uploader_most, texture_likes_most, textures_newest;
