-- Who runs the program core acts without an account, and from no address.
ALTER TABLE audit_log ALTER COLUMN address DROP NOT NULL;
COMMENT ON COLUMN audit_log.actor IS 'Of whom, or 0 where it was done by the program core, run by hand.';
COMMENT ON COLUMN audit_log.address IS 'The client''s address; NULL where there is none, as for the actor 0.';

---- create above / drop below ----

ALTER TABLE audit_log DISABLE TRIGGER audit_log_is_append_only;
UPDATE audit_log SET address = '::' WHERE address IS NULL;
ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_is_append_only;
ALTER TABLE audit_log ALTER COLUMN address SET NOT NULL;
COMMENT ON COLUMN audit_log.actor IS NULL;
COMMENT ON COLUMN audit_log.address IS 'The client''s address.';
