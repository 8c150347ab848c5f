#!/usr/bin/env bash
# Creates core's database when PostgreSQL starts for the first time, and two roles, neither of which is a
# superuser: core migrate has veneer_owner, and core serve veneer, with limits for what a core leaves
# behind. Without the URL of veneer_owner there is only veneer.
set -euo pipefail
owner=$(sed -E 's,^[^:]*://[^:]*:([^@]*)@.*,\1,' /run/secrets/owner_database_url)
psql --set=ON_ERROR_STOP=1 --set=password="$(</run/secrets/database_password)" --set=owner="$owner" --username=postgres <<'END'
CREATE ROLE veneer LOGIN PASSWORD :'password';
SELECT :'owner' = '' AS single \gset
\if :single
CREATE DATABASE veneer OWNER veneer;
\else
ALTER ROLE veneer SET statement_timeout = '11min';
ALTER ROLE veneer SET idle_in_transaction_session_timeout = '1min';
CREATE ROLE veneer_owner LOGIN PASSWORD :'owner';
CREATE DATABASE veneer OWNER veneer_owner;
\endif
END
