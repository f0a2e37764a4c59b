#!/usr/bin/env bash
# Clients in Python against a running service. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/../../.."
venv=$(scripts/clients.sh python)
KURABE_TERRAFORM=$(scripts/clients.sh provider)
export KURABE_TERRAFORM
exec "$venv/bin/python" -B -m pytest -q -p no:cacheprovider --tb=short test/clients/python "$@"
