-- A reported texture may be deleted before the report is settled. Its pixels can be refused all the same.
ALTER TABLE reports
  ADD COLUMN pixels bytea CHECK (octet_length(pixels) = 32),
  ADD COLUMN name text,
  ADD COLUMN type text;
COMMENT ON COLUMN reports.pixels IS 'Of the texture, as in textures; NULL if a core of the release before added the report.';
COMMENT ON COLUMN reports.name IS 'The same of its name.';
COMMENT ON COLUMN reports.type IS 'The same of its type.';
UPDATE reports r SET pixels = t.pixels, name = t.name, type = t.type FROM textures t WHERE t.tid = r.tid;

---- create above / drop below ----

ALTER TABLE reports
  DROP COLUMN pixels,
  DROP COLUMN name,
  DROP COLUMN type;
