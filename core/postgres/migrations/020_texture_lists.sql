-- Lists of textures come from indexes (021). Names are looked for by keys, which textures have
-- as users do (015). core migrate makes those that are missing before it builds the indexes.
--
-- What a core of the release before needs stays: its lists come from memory, and the trigger
-- note_change tells it what has changed. A later migration drops the trigger, its function and
-- the table texture_changes.

-- The owner of a database may create this extension. It is in PostgreSQL's own contrib.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;

-- Trigrams are of letters and digits alone: here each of ASCII's other characters becomes a letter
-- that is rare in names, and all others the same one, so that the indexes help with "100%" and
-- "___", too. Characters of which names need two, not three (all of Chinese, Japanese and Korean
-- are among those from U+1100), stand there twice. Whatever stands in a name does so in what this
-- makes of both.
CREATE FUNCTION trigram_text(key text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN regexp_replace(regexp_replace(
    translate(key, ' !"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', 'աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրց'),
    '[^[:alnum:]]', 'þ', 'g'), '([\u1100-\U0010ffff])', '\1\1', 'g');

ALTER TABLE textures ADD COLUMN name_key text;
COMMENT ON COLUMN textures.name_key IS 'NULL until it is made.';

CREATE FUNCTION drop_stale_name_key() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    new.name_key := NULL;
    RETURN new;
  END
$$;
CREATE TRIGGER drop_stale_name_key BEFORE UPDATE OF name ON textures FOR EACH ROW
  WHEN (new.name <> old.name AND new.name_key IS NOT DISTINCT FROM old.name_key)
  EXECUTE FUNCTION drop_stale_name_key();

-- What lists by likes are read from (021). A like changes two indexes here, and none of textures,
-- whose rows need only room beside them. With an index by likes there it would change six, the
-- one of names among them. The trigger copies each row that gets its name_key, too: with all
-- keys made, all textures are here. A core of the release before counts likes in textures, and so
-- do those of this one.
CREATE TABLE texture_likes (
  tid      bigint PRIMARY KEY REFERENCES textures ON DELETE CASCADE,
  uploader bigint,
  likes    bigint NOT NULL,
  public   boolean NOT NULL,
  type     text NOT NULL,
  name_key text
);
COMMENT ON TABLE texture_likes IS 'Copies of what textures are listed by, kept by a trigger.';
ALTER TABLE textures SET (fillfactor = 90);

CREATE FUNCTION copy_likes() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE texture_likes SET uploader = new.uploader, likes = new.likes, public = new.public, type = new.type, name_key = new.name_key WHERE tid = new.tid;
    IF NOT FOUND THEN
      INSERT INTO texture_likes (tid, uploader, likes, public, type, name_key)
      VALUES (new.tid, new.uploader, new.likes, new.public, new.type, new.name_key);
    END IF;
    RETURN NULL;
  END
$$;
CREATE TRIGGER copy_likes AFTER INSERT OR UPDATE OF uploader, likes, public, type, name, name_key ON textures
  FOR EACH ROW EXECUTE FUNCTION copy_likes();

---- create above / drop below ----

DROP FUNCTION trigram_text;
DROP TRIGGER copy_likes ON textures;
DROP FUNCTION copy_likes;
ALTER TABLE textures RESET (fillfactor);
DROP TABLE texture_likes;
DROP TRIGGER drop_stale_name_key ON textures;
DROP FUNCTION drop_stale_name_key;
ALTER TABLE textures DROP COLUMN name_key;
