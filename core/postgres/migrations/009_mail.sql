-- E-mail leaves by an outbox, so that what a request answers, and when, depends on
-- nobody's account. No text and no token is kept: both are made when a mail goes
-- out, and of the token only the hash stays.

CREATE TABLE registrations (
  rid           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  asked_at      timestamptz NOT NULL DEFAULT now(),
  email         text NOT NULL CHECK (email <> ''),
  email_key     text NOT NULL,
  nickname      text NOT NULL CHECK (nickname <> ''),
  password_hash text NOT NULL,
  player        text NOT NULL,
  player_key    text NOT NULL
);
CREATE INDEX registrations_email_key ON registrations (email_key, rid);
COMMENT ON TABLE registrations IS 'Accounts that come to life by a link in a mail. Those that wait for neither a mail nor a link are deleted.';

CREATE TABLE mails (
  id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  queued_at    timestamptz NOT NULL DEFAULT now(),
  due_at       timestamptz NOT NULL DEFAULT now(),
  registration bigint REFERENCES registrations ON DELETE CASCADE,
  uid          bigint,
  purpose      text NOT NULL CHECK (purpose IN ('verification', 'address', 'reset', 'registration', 'change')),
  email        text NOT NULL CHECK (email <> ''),
  email_key    text NOT NULL,
  bound        bytea CHECK (octet_length(bound) = 32),
  CHECK ((registration IS NOT NULL) = (purpose = 'registration')),
  CHECK ((uid IS NOT NULL) = (purpose = 'address') AND (bound IS NOT NULL) = (purpose = 'address'))
);
CREATE INDEX mails_due_at ON mails (due_at);
CREATE INDEX mails_email_key ON mails (email_key);
CREATE INDEX mails_registration ON mails (registration) WHERE registration IS NOT NULL;
COMMENT ON TABLE mails IS 'The outbox: what is to be mailed, and to which address. A row goes when its mail is sent, or nobody is to have it.';
COMMENT ON COLUMN mails.due_at IS 'When the mail is to be tried next. While a core tries, when another may take over.';
COMMENT ON COLUMN mails.email IS 'May be anybody''s, as somebody typed it: whether there is an account is looked up when the mail goes out.';
COMMENT ON COLUMN mails.uid IS 'The user who wants the address. No foreign key: it would have every mail wait for whoever locks all users.';
COMMENT ON COLUMN mails.bound IS 'As in mail_tokens, when the user asked. When it is another by the time the mail goes out, none goes.';

CREATE TABLE mail_tokens (
  hash         bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
  expires_at   timestamptz NOT NULL,
  uid          bigint REFERENCES users ON DELETE CASCADE,
  registration bigint REFERENCES registrations ON DELETE CASCADE,
  purpose      text NOT NULL CHECK (purpose IN ('verification', 'address', 'reset', 'registration')),
  email        text NOT NULL,
  email_key    text NOT NULL,
  bound        bytea CHECK (octet_length(bound) = 32),
  CHECK ((registration IS NOT NULL) = (purpose = 'registration')),
  CHECK ((uid IS NULL) = (purpose = 'registration') AND (bound IS NULL) = (uid IS NULL))
);
CREATE INDEX mail_tokens_uid ON mail_tokens (uid) WHERE uid IS NOT NULL;
CREATE INDEX mail_tokens_registration ON mail_tokens (registration) WHERE registration IS NOT NULL;
CREATE INDEX mail_tokens_expires_at ON mail_tokens (expires_at);
COMMENT ON TABLE mail_tokens IS 'What the links in mails stand for. Each works once.';
COMMENT ON COLUMN mail_tokens.hash IS 'SHA-256 of the token, which only the mail holds.';
COMMENT ON COLUMN mail_tokens.email IS 'Where it was sent.';
COMMENT ON COLUMN mail_tokens.bound IS 'SHA-256 of the address, a line feed and the password''s hash that the user had. When either is another, the token works no longer.';

CREATE TABLE mails_sent (
  id      uuid PRIMARY KEY,
  sent_at timestamptz NOT NULL,
  account bytea NOT NULL CHECK (octet_length(account) = 32),
  purpose text NOT NULL
);
CREATE INDEX mails_sent_account ON mails_sent (account, purpose, sent_at);
CREATE INDEX mails_sent_sent_at ON mails_sent (sent_at);
COMMENT ON TABLE mails_sent IS 'Mails of the last hour, counted for all cores, so that nobody gets many.';
COMMENT ON COLUMN mails_sent.account IS 'SHA-256 of the comparison key of the address, which is not kept in the clear.';

---- create above / drop below ----

DROP TABLE mails_sent, mail_tokens, mails, registrations;
