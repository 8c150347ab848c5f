-- Changes and resets of a password are told by mail.
ALTER TABLE mails
  DROP CONSTRAINT mails_purpose_check,
  ADD CONSTRAINT mails_purpose_check CHECK (purpose IN ('verification', 'address', 'reset', 'registration', 'change', 'password'));

---- create above / drop below ----

DELETE FROM mails WHERE purpose = 'password';
ALTER TABLE mails
  DROP CONSTRAINT mails_purpose_check,
  ADD CONSTRAINT mails_purpose_check CHECK (purpose IN ('verification', 'address', 'reset', 'registration', 'change'));
