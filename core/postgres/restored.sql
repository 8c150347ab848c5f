-- Run on a database that was restored from a backup, before cores use it.

-- The backup revives sessions that were ended after it.
DELETE FROM sessions;

-- So it is with tokens of launchers, and with joins of game servers. An older backup lacks one
-- of these tables, or both.
DO $$
BEGIN
  IF to_regclass('launcher_tokens') IS NOT NULL THEN
    DELETE FROM launcher_tokens;
  END IF;
  IF to_regclass('game_joins') IS NOT NULL THEN
    DELETE FROM game_joins;
  END IF;
END
$$;

-- IDs that were assigned after the backup would be assigned again, while caches still
-- have the old rows of those IDs.
SELECT setval(counter, nextval(counter) + 1000000) FROM (VALUES
  (pg_get_serial_sequence('users', 'uid')),
  (pg_get_serial_sequence('players', 'pid')),
  (pg_get_serial_sequence('textures', 'tid'))
) AS of (counter);

-- A new epoch makes the edges drop their cached mappings.
UPDATE feed SET epoch = gen_random_uuid();

-- Rights are in no backup. An older one lacks the table.
DO $$
BEGIN
  IF to_regclass('backups') IS NOT NULL THEN
    GRANT SELECT, UPDATE ON backups TO PUBLIC;
  END IF;
END
$$;
