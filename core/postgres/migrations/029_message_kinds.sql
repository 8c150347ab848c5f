-- A core of the release before reads and writes messages without them.
ALTER TABLE messages
  ADD COLUMN kind text CHECK (kind <> ''),
  ADD COLUMN parameters jsonb;
COMMENT ON COLUMN messages.kind IS 'What a message of the service itself says, for the console to say it in the reader''s language. NULL for what administrators write. Title and content say it in English.';
COMMENT ON COLUMN messages.parameters IS 'What the message is about, as tid and name.';

---- create above / drop below ----

ALTER TABLE messages DROP COLUMN kind, DROP COLUMN parameters;
