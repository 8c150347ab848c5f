-- A password reset by mail proves more than a log-in: for a while no failures that came
-- from the same address keep the user out.
ALTER TABLE login_addresses ADD COLUMN reset_at timestamptz;
COMMENT ON TABLE login_addresses IS 'Addresses from which a user has signed in, or reset the password by mail: an attack on the account slows down only the others.';
COMMENT ON COLUMN login_addresses.reset_at IS 'When the user last reset the password by mail from there; NULL for never.';

---- create above / drop below ----

ALTER TABLE login_addresses DROP COLUMN reset_at;
COMMENT ON TABLE login_addresses IS 'Addresses from which a user has signed in: an attack on the account slows down only the others.';
