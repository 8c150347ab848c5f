-- Cores of the release before claim every mail that is due, and would send an empty letter
-- for a purpose that they do not know. due_at of such a mail is infinity, so that they do
-- not claim it. The next release, before which all cores claim by purpose, need not do so.
ALTER TABLE mails
  ADD COLUMN password_due_at timestamptz,
  ADD CONSTRAINT mails_password_due_at_check CHECK (password_due_at IS NULL OR purpose = 'password');
COMMENT ON COLUMN mails.password_due_at IS 'What due_at is for other purposes, for the purpose password, whose due_at is infinity; NULL for the others.';
UPDATE mails SET due_at = 'infinity', password_due_at = due_at WHERE purpose = 'password';
CREATE INDEX mails_password_due_at ON mails (password_due_at) WHERE password_due_at IS NOT NULL;

---- create above / drop below ----

UPDATE mails SET due_at = password_due_at WHERE password_due_at IS NOT NULL;
ALTER TABLE mails DROP COLUMN password_due_at;
