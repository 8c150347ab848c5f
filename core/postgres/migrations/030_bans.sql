-- A ban may have a reason, and an end at which the user has the former permission again without
-- anything that runs: permission stays -1 until it is changed, also for a core of the release before, for
-- which the ban does not end.
ALTER TABLE users ADD COLUMN ban_reason text, ADD COLUMN banned_until timestamptz, ADD COLUMN permission_before_ban smallint;
COMMENT ON COLUMN users.ban_reason IS 'Of a user with permission -1; NULL for none.';
COMMENT ON COLUMN users.banned_until IS 'Of a user with permission -1; NULL for ever.';
COMMENT ON COLUMN users.permission_before_ban IS 'Of a user with permission -1: the one after banned_until.';

-- A core of the release before changes a permission alone. What an earlier ban left would end a later one.
CREATE FUNCTION drop_stale_ban() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    new.ban_reason := NULL;
    new.banned_until := NULL;
    new.permission_before_ban := NULL;
    RETURN new;
  END
$$;
CREATE TRIGGER drop_stale_ban BEFORE UPDATE OF permission ON users FOR EACH ROW
  WHEN (new.permission <> old.permission AND new.permission_before_ban IS NOT DISTINCT FROM old.permission_before_ban)
  EXECUTE FUNCTION drop_stale_ban();

---- create above / drop below ----

DROP TRIGGER drop_stale_ban ON users;
DROP FUNCTION drop_stale_ban;
ALTER TABLE users DROP COLUMN permission_before_ban, DROP COLUMN banned_until, DROP COLUMN ban_reason;
