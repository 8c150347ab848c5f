-- Lists of textures come from indexes (021). Names are looked for by keys, which textures have
-- as users do (015). core migrate makes those that are missing before it builds the indexes.
--
-- What a core of the release before needs stays: its lists come from memory, and the trigger
-- note_change tells it what has changed. A later migration drops the trigger, its function and
-- the table texture_changes.

-- The owner of a database may create this extension. It is in PostgreSQL's own contrib.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;

ALTER TABLE textures ADD COLUMN name_key text;
COMMENT ON COLUMN textures.name_key IS 'NULL until it is made.';

-- A core of the release before changes a name and leaves its key. One of this release that changes
-- nothing but a name's case loses the key, too; the next search makes it.
CREATE FUNCTION drop_stale_name_key() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    new.name_key := NULL;
    RETURN new;
  END
$$;
CREATE TRIGGER drop_stale_name_key BEFORE UPDATE OF name ON textures FOR EACH ROW
  WHEN (new.name <> old.name AND new.name_key IS NOT DISTINCT FROM old.name_key)
  EXECUTE FUNCTION drop_stale_name_key();

-- What lists by likes are read from (021). A like changes three indexes here and none of textures,
-- whose rows need only room beside them. With an index by likes there it would change all nine, the
-- one of names among them. The trigger copies each row that gets its name_key, too: with all
-- keys made, all textures are here. A core of the release before counts likes in textures, and so
-- do those of this one.
CREATE TABLE texture_likes (
  tid      bigint PRIMARY KEY REFERENCES textures ON DELETE CASCADE,
  uploader bigint NOT NULL, -- 0 if that user is deleted
  likes    bigint NOT NULL,
  public   boolean NOT NULL,
  type     text NOT NULL,
  name_key text
);
COMMENT ON TABLE texture_likes IS 'Copies of what textures are listed by, kept by a trigger.';
ALTER TABLE textures SET (fillfactor = 90);

CREATE FUNCTION copy_likes() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE texture_likes SET uploader = coalesce(new.uploader, 0), likes = new.likes, public = new.public, type = new.type, name_key = new.name_key WHERE tid = new.tid;
    IF NOT FOUND THEN
      INSERT INTO texture_likes (tid, uploader, likes, public, type, name_key)
      VALUES (new.tid, coalesce(new.uploader, 0), new.likes, new.public, new.type, new.name_key);
    END IF;
    RETURN NULL;
  END
$$;
CREATE TRIGGER copy_likes AFTER INSERT OR UPDATE OF uploader, likes, public, type, name, name_key ON textures
  FOR EACH ROW EXECUTE FUNCTION copy_likes();

---- create above / drop below ----

DROP TRIGGER copy_likes ON textures;
DROP FUNCTION copy_likes;
ALTER TABLE textures RESET (fillfactor);
DROP TABLE texture_likes;
DROP TRIGGER drop_stale_name_key ON textures;
DROP FUNCTION drop_stale_name_key;
ALTER TABLE textures DROP COLUMN name_key;
