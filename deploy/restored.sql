-- What a database that was restored from a backup needs before cores use it.

-- Sessions that people have ended since are alive again.
DELETE FROM sessions;

-- Numbers that were handed out since would be handed out again, while caches remember
-- what they named.
SELECT setval(counter, nextval(counter) + 1000000) FROM (VALUES
  (pg_get_serial_sequence('users', 'uid')),
  (pg_get_serial_sequence('players', 'pid')),
  (pg_get_serial_sequence('textures', 'tid'))
) AS of (counter);

-- Edges are to forget what they know.
UPDATE feed SET epoch = gen_random_uuid();
