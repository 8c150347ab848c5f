-- What administrators did. There are no foreign keys: the log keeps whom it
-- names, also when they are deleted, and no uid is ever used again.
CREATE TABLE audit_log (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  acted_at    timestamptz NOT NULL DEFAULT now(),
  actor       bigint NOT NULL,
  actor_email text NOT NULL,
  address     inet NOT NULL,
  action      text NOT NULL CHECK (action <> ''),
  subject     text NOT NULL CHECK (subject <> ''),
  details     jsonb NOT NULL CHECK (jsonb_typeof(details) = 'object')
);
CREATE INDEX audit_log_actor ON audit_log (actor, id);
CREATE INDEX audit_log_action ON audit_log (action, id);
CREATE INDEX audit_log_subject ON audit_log (subject, id);
COMMENT ON TABLE audit_log IS 'Acts of administrators, each written in the transaction of the act. Rows are only ever added.';
COMMENT ON COLUMN audit_log.actor_email IS 'The actor''s address at the time: who it was can be told after the account is gone.';
COMMENT ON COLUMN audit_log.address IS 'The client''s address.';
COMMENT ON COLUMN audit_log.action IS 'What was done, as user.permission or player.rename.';
COMMENT ON COLUMN audit_log.subject IS 'What it was done to, as user:12 or player:7.';
COMMENT ON COLUMN audit_log.details IS 'What the subject was called, and what changed. Never a password, nor the hash of one.';

-- The program owns the table, and an owner has every right, so no right can be
-- revoked from it. A trigger refuses what would change the past, whoever tries,
-- and whether or not any row fits.
CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'the audit log can only be added to' USING ERRCODE = 'insufficient_privilege';
  END
$$;
CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_append_only();
ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_is_append_only;

---- create above / drop below ----

DROP TABLE audit_log;
DROP FUNCTION audit_log_is_append_only();
