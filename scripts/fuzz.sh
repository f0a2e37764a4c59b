#!/usr/bin/env bash
# Runs every fuzz target for a while: scripts/fuzz.sh [time for each, default 10s]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go=$(scripts/go.sh)
grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file func; do
	target=${func#func }
	echo "== $target in ${file%/*}"
	$go test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "${1:-10s}" "${file%/*}" </dev/null
done
