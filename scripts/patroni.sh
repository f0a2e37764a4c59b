#!/usr/bin/env bash
# Puts Patroni, with which the failover benchmark compares, below .cache/patroni:
#
#   debian/   Debian's package with what it depends on, and etcd, unpacked
#   current/  the release that test/bench/patroni.txt names, in a virtual environment
#
# The packages are unpacked and not installed: their scripts would start services, and
# nothing here wants one. So it needs no root. What cannot be had is said, and is no
# failure: the benchmark measures the rest. Nothing missing: silent, no network.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache/patroni
list=$root/test/bench/patroni.txt
work=

say() { printf '%s\n' "$*" >&2; }
give_up() {
	tail -n 3 "$work/log" >&2
	say "Patroni ($1) could not be fetched; the failover benchmark does without it. If the package lists are old, run apt-get update as root first."
}

# missing_packages are those that apt would install for Patroni here. The two are
# among them even where they are installed: what is compared is found in one place.
missing_packages() {
	{
		echo patroni
		echo etcd-server
		LC_ALL=C apt-get -s install --no-install-recommends --no-upgrade --no-remove patroni etcd-server | sed -n 's/^Inst \([^ ]*\) .*/\1/p'
	} | sort -u
}

from_debian() {
	local names
	type -P apt-get dpkg-deb >/dev/null || { echo "this is no Debian"; return 1; }
	names=$(missing_packages) || return 1
	mkdir "$work/packages" "$work/debian" || return 1
	# shellcheck disable=SC2086 # one word for each package
	(cd "$work/packages" && apt-get download -qq $names) || return 1
	for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$work/debian" || return 1; done
	[ -x "$work/debian/usr/bin/etcd" ] || { echo "no etcd in it"; return 1; }
}

from_pip() {
	local venv=$cache/current python=/usr/bin/python3
	# The system's own, since another user runs it; one in somebody's home is not for others.
	"$python" -c 'import ensurepip, venv' || python=python3
	rm -rf "$venv"
	# Made where it stays: its programs hold its path.
	if "$python" -m venv "$venv" && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$list"; then
		cp "$list" "$venv/installed.txt"
		return
	fi
	rm -rf "$venv"
	return 1
}

fetch_debian=false fetch_current=false
[ -x "$cache/debian/usr/bin/etcd" ] || fetch_debian=true
cmp -s "$list" "$cache/current/installed.txt" || fetch_current=true
if ! $fetch_debian && ! $fetch_current; then exit; fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
if $fetch_debian; then
	say "Debian's Patroni and etcd, for the failover benchmark, go to .cache/patroni/debian (9 MB to fetch, not installed)"
	if from_debian >"$work/log" 2>&1; then mv "$work/debian" "$cache/debian"; else give_up "Debian's"; fi
fi
if $fetch_current; then
	say "the current Patroni goes to .cache/patroni/current: $(grep -v '^#' "$list" | xargs)"
	if ! from_pip >"$work/log" 2>&1; then give_up "the current one"; fi
fi
