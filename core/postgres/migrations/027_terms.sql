ALTER TABLE users ADD COLUMN terms_version text NOT NULL DEFAULT '';
COMMENT ON COLUMN users.terms_version IS 'Digest of the terms that the user accepted at registration; empty if there were none.';

---- create above / drop below ----

ALTER TABLE users DROP COLUMN terms_version;
