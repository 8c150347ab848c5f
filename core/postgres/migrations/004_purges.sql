-- Content delivery networks are told what to forget once every edge has.
COMMENT ON COLUMN changes.keys IS 'Keys whose mapping changed, as pid:…, name:…, uid:…, uuid:…, tid:…, hash:…; old and new, creations too.';

CREATE TABLE purges (
  single     boolean PRIMARY KEY DEFAULT true CHECK (single),
  epoch      uuid,
  revision   bigint NOT NULL DEFAULT 0,
  holder     uuid,
  held_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);
INSERT INTO purges DEFAULT VALUES;
COMMENT ON TABLE purges IS 'The one row that says how far changes are purged from content delivery networks, and by whom.';
COMMENT ON COLUMN purges.epoch IS 'NULL until the first core with a hook begins, at the head of the feed.';
COMMENT ON COLUMN purges.held_until IS 'When another core may take over from the holder. Two that purge at a time do no harm.';

CREATE UNLOGGED TABLE edge_streams (
  stream   uuid PRIMARY KEY,
  epoch    text NOT NULL,
  revision bigint NOT NULL,
  seen_at  timestamptz NOT NULL DEFAULT now(),
  replaced boolean NOT NULL DEFAULT false
) WITH (fillfactor = 10);
COMMENT ON TABLE edge_streams IS 'The streams of changes to edges, at cores that have a hook. Cores write their streams again and again, so nothing is lost with the table.';
COMMENT ON COLUMN edge_streams.revision IS 'Up to where the edge has acknowledged changes, in the epoch beside it; 0 in none while it has not.';
COMMENT ON COLUMN edge_streams.seen_at IS 'When the stream was last known to be alive. One that has not been for two seconds is over.';
COMMENT ON COLUMN edge_streams.replaced IS 'Whether its edge has another stream by now, and nobody waits for this one, though its core may still write it.';

---- create above / drop below ----

DROP TABLE edge_streams, purges;
COMMENT ON COLUMN changes.keys IS 'Keys whose mapping changed, as name:…, uid:…, uuid:…, tid:…, hash:…; old and new, creations too.';
