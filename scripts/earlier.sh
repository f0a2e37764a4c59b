#!/usr/bin/env bash
# Builds the program of an earlier commit and prints its path: scripts/earlier.sh COMMIT
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify "${1:?name a commit}^{commit}")
out=$PWD/.cache/earlier/$commit
if [ ! -x "$out/kurabe" ]; then
	source=$(mktemp -d)
	trap 'rm -rf "$source"' EXIT
	git archive "$commit" | tar -x -C "$source"
	mkdir -p "$source/.cache"
	for have in "$PWD"/.cache/*; do # tools and headers that were fetched already
		case $have in */go-* | */mariadb-*) ln -s "$have" "$source/.cache/" ;; esac
	done
	make -C "$source" --no-print-directory build >&2
	mkdir -p "$out"
	cp "$source"/bin/* "$out/"
fi
echo "$out/kurabe"
