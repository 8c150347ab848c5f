-- Tokens of launchers are bound to players, and game servers ask whether a player has joined. The
-- tables with a reference to players have a file of their own, since each locks what it refers to.
ALTER TABLE launcher_tokens
  ADD COLUMN pid bigint REFERENCES players ON DELETE CASCADE,
  ADD COLUMN player_name text,
  ADD CHECK ((pid IS NULL) = (player_name IS NULL));
CREATE INDEX launcher_tokens_pid ON launcher_tokens (pid) WHERE pid IS NOT NULL;
COMMENT ON COLUMN launcher_tokens.pid IS 'The player that the token is bound to; NULL for none.';
COMMENT ON COLUMN launcher_tokens.player_name IS 'The name of that player when the token was issued: after a renaming the token must be refreshed.';

CREATE TABLE game_joins (
  pid       bigint NOT NULL REFERENCES players ON DELETE CASCADE,
  server    bytea NOT NULL CHECK (octet_length(server) = 32),
  address   inet NOT NULL,
  joined_at timestamptz NOT NULL,
  PRIMARY KEY (pid, server)
);
COMMENT ON TABLE game_joins IS 'Players that are joining a game server.';
COMMENT ON COLUMN game_joins.server IS 'SHA-256 of the id that the client and the game server have agreed on.';
COMMENT ON COLUMN game_joins.address IS 'The client''s address; for IPv6 its /64 network.';

---- create above / drop below ----

DROP TABLE game_joins;
ALTER TABLE launcher_tokens DROP COLUMN pid, DROP COLUMN player_name;
