-- A join ends with the token by which the player joined, whatever ends that. A core of the release before adds joins
-- without a token, which end after their 30 s.
ALTER TABLE game_joins ADD COLUMN token bytea REFERENCES launcher_tokens ON DELETE CASCADE;
CREATE INDEX game_joins_token ON game_joins (token);
COMMENT ON COLUMN game_joins.token IS 'The token by which the player joined.';

---- create above / drop below ----

ALTER TABLE game_joins DROP COLUMN token;
