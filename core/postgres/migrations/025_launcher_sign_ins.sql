-- The key with which a player signs chat belongs to one sign-in of a launcher, and ends with its tokens.
ALTER TABLE launcher_tokens ADD COLUMN signed_in_at timestamptz;
COMMENT ON COLUMN launcher_tokens.signed_in_at IS 'When a password was given for the token or one that it replaces; NULL if a core of the release before issued it.';

---- create above / drop below ----

ALTER TABLE launcher_tokens DROP COLUMN signed_in_at;
