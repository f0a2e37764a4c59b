#!/usr/bin/env bash
# Clients in Python against a running service. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/../../.."
venv=$(scripts/clients.sh python)
KURABE_EARLIER_CLIENTS=$(scripts/clients.sh earlier)
KURABE_TERRAFORM=$(scripts/clients.sh provider)
export KURABE_EARLIER_CLIENTS KURABE_TERRAFORM
exec "$venv/bin/python" -B -m pytest -q -p no:cacheprovider --tb=short test/clients/python "$@"
