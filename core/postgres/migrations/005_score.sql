CREATE TABLE score_changes (
  id         bigint GENERATED ALWAYS AS IDENTITY,
  uid        bigint NOT NULL REFERENCES users ON DELETE CASCADE,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  amount     bigint NOT NULL CHECK (amount <> 0),
  balance    bigint NOT NULL CHECK (balance >= 0),
  reason     text NOT NULL CHECK (reason <> ''),
  subject    text NOT NULL DEFAULT '',
  PRIMARY KEY (uid, id)
);
CREATE INDEX score_changes_changed_at ON score_changes (changed_at) WHERE reason <> 'carried';
COMMENT ON TABLE score_changes IS 'The ledger of scores. A row is written in the statement that changes the score, so a score is the sum of its user''s rows.';
COMMENT ON COLUMN score_changes.id IS 'Grows with time for each user, whose row in users is locked while it is drawn.';
COMMENT ON COLUMN score_changes.balance IS 'The score after the change: the sum of the user''s rows up to this one.';
COMMENT ON COLUMN score_changes.reason IS 'One word; carried is what was kept long enough, as one row.';
COMMENT ON COLUMN score_changes.subject IS 'What it was about, as texture:7. No foreign key: it may be gone.';

INSERT INTO score_changes (uid, amount, balance, reason)
SELECT uid, score, score, 'opening' FROM users WHERE score > 0 ORDER BY uid;

ALTER TABLE users
  ADD COLUMN signed_on date,
  ADD COLUMN rewarded_textures bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN users.signed_on IS 'The last day, in UTC, of a daily sign-in; NULL for none.';
COMMENT ON COLUMN users.rewarded_textures IS 'The most textures that the user had while uploads were rewarded: only one more than that is.';

ALTER TABLE players ADD COLUMN refund bigint CHECK (refund > 0);
COMMENT ON COLUMN players.refund IS 'Score that is given back when the player is deleted.';

ALTER TABLE closet_items ADD COLUMN refund bigint CHECK (refund > 0);
COMMENT ON COLUMN closet_items.refund IS 'Score that is given back when the item goes.';

ALTER TABLE textures
  ADD COLUMN paid bigint CHECK (paid > 0),
  ADD COLUMN refundable boolean NOT NULL DEFAULT false,
  ADD COLUMN rewarded_likes bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN textures.paid IS 'Score that the uploader has paid for it so far; NULL for none.';
COMMENT ON COLUMN textures.refundable IS 'Whether what was paid is given back when the texture is deleted.';
COMMENT ON COLUMN textures.rewarded_likes IS 'The most closets of others that held it while likes were rewarded: only one more than that is.';

---- create above / drop below ----

ALTER TABLE textures DROP COLUMN paid, DROP COLUMN refundable, DROP COLUMN rewarded_likes;
ALTER TABLE closet_items DROP COLUMN refund;
ALTER TABLE players DROP COLUMN refund;
ALTER TABLE users DROP COLUMN signed_on, DROP COLUMN rewarded_textures;
DROP TABLE score_changes;
