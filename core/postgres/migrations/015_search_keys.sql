-- Parts of names are looked for by keys, which the program makes as it makes email_key.
-- Rows lack them that were there before, that a core of the release before has written,
-- or that it has renamed: core migrate makes them, and a search those that it needs.
ALTER TABLE users ADD COLUMN nickname_key text;
COMMENT ON COLUMN users.nickname_key IS 'NULL until it is made.';

CREATE FUNCTION drop_stale_nickname_key() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    new.nickname_key := NULL;
    RETURN new;
  END
$$;
CREATE TRIGGER drop_stale_nickname_key BEFORE UPDATE OF nickname ON users FOR EACH ROW
  WHEN (new.nickname <> old.nickname AND new.nickname_key IS NOT DISTINCT FROM old.nickname_key)
  EXECUTE FUNCTION drop_stale_nickname_key();

---- create above / drop below ----

DROP TRIGGER drop_stale_nickname_key ON users;
DROP FUNCTION drop_stale_nickname_key;
ALTER TABLE users DROP COLUMN nickname_key;
