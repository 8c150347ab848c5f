-- Attempts to log in are counted when they begin, so that many at once cannot all
-- pass. The one that turns out right is taken back by its id, one that turns out
-- wrong is settled.
ALTER TABLE login_failures
  ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ADD COLUMN settled boolean NOT NULL DEFAULT true;
ALTER TABLE login_failures ALTER COLUMN settled SET DEFAULT false;
COMMENT ON TABLE login_failures IS 'Failed log-ins of late, counted for all cores, and those under way.';
COMMENT ON COLUMN login_failures.settled IS 'Whether the password is known to have been wrong. An attempt that stays unsettled was cut short.';

-- Old failures, and old addresses, are deleted by time.
CREATE INDEX login_failures_failed_at ON login_failures (failed_at);
CREATE INDEX login_addresses_signed_in ON login_addresses (signed_in);

---- create above / drop below ----

DROP INDEX login_addresses_signed_in, login_failures_failed_at;
ALTER TABLE login_failures DROP COLUMN settled, DROP COLUMN id;
COMMENT ON TABLE login_failures IS 'Failed log-ins of late, counted for all cores.';
