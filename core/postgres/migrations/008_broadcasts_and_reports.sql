-- What everybody is told is one row, however many they are: who it is for is told
-- when they look.
CREATE TABLE broadcasts (
  mid      bigint PRIMARY KEY REFERENCES messages ON DELETE CASCADE,
  newest   bigint NOT NULL,
  id       uuid NOT NULL DEFAULT gen_random_uuid() CONSTRAINT broadcasts_id_key UNIQUE,
  audience text NOT NULL CHECK (audience IN ('all', 'normal'))
);
COMMENT ON TABLE broadcasts IS 'Messages for everybody, or for all normal users.';
COMMENT ON COLUMN broadcasts.newest IS 'The highest uid when it was sent. Who registers later is told nothing.';
COMMENT ON COLUMN broadcasts.id IS 'What each of them reads it by.';
COMMENT ON COLUMN broadcasts.audience IS 'all, or normal: those whose permission is 0 when they look.';

CREATE TABLE broadcast_reads (
  uid bigint NOT NULL REFERENCES users ON DELETE CASCADE,
  mid bigint NOT NULL REFERENCES broadcasts ON DELETE CASCADE,
  PRIMARY KEY (uid, mid)
);
CREATE INDEX broadcast_reads_mid ON broadcast_reads (mid);
COMMENT ON TABLE broadcast_reads IS 'Who has read which broadcast.';

CREATE TABLE reports (
  rid         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tid         bigint NOT NULL,
  uploader    bigint REFERENCES users ON DELETE SET NULL,
  reporter    bigint REFERENCES users ON DELETE SET NULL,
  reported_at timestamptz NOT NULL DEFAULT now(),
  settled_at  timestamptz,
  state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'rejected', 'deleted', 'banned')),
  reason      text NOT NULL CHECK (reason <> ''),
  CHECK ((state = 'open') = (settled_at IS NULL))
);
CREATE UNIQUE INDEX reports_open ON reports (reporter, tid) WHERE state = 'open';
CREATE INDEX reports_state ON reports (state, rid);
CREATE INDEX reports_tid ON reports (tid);
CREATE INDEX reports_uploader ON reports (uploader);
CREATE INDEX reports_reporter ON reports (reporter);
COMMENT ON TABLE reports IS 'What users have against textures.';
COMMENT ON COLUMN reports.tid IS 'No foreign key: the report stays, and so does the number, when the texture goes.';
COMMENT ON COLUMN reports.uploader IS 'Of the texture, which may be gone. NULL when deleted; shown as 0.';
COMMENT ON COLUMN reports.reporter IS 'NULL when deleted; shown as 0.';
COMMENT ON COLUMN reports.state IS 'open, or what came of it: rejected, the texture deleted, or its uploader banned.';

---- create above / drop below ----

DROP TABLE reports;
DROP TABLE broadcast_reads, broadcasts;
