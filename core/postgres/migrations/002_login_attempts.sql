-- Attempts are counted as failed when they begin, and the one that turns out right
-- is taken back by its id.
ALTER TABLE login_failures ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY;

-- Old failures, and old addresses, are deleted by time.
CREATE INDEX login_failures_failed_at ON login_failures (failed_at);
CREATE INDEX login_addresses_signed_in ON login_addresses (signed_in);

---- create above / drop below ----

DROP INDEX login_addresses_signed_in, login_failures_failed_at;
ALTER TABLE login_failures DROP COLUMN id;
