-- Cores list textures from memory. They must hear of every change of a texture,
-- whoever makes it, likes included: so a trigger notes it. Numbering such changes as
-- those for edges are would cost far more than a like does, and nobody needs their
-- order: a core asks for what was committed since it last asked, by snapshots.
CREATE TABLE texture_changes (
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  tid bigint NOT NULL,
  at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX texture_changes_xid ON texture_changes (xid);
COMMENT ON TABLE texture_changes IS 'Which textures changed of late, and in which transactions.';

CREATE FUNCTION note_texture_change() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO texture_changes (tid) VALUES (coalesce(new.tid, old.tid));
    RETURN NULL;
  END
$$;
CREATE TRIGGER note_change AFTER INSERT OR DELETE OR UPDATE OF uploader, likes, public, type, name ON textures
  FOR EACH ROW EXECUTE FUNCTION note_texture_change();

---- create above / drop below ----

DROP TRIGGER note_change ON textures;
DROP FUNCTION note_texture_change;
DROP TABLE texture_changes;
