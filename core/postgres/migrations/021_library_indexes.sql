-- core migrate builds these CONCURRENTLY before it runs this file, where there are textures:
-- it takes minutes for millions.
--
-- An index for each order of the lists. Both have all that lists are filtered by, so that
-- they are read alone and from end to end, not rows all over the table. Textures of one
-- uploader have another one; those of users who are deleted have 0 there, as an index that is
-- searched for NULL has no order. The newest come first in an order that no other index has:
-- so the planner takes none of the others for it.
CREATE INDEX IF NOT EXISTS textures_newest ON textures (public, type, (-tid)) INCLUDE (tid, uploader, name_key);
CREATE INDEX IF NOT EXISTS texture_likes_most ON texture_likes (public, type, likes DESC, tid DESC) INCLUDE (uploader, name_key);
CREATE INDEX IF NOT EXISTS textures_uploader_newest ON textures (coalesce(uploader, 0), public, type, (0 - tid));

-- The operator class is found in whatever schema the extension has been created.
SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), (
  SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'
)), false);
-- One of each type: a word such as "cape" is in many names, but not in those of skins.
CREATE INDEX IF NOT EXISTS textures_name_steve ON textures USING gin (trigram_text(name_key) gin_trgm_ops) WHERE type = 'steve';
CREATE INDEX IF NOT EXISTS textures_name_alex ON textures USING gin (trigram_text(name_key) gin_trgm_ops) WHERE type = 'alex';
CREATE INDEX IF NOT EXISTS textures_name_cape ON textures USING gin (trigram_text(name_key) gin_trgm_ops) WHERE type = 'cape';

CREATE INDEX IF NOT EXISTS textures_name_key_missing ON textures (tid) WHERE name_key IS NULL;

-- Lists trust the visibility map, and likes spoil it: it is put right when a thousandth of all
-- textures has been liked, not a fifth, and when a hundredth is new.
ALTER TABLE textures SET (autovacuum_vacuum_scale_factor = 0.001, autovacuum_vacuum_insert_scale_factor = 0.01);
ALTER TABLE texture_likes SET (autovacuum_vacuum_scale_factor = 0.001, autovacuum_vacuum_insert_scale_factor = 0.01);

---- create above / drop below ----

ALTER TABLE texture_likes RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
ALTER TABLE textures RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
DROP INDEX textures_name_key_missing, textures_name_cape, textures_name_alex, textures_name_steve, textures_uploader_newest, texture_likes_most, textures_newest;
