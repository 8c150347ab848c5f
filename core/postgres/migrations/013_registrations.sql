-- Who sends a registration need not read the mail of its address, so the password is
-- chosen by who opens the link. What is pending asks for it again. Cores of the release
-- before answer such a link with an error, and change nothing: it works at the others.
ALTER TABLE registrations ALTER COLUMN password_hash DROP NOT NULL;
UPDATE registrations SET password_hash = NULL;
COMMENT ON COLUMN registrations.password_hash IS 'Not used any more: cores of the release before write it.';

---- create above / drop below ----

-- The release before cannot make accounts of these.
DELETE FROM registrations WHERE password_hash IS NULL;
ALTER TABLE registrations ALTER COLUMN password_hash SET NOT NULL;
COMMENT ON COLUMN registrations.password_hash IS NULL;
