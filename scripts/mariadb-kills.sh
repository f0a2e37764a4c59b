#!/bin/sh
# mariadb-kills.sh FOLDER [ROUNDS [SERVER]]: damages a plain MariaDB by repeated deaths.
#
# Each round: a table is made and dropped, two clients insert two rows in each
# transaction, the server gets SIGKILL 50 ms later and is started again. It ends with
# status 1 when a transaction is there by half, an index does not fit its table, or the
# server does not start any more, and leaves the folder for those who want to look.
# internal/engine/mariadb/DESIGN.md, section 10, says what is known.
set -u

[ $# -ge 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
rounds=${2:-2000} server=${3:-/usr/sbin/mariadbd} pid=
me=$(id -un)
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null' EXIT
trap 'exit 130' INT TERM

sql() { mariadb --no-defaults -uroot -S "$sock" -N "$@"; }

start() {
	"$server" --no-defaults --user="$me" --datadir="$dir/data" --socket="$sock" --skip-networking \
		--log-error="$dir/error.log" --pid-file="$dir/pid" --lc-messages-dir=/usr/share/mysql \
		--log-bin=bin --server-id=1 --sync-binlog=1 2>/dev/null &
	pid=$!
	until sql -e 'SELECT 1' >/dev/null 2>&1; do
		if ! kill -0 "$pid" 2>/dev/null; then
			pid=
			echo "round $round: the server does not start"
			grep -a 'Assertion\|assertion' "$dir/error.log" | tail -n 2
			exit 1
		fi
		sleep 0.01
	done
}

write() {
	awk -v n="$((round * 1000000 + $1))" 'BEGIN {
		for (;; n += 2) printf "BEGIN; INSERT INTO t VALUES (%d, 0, RAND()); INSERT INTO t VALUES (%d, 1, RAND()); COMMIT;\n", n, n
	}' | sql test >/dev/null 2>&1
}

mkdir "$1" && dir=$(cd "$1" && pwd) || exit 2
sock=$dir/sock
export TMPDIR="$dir" # a server that starts removes what it takes for old temporary tables there
mariadb-install-db --no-defaults --auth-root-authentication-method=normal --user="$me" --datadir="$dir/data" >/dev/null || exit 2
round=0
start
sql -e 'CREATE DATABASE IF NOT EXISTS test; CREATE TABLE test.t (n INT, half INT, r DOUBLE, KEY (n)) ENGINE=InnoDB' || exit 2
while [ $((round += 1)) -le "$rounds" ]; do
	sql -e 'CREATE DATABASE d; CREATE TABLE d.d (n INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO d.d VALUES (1); DROP DATABASE d' || exit 2
	write 0 &
	write 1 &
	sleep 0.05
	kill -9 "$pid"
	wait
	start
	bad=$(sql test -e 'SELECT n, COUNT(*) AS c FROM t GROUP BY n HAVING c <> 2 LIMIT 5' 2>&1)
	if [ -n "$bad" ]; then
		echo "round $round:" $bad
		sql test -e 'CHECK TABLE t'
		exit 1
	fi
done
echo "$rounds rounds, no damage"
