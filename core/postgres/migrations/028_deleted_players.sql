-- A core of the release before neither fills this in nor asks it: what it deletes is gone, and it gives names away.
CREATE TABLE deleted_players (
  pid        bigint PRIMARY KEY,
  uid        bigint NOT NULL REFERENCES users ON DELETE CASCADE,
  tid_skin   bigint,
  tid_cape   bigint,
  refund     bigint CHECK (refund > 0),
  deleted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  uuid       uuid NOT NULL,
  name       text NOT NULL CHECK (name <> ''),
  name_key   text NOT NULL
);
CREATE INDEX deleted_players_uid ON deleted_players (uid, deleted_at);
CREATE INDEX deleted_players_name_key ON deleted_players (name_key);
CREATE INDEX deleted_players_deleted_at ON deleted_players (deleted_at);
COMMENT ON TABLE deleted_players IS 'Players that their former owners can restore for a day. Until then no other user can take their names.';
COMMENT ON COLUMN deleted_players.tid_skin IS 'No foreign key: a texture that is deleted meanwhile is not put on again.';
COMMENT ON COLUMN deleted_players.refund IS 'Score that the deletion has given back, and that restoring the player takes.';

---- create above / drop below ----

DROP TABLE deleted_players;
