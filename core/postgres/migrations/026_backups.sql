CREATE TABLE backups (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  site     uuid NOT NULL DEFAULT gen_random_uuid(),
  began_at timestamptz
);
COMMENT ON TABLE backups IS 'The one row says whose backups are in a directory, and when the last whole one began.';
COMMENT ON COLUMN backups.site IS 'Made once. It is in every backup, and stays when one is restored.';
COMMENT ON COLUMN backups.began_at IS 'NULL if there was none.';
INSERT INTO backups DEFAULT VALUES;
-- Backups are made with a role that may read everything, and write only this.
GRANT SELECT, UPDATE ON backups TO PUBLIC;

---- create above / drop below ----

DROP TABLE backups;
