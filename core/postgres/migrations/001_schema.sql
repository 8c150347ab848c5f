-- Keys for comparison (email_key, name_key) are made by the program, by one
-- function that edges use too; the database only keeps them unique.

CREATE TABLE users (
  uid           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  avatar        bigint NOT NULL DEFAULT 0 CHECK (avatar >= 0),
  score         bigint NOT NULL DEFAULT 0 CHECK (score >= 0),
  last_sign_at  timestamptz NOT NULL DEFAULT now(),
  register_at   timestamptz NOT NULL DEFAULT now(),
  permission    smallint NOT NULL DEFAULT 0 CHECK (permission BETWEEN -1 AND 2),
  verified      boolean NOT NULL DEFAULT false,
  email         text NOT NULL CHECK (email <> ''),
  email_key     text NOT NULL CONSTRAINT users_email_key UNIQUE,
  nickname      text NOT NULL CHECK (nickname <> ''),
  password_hash text NOT NULL
);
CREATE INDEX users_avatar ON users (avatar) WHERE avatar <> 0;
COMMENT ON TABLE users IS 'People with an account.';
COMMENT ON COLUMN users.avatar IS 'TID of the texture whose face stands for the user; 0 for none. No foreign key: when the texture goes the number stays, and the avatar is not found until another is set.';
COMMENT ON COLUMN users.permission IS '-1 banned, 0 normal, 1 administrator, 2 super administrator.';
COMMENT ON COLUMN users.password_hash IS 'In PHC string format; names its own scheme and parameters.';

CREATE TABLE sessions (
  sid          uuid PRIMARY KEY,
  uid          bigint NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at   timestamptz NOT NULL,
  refreshed_at timestamptz NOT NULL
);
CREATE INDEX sessions_uid ON sessions (uid, created_at);
CREATE INDEX sessions_refreshed_at ON sessions (refreshed_at);
COMMENT ON TABLE sessions IS 'Log-ins. A session ends when its row goes; how long it lives is reckoned from its two times.';

CREATE TABLE session_tokens (
  jti         uuid PRIMARY KEY,
  sid         uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
  issued_at   timestamptz NOT NULL,
  successor   uuid,
  replaced_at timestamptz,
  CHECK ((successor IS NULL) = (replaced_at IS NULL))
);
CREATE UNIQUE INDEX session_tokens_current ON session_tokens (sid) WHERE replaced_at IS NULL;
CREATE INDEX session_tokens_sid ON session_tokens (sid, replaced_at);
COMMENT ON TABLE session_tokens IS 'The current token of every session, and those that were replaced so lately that they still work. The token itself is not kept: it is signed again from its jti and issued_at.';

CREATE TABLE login_failures (
  failed_at timestamptz NOT NULL DEFAULT now(),
  account   bytea NOT NULL CHECK (octet_length(account) = 32),
  address   inet NOT NULL
);
CREATE INDEX login_failures_account ON login_failures (account, failed_at);
CREATE INDEX login_failures_address ON login_failures (address, failed_at);
COMMENT ON TABLE login_failures IS 'Failed log-ins of late, counted for all cores.';
COMMENT ON COLUMN login_failures.account IS 'SHA-256 of the comparison key of the e-mail that was tried: it may be anybody''s, so it is not kept in the clear.';
COMMENT ON COLUMN login_failures.address IS 'The client''s address; for IPv6 its /64 network.';

CREATE TABLE login_addresses (
  uid       bigint NOT NULL REFERENCES users ON DELETE CASCADE,
  address   inet NOT NULL,
  signed_in timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (uid, address)
);
COMMENT ON TABLE login_addresses IS 'Addresses from which a user has signed in: an attack on the account slows down only the others.';

CREATE TABLE textures (
  tid       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uploader  bigint REFERENCES users ON DELETE SET NULL,
  likes     bigint NOT NULL DEFAULT 0 CHECK (likes >= 0),
  upload_at timestamptz NOT NULL DEFAULT now(),
  bytes     integer NOT NULL CHECK (bytes > 0),
  public    boolean NOT NULL,
  type      text NOT NULL CHECK (type IN ('steve', 'alex', 'cape')),
  hash      bytea NOT NULL CHECK (octet_length(hash) = 32),
  pixels    bytea NOT NULL CHECK (octet_length(pixels) = 32),
  name      text NOT NULL CHECK (name <> '')
);
CREATE UNIQUE INDEX textures_public_pixels ON textures (pixels, type) WHERE public;
CREATE UNIQUE INDEX textures_uploader_pixels ON textures (uploader, pixels, type);
CREATE INDEX textures_hash ON textures (hash, tid);
COMMENT ON TABLE textures IS 'Skins and capes. A row is written only after its file lies in the object store; TIDs are never used again.';
COMMENT ON COLUMN textures.uploader IS 'NULL when the uploader is deleted; shown as 0.';
COMMENT ON COLUMN textures.hash IS 'SHA-256 of the file as stored and served.';
COMMENT ON COLUMN textures.pixels IS 'SHA-256 over width, height and texels: tells duplicates whatever encoder wrote them.';
COMMENT ON COLUMN textures.likes IS 'Number of closets that hold the texture, kept in the transactions that change them.';

CREATE TABLE players (
  pid           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid           bigint NOT NULL REFERENCES users ON DELETE CASCADE,
  tid_skin      bigint REFERENCES textures,
  tid_cape      bigint REFERENCES textures,
  last_modified timestamptz NOT NULL DEFAULT now(),
  uuid          uuid NOT NULL DEFAULT gen_random_uuid() CONSTRAINT players_uuid_key UNIQUE,
  name          text NOT NULL CHECK (name <> ''),
  name_key      text NOT NULL CONSTRAINT players_name_key UNIQUE
);
CREATE INDEX players_uid ON players (uid, pid);
CREATE INDEX players_tid_skin ON players (tid_skin) WHERE tid_skin IS NOT NULL;
CREATE INDEX players_tid_cape ON players (tid_cape) WHERE tid_cape IS NOT NULL;
COMMENT ON TABLE players IS 'Named characters and what they wear.';
COMMENT ON COLUMN players.tid_skin IS 'NULL for none. The foreign key takes no action: whoever deletes a texture must undress its wearers, and name them in changes.';

CREATE TABLE closet_items (
  uid       bigint NOT NULL REFERENCES users ON DELETE CASCADE,
  tid       bigint NOT NULL REFERENCES textures,
  added_at  timestamptz NOT NULL DEFAULT now(),
  item_name text NOT NULL CHECK (item_name <> ''),
  PRIMARY KEY (uid, tid)
);
CREATE INDEX closet_items_newest ON closet_items (uid, added_at DESC, tid DESC);
CREATE INDEX closet_items_tid ON closet_items (tid);
COMMENT ON TABLE closet_items IS 'Textures that users keep, under names of their own.';

CREATE TABLE messages (
  mid     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sent_at timestamptz NOT NULL DEFAULT now(),
  title   text NOT NULL CHECK (title <> ''),
  content text NOT NULL
);
CREATE INDEX messages_sent_at ON messages (sent_at);
COMMENT ON TABLE messages IS 'What notifications say, once however many receive it. The content is Markdown.';

CREATE TABLE notifications (
  id      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  uid     bigint NOT NULL REFERENCES users ON DELETE CASCADE,
  mid     bigint NOT NULL REFERENCES messages ON DELETE CASCADE,
  read_at timestamptz
);
CREATE INDEX notifications_unread ON notifications (uid, mid DESC) WHERE read_at IS NULL;
CREATE INDEX notifications_uid ON notifications (uid);
CREATE INDEX notifications_mid ON notifications (mid);
COMMENT ON TABLE notifications IS 'Who received which message, and has read it or not.';

CREATE TABLE feed (
  single   boolean PRIMARY KEY DEFAULT true CHECK (single),
  epoch    uuid NOT NULL DEFAULT gen_random_uuid(),
  revision bigint NOT NULL DEFAULT 0,
  trimmed  bigint NOT NULL DEFAULT 0 CHECK (trimmed <= revision),
  history  text NOT NULL DEFAULT ''
) WITH (fillfactor = 10);
INSERT INTO feed DEFAULT VALUES;
COMMENT ON TABLE feed IS 'The one row that says how far changes are numbered.';
COMMENT ON COLUMN feed.epoch IS 'Renewed when history may have been rewritten: revisions of different epochs have nothing to do with each other.';
COMMENT ON COLUMN feed.trimmed IS 'The highest revision whose row is deleted.';
COMMENT ON COLUMN feed.history IS 'The server, database, table and timeline in which the epoch began. When it is another, the database was promoted or restored.';

CREATE TABLE changes (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  revision    bigint CONSTRAINT changes_revision_key UNIQUE,
  numbered_at timestamptz,
  keys        text[] NOT NULL CHECK (cardinality(keys) > 0),
  CHECK ((revision IS NULL) = (numbered_at IS NULL))
);
CREATE INDEX changes_unnumbered ON changes (id) WHERE revision IS NULL;
CREATE INDEX changes_numbered_at ON changes (numbered_at);
COMMENT ON TABLE changes IS 'What edges must forget. Written unnumbered in the transaction that changes what keys lead to; numbered after its commit by a transaction of its own, so that revisions follow commits.';
COMMENT ON COLUMN changes.keys IS 'Keys whose mapping changed, as name:…, uid:…, uuid:…, tid:…, hash:…; old and new, creations too.';

---- create above / drop below ----

DROP TABLE changes, feed, notifications, messages, closet_items, players, textures,
  login_addresses, login_failures, session_tokens, sessions, users;
