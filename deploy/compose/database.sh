#!/usr/bin/env bash
# Creates core's database and its role, which is no superuser, when PostgreSQL starts for
# the first time.
set -euo pipefail
psql --set=ON_ERROR_STOP=1 --set=password="$(</run/secrets/database_password)" --username=postgres <<'END'
CREATE ROLE veneer LOGIN PASSWORD :'password';
CREATE DATABASE veneer OWNER veneer;
END
