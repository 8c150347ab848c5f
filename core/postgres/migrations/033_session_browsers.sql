-- The list of a user's sessions names the browser and the system of each.
ALTER TABLE sessions
  ADD COLUMN browser text NOT NULL DEFAULT '',
  ADD COLUMN system  text NOT NULL DEFAULT '';
COMMENT ON COLUMN sessions.browser IS 'The name of the browser that signed in, as core knows it; empty if it is unknown, or a core of the release before opened the session.';
COMMENT ON COLUMN sessions.system IS 'The same of its system.';

---- create above / drop below ----

ALTER TABLE sessions
  DROP COLUMN browser,
  DROP COLUMN system;
