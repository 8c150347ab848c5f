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

---- create above / drop below ----

DROP TABLE broadcast_reads, broadcasts;
