-- Launchers sign in with tokens of their own.
--
-- The column is not called uuid, since a core of the release before joins all columns of users and
-- players. It has no value in the rows that exist: filling it in would rewrite the table. A user
-- without one gets it with the first token.
ALTER TABLE users ADD COLUMN account_uuid uuid;
ALTER TABLE users ALTER COLUMN account_uuid SET DEFAULT gen_random_uuid();
COMMENT ON COLUMN users.account_uuid IS 'What launchers know the user by; NULL for users of before this column without a launcher.';

CREATE TABLE launcher_tokens (
  token        bytea PRIMARY KEY CHECK (octet_length(token) = 32),
  uid          bigint NOT NULL REFERENCES users ON DELETE CASCADE,
  client_token bytea NOT NULL,
  issued_at    timestamptz NOT NULL
);
CREATE INDEX launcher_tokens_uid ON launcher_tokens (uid, issued_at);
CREATE INDEX launcher_tokens_issued_at ON launcher_tokens (issued_at);
COMMENT ON TABLE launcher_tokens IS 'Access tokens of launchers. A revoked token has no row; how long one is valid is reckoned from issued_at.';
COMMENT ON COLUMN launcher_tokens.token IS 'SHA-256 of the token.';
COMMENT ON COLUMN launcher_tokens.client_token IS 'Chosen by the launcher. Not text, since it may have any characters.';

CREATE TABLE launcher_attempts (
  account      bytea NOT NULL CHECK (octet_length(account) = 32),
  address      inet NOT NULL,
  attempted_at timestamptz NOT NULL,
  PRIMARY KEY (account, address)
);
CREATE INDEX launcher_attempts_attempted_at ON launcher_attempts (attempted_at);
COMMENT ON TABLE launcher_attempts IS 'When a launcher last tried to sign in, for all cores. The columns are those of login_failures.';

---- create above / drop below ----

DROP TABLE launcher_attempts;
DROP TABLE launcher_tokens;
ALTER TABLE users DROP COLUMN account_uuid;
