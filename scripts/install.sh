#!/usr/bin/env bash
# Installs what this machine lacks, and nothing else: no service is started, no
# database server that is already here is changed, upgraded or restarted.
#
#   scripts/install.sh [run|test|bench]   default: run; test and bench include run
#   scripts/install.sh --system [...]     only the part that needs root
#
# Nothing missing, or nothing that can be had: silent, no network. Packages need root (directly or through
# sudo); the Go toolchain and the Python environment of the tests belong to the
# caller and go to .cache in this folder.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
system_only=false
if [ "${1:-}" = --system ]; then system_only=true; shift; fi
purpose=${1:-run}
case $purpose in
run | test | bench) ;;
*) echo "usage: scripts/install.sh [--system] [run|test|bench]" >&2; exit 2 ;;
esac

say() { printf '%s\n' "$*" >&2; }
packages=() reasons=()
need() { packages+=("$1"); reasons+=("$2"); }
# Extensions in packages of their own, tools of the lab: good to have, never a reason to fail.
extras=() extra_reasons=() servers=()
want() { extras+=("$1"); extra_reasons+=("$2"); }
have() { type -P "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }

# An engine of Kurabe is a server that is found on the host. One that the user
# installed from elsewhere counts, whatever package it came from.
have_postgres() {
	local bin
	for bin in /usr/lib/postgresql/*/bin/postgres; do
		[ -x "$bin" ] || continue
		bin=${bin%/bin/postgres}
		[ "${bin##*/}" -ge 15 ] && [ -e "/usr/share/postgresql/${bin##*/}/extension/pg_stat_statements.control" ] && return
	done
	return 1
}

postgres_package() {
	local newest
	newest=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: \(postgresql-[0-9]*\)$/\1/p' | head -n 1)
	echo "${newest:-postgresql-15}"
}

find_missing() {
	have_postgres || need "$(postgres_package)" "PostgreSQL server, client and contrib extensions (no cluster is created)"
	have mariadbd && have mariadb-install-db || need mariadb-server-core "MariaDB server program, without the service"
	have mariadb && have my_print_defaults || need mariadb-client-core "MariaDB client; mariadb-install-db calls its tools"
	have mariadb-backup || need mariadb-backup "snapshots of running MariaDB servers"
	have setpriv || need util-linux "setpriv, to run engines without privileges"
	have mkfs.xfs || need xfsprogs "mkfs.xfs, for the pool of kurabe server --pool loop"
	[ -s /etc/ssl/certs/ca-certificates.crt ] || need ca-certificates "HTTPS to the Go module proxy"
	have make || need make "builds Kurabe"
	"$root/scripts/go.sh" --check >/dev/null || have go || need golang-go "compiles, or fetches the Go version of go.mod"
	if [ -f "$root/ext/kurabe_guard/Makefile" ]; then
		have gcc || need gcc "compiles the MariaDB plugin"
		[ -e /usr/include/stdio.h ] || need libc6-dev "compiles the MariaDB plugin"
	fi
	[ "$purpose" != run ] || return 0
	have python3 && python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv "boto3 and the AWS CLI, which the tests use as clients"
	have psql || need postgresql-client "psql, a client in the tests"
	if [ -d "$root/test/fault" ]; then
		have ip && have tc || need iproute2 "hosts as network namespaces in the fault tests"
	fi
	[ "$purpose" != bench ] || have sysbench || need sysbench "load on MariaDB in measurements"
}

# find_extras looks for the extensions of RDS's list that are no part of the
# server's package, and for the tools of the lab. plperl and pltcl fit one version
# of the server exactly.
find_extras() {
	local major version
	for major in $(installed_majors); do
		version=$(dpkg-query -W -f '${Version}' "postgresql-$major" 2>/dev/null) || continue
		servers+=("postgresql-$major=$version")
		want_extensions "$major" "=$version"
	done
	have_postgres || want_extensions "$(postgres_package | sed 's/postgresql-//')" ""
	[ "$purpose" = run ] || want_tools
}

# want_tools: without one of them, the lab refuses the variants that need it, and the
# tests of these are skipped.
want_tools() {
	have pgbouncer || want pgbouncer "a pooler in front of PostgreSQL, in the lab"
	have haproxy || want haproxy "a proxy in front of either engine, in the lab"
	have pt-online-schema-change || want percona-toolkit "pt-online-schema-change, in the lab"
	[ "$purpose" = bench ] || have sysbench || want sysbench "a generator of load, in the lab"
	[ "$purpose" = bench ] || have chromium || want chromium "a browser, in which the tests look at the lab's pages"
}

installed_majors() {
	local bin
	for bin in /usr/lib/postgresql/*/bin/postgres; do
		[ -x "$bin" ] || continue
		bin=${bin%/bin/postgres}
		[ "${bin##*/}" -lt 15 ] || echo "${bin##*/}"
	done
}

want_extensions() {
	local dir=/usr/share/postgresql/$1/extension
	[ -e "$dir/postgis.control" ] || want "postgresql-$1-postgis-3" "PostGIS with GEOS, PROJ and GDAL (40 MB to fetch, 170 MB on disk)"
	[ -e "$dir/plperl.control" ] || want "postgresql-plperl-$1$2" "the language PL/Perl"
	[ -e "$dir/pltcl.control" ] || want "postgresql-pltcl-$1$2" "the language PL/Tcl"
	[ "$purpose" = run ] || [ -e "$dir/pgaudit.control" ] || want "postgresql-$1-pgaudit" "pgaudit, whose cost the lab measures"
}

# What could not be had is written down, so that nobody is asked at each run: for
# this server and this list. What root found holds for all, and not the reverse.
decision=$root/.cache/extensions-left-out
me=user; [ "$(id -u)" != 0 ] || me=root
decision_text() { echo "$1: ${servers[*]:-no server}: ${*:2}"; }
decided() {
	[ "${#extras[@]}" != 0 ] || return 0
	grep -qsxF -e "$(decision_text root "${extras[@]}")" -e "$(decision_text "$me" "${extras[@]}")" "$decision"
}

# leave_out says once what is not there and why.
leave_out() {
	local why=$1
	shift
	say "Without these packages, $why:"
	say "  $*"
	say "Asked again when the server's version changes, or after: rm .cache/${decision##*/}"
	mkdir -p "${decision%/*}" && decision_text "$me" "$@" >>"$decision" || return 0
	chown --reference="$root" "${decision%/*}" "$decision" 2>/dev/null || true
}

missing_user() { [ "$(id -u)" = 0 ] && ! getent passwd mysql >/dev/null; }

# --- the guards: in place while apt runs, gone afterwards ---------------------

marker='# kurabe: only while scripts/install.sh runs'
policy=/usr/sbin/policy-rc.d
dropin_dir=/etc/postgresql-common/createcluster.d
dropin=$dropin_dir/zz-kurabe-install.conf
made_dir=false

ours() { [ -f "$1" ] && grep -qsF "$marker" "$1"; }

# remove_guards also clears what a run that was killed with SIGKILL left behind.
remove_guards() {
	if ours "$policy"; then rm -f "$policy"; fi
	if ours "$dropin"; then rm -f "$dropin"; fi
	if $made_dir; then rmdir --ignore-fail-on-non-empty "$dropin_dir" 2>/dev/null || true; fi
}

place_guards() {
	remove_guards
	trap remove_guards EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	# Debian's scripts ask this program before they start or restart a service.
	if [ ! -e "$policy" ] && [ ! -L "$policy" ]; then
		printf '#!/bin/sh\n%s\nexit 101\n' "$marker" >"$policy"
		chmod 755 "$policy"
	fi
	# Without it the package creates and starts a cluster "main" on port 5432.
	if [ ! -d "$dropin_dir" ]; then made_dir=true; mkdir -p "$dropin_dir"; fi
	printf '%s\ncreate_main_cluster = false\n' "$marker" >"$dropin"
}

# disable_services keeps from the next boot what the guards kept from now: programs that
# the lab starts itself. A service that was here before this run is not touched.
services=(pgbouncer haproxy) others=()
note_services() {
	local name
	for name in "${services[@]}"; do
		if [ -e "/etc/init.d/$name" ] || [ -e "/lib/systemd/system/$name.service" ]; then others+=("$name"); fi
	done
}

disable_services() {
	local name
	for name in "${services[@]}"; do
		if [[ " ${others[*]} " = *" $name "* ]] || [ ! -e "/etc/init.d/$name" ]; then continue; fi
		update-rc.d "$name" disable >&2 || say "service $name could not be disabled; it would start at the next boot"
	done
}

# --- the part that needs root -------------------------------------------------

apt_options=(--no-install-recommends --no-upgrade --no-remove -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=300)

apt_plan() { LC_ALL=C apt-get -s install "${apt_options[@]}" "$@" 2>&1; }

# upgraded_servers reads a plan of apt's.
upgraded_servers() { sed -nE 's/^Inst ((postgresql|mariadb|mysql|percona)[^ ]*) \[.*/\1/p' | { grep -vE -- '-(client|common)' || true; } | xargs; }

# choose_extras adds those that apt can install, together with what we need,
# without another version of a database server that is already here.
choose_extras() {
	local i plan left=()
	for i in "${!extras[@]}"; do
		if plan=$(apt_plan ${packages[@]+"${packages[@]}"} "${extras[i]}") && [ -z "$(upgraded_servers <<<"$plan")" ]; then
			packages+=("${extras[i]}")
		else
			left+=("${extras[i]}")
		fi
	done
	[ "${#left[@]}" = 0 ] || leave_out "as apt has none that fit the server that is installed, and Kurabe upgrades no server" "${left[@]}"
}

# refuse_upgrades stops when a package that we need would pull a newer version
# of a database server that is already installed: that restarts it.
refuse_upgrades() {
	local plan upgraded
	if ! plan=$(apt_plan "${packages[@]}"); then
		printf '%s\n' "$plan" | tail -n 15 >&2
		say "apt cannot install: ${packages[*]}. Nothing was changed."
		exit 1
	fi
	upgraded=$(upgraded_servers <<<"$plan")
	[ -z "$upgraded" ] || {
		say "To install ${packages[*]}, apt would have to upgrade a database server that is in use here:"
		say "  $upgraded"
		say "Kurabe does not do that. Upgrade it when it suits you, then run this again. Nothing was changed."
		exit 1
	}
	say "apt will install:"
	printf '%s\n' "$plan" | sed -nE 's/^Inst ([^ ]+) \(([^ ]+).*/\1 \2/p;s/^Inst ([^ ]+) \[([^ ]+)\] \(([^ ]+).*/\1 \2 -> \3/p' | sort |
		awk '{ printf "  %s", $0; if (NR % 4 == 0) print ""; else printf "," } END { if (NR % 4) print "" }' >&2
}

install_packages() {
	have apt-get || { say "This is no Debian; install by hand what is named above."; exit 1; }
	export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
	apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists that are here"
	if ! decided; then choose_extras; fi
	[ "${#packages[@]}" != 0 ] || return 0
	refuse_upgrades
	note_services
	place_guards
	if ! apt-get install -y -qq "${apt_options[@]}" "${packages[@]}" </dev/null >&2; then
		[ "${#packages[@]}" != "${#reasons[@]}" ] || exit 1
		leave_out "as apt failed" "${extras[@]}"
		[ "${#reasons[@]}" = 0 ] ||
			apt-get install -y -qq "${apt_options[@]}" "${packages[@]:0:${#reasons[@]}}" </dev/null >&2
	fi
	disable_services
	remove_guards
	trap - EXIT HUP INT TERM
}

# add_user makes the user as Debian's mariadb-server does, so that a later
# installation of that package finds what it expects.
add_user() {
	if have adduser; then
		getent group mysql >/dev/null || addgroup --quiet --system mysql
		adduser --quiet --system --disabled-login --ingroup mysql --no-create-home --home /nonexistent \
			--gecos "MySQL Server" --shell /bin/false mysql
	else
		useradd --system --user-group --no-create-home --home-dir /nonexistent --comment "MySQL Server" --shell /bin/false mysql
	fi
}

announce() {
	local i
	[ "${#reasons[@]}" = 0 ] && ! missing_user || say "Kurabe needs on this machine:"
	for i in "${!packages[@]}"; do printf '  %-22s %s\n' "${packages[i]}" "${reasons[i]}" >&2; done
	if missing_user; then printf '  %-22s %s\n' "user mysql" "MariaDB engines run as this unprivileged system user" >&2; fi
	if ! decided; then
		say "Good to have, where apt can add it without touching a server:"
		for i in "${!extras[@]}"; do printf '  %-22s %s\n' "${extras[i]}" "${extra_reasons[i]}" >&2; done
	fi
	say "No service is started, and database servers that are here already are left alone."
}

as_root_or_explain() {
	local sudo=false
	if have sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then sudo=true; fi
	if [ "${#packages[@]}" = 0 ]; then
		if $sudo && sudo -- "$root/scripts/install.sh" --system "$purpose"; then return; fi
		leave_out "as they need root (scripts/install.sh --system)" "${extras[@]}"
		return
	fi
	if $sudo; then
		sudo -- "$root/scripts/install.sh" --system "$purpose"
		return
	fi
	announce
	say "That needs root, and this is user $(id -un) without a usable sudo. Run as root:"
	say "  $root/scripts/install.sh --system $purpose"
	say "then run your command again."
	exit 1
}

system_part() {
	find_missing
	find_extras
	if [ "${#packages[@]}" = 0 ] && decided && ! missing_user; then return; fi
	if [ "$(id -u)" != 0 ]; then as_root_or_explain; return; fi
	announce
	if [ "${#packages[@]}" != 0 ] || ! decided; then install_packages; fi
	if missing_user; then add_user; fi
}

# --- the part of the caller ---------------------------------------------------

# mariadb_headers takes the plugin's headers out of a package that is 600 MB when
# installed and 3 MB of headers. Without them the plugin is not built, and the
# build says so.
mariadb_headers() {
	local cache=$root/.cache/mariadb-headers work version
	[ -f "$root/ext/kurabe_guard/Makefile" ] || return 0
	if [ -e /usr/include/mariadb/server/mysql/service_sql.h ] || [ -d "$cache/mysql" ]; then return; fi
	have apt-get && have dpkg-deb || { say "no headers for the MariaDB plugin: this is no Debian"; return; }
	say "Headers for the MariaDB plugin go to .cache/mariadb-headers (out of package libmariadbd-dev, 95 MB to fetch, not installed)"
	mkdir -p "$root/.cache"
	work=$(mktemp -d "$root/.cache/headers.XXXXXX")
	version=$(dpkg-query -W -f '${Version}' mariadb-server-core 2>/dev/null || true)
	if (cd "$work" && { apt-get download -qq "libmariadbd-dev=$version" || apt-get download -qq libmariadbd-dev; } 2>fetch.log &&
		dpkg-deb --fsys-tarfile libmariadbd-dev_*.deb | tar -x ./usr/include/mariadb/server); then
		rm -rf "$cache"
		mv "$work/usr/include/mariadb/server" "$cache"
	else
		tail -n 3 "$work/fetch.log" >&2
		say "could not fetch them; after an apt-get update by root, run this again"
	fi
	rm -rf "$work"
}

# unpack takes files out of a package that is not installed, of the server's version
# where it has one: unpack FOLDER PACKAGE PATTERN...
unpack() {
	local to=$1 package=$2 work version status=0
	shift 2
	have apt-get && have dpkg-deb || { say "nothing of $package: this is no Debian"; return 1; }
	mkdir -p "$to"
	work=$(mktemp -d "$root/.cache/unpack.XXXXXX")
	version=$(dpkg-query -W -f '${Version}' mariadb-server-core 2>/dev/null || true)
	(cd "$work" && { apt-get download -qq "$package=$version" || apt-get download -qq "$package"; } 2>fetch.log &&
		dpkg-deb --fsys-tarfile "$package"_*.deb | tar -x -C "$to" --wildcards "$@" 2>>fetch.log) || {
		tail -n 3 "$work/fetch.log" >&2
		say "could not fetch $package; after an apt-get update by root, run this again"
		status=1
	}
	rm -rf "$work"
	return $status
}

# mariadb_plugins are those of Debian's package of the whole server that users may
# have: the package with the program alone has none.
mariadb_plugins() {
	local name=auth_ed25519.so to=$root/.cache/mariadb-plugins
	[ ! -e "/usr/lib/mysql/plugin/$name" ] && [ ! -e "$to/usr/lib/mysql/plugin/$name" ] && have mariadbd || return 0
	say "The plugin $name goes to .cache/mariadb-plugins (out of package mariadb-server, 4 MB to fetch, not installed)"
	unpack "$to" mariadb-server "./usr/lib/mysql/plugin/$name" || return 0
}

# client_programs dump and load databases in the tests. The packages hold more than
# that, or would bring a configuration with them.
client_programs() {
	local to=$root/.cache/clients
	[ ! -e "$to/done" ] && have mariadbd || return 0
	say "Programs for the tests go to .cache/clients (mariadb-dump and mydumper, 3 MB to fetch, not installed)"
	unpack "$to" mariadb-client ./usr/bin/mariadb-dump &&
		unpack "$to" mydumper ./usr/bin/mydumper ./usr/bin/myloader &&
		unpack "$to" libpcre3 './lib/*/libpcre.so.3*' && touch "$to/done" || return 0
}

python_environment() {
	local list=$root/test/compat/requirements.txt venv=$root/.cache/venv
	[ -f "$list" ] || return 0
	if cmp -s "$list" "$venv/installed.txt" && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
	say "Python clients for the tests go to .cache/venv: $(grep -v '^#' "$list" | xargs)"
	rm -rf "$venv"
	mkdir -p "$root/.cache"
	python3 -m venv "$venv"
	"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$list" >&2
	cp "$list" "$venv/installed.txt"
}

system_part
if $system_only; then exit; fi
"$root/scripts/go.sh" >/dev/null
mariadb_headers
mariadb_plugins
if [ "$purpose" != run ]; then client_programs; python_environment; fi
if [ "$purpose" = bench ]; then "$root/scripts/patroni.sh"; fi
