#!/bin/sh
# with-service.sh COMMAND: runs COMMAND with a service of its own, whose endpoints have
# names that the command finds, and ends the service, its databases and its folder.
# The command is told by the environment where the service is:
#   KURABE, KURABE_ENDPOINT, KURABE_DATA, KURABE_CA, and AWS_* as every SDK reads them.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
KURABE=${KURABE_BIN:-$root/bin/kurabe}
[ -x "$KURABE" ] || { echo "with-service: $KURABE is not there: make build" >&2; exit 2; }

work=$(mktemp -d "${TMPDIR:-/tmp}/kurabe-clients.XXXXXX")
chmod 755 "$work" # the engines' users pass through
server= command=
finish() {
	status=$?
	trap - EXIT HUP INT TERM
	[ -z "$command" ] || kill "$command" 2>/dev/null
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null
		wait "$server" || { echo "with-service: the service ended badly:" >&2; tail -n 20 "$work/log" >&2; status=1; }
	fi
	[ "$status" -eq 0 ] || [ -z "${KEEP_LOG:-}" ] || cp "$work/log" "$KEEP_LOG"
	rm -rf "$work"
	exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

for name in $(env | sed -n 's/^\(\(AWS\|KURABE\)_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
export KURABE
export KURABE_ROOT_ACCESS_KEY=AKIDCLIENTS KURABE_ROOT_SECRET_KEY=clients-root-secret-4Hq9
mkfifo "$work/ready"
"$KURABE" server --data "$work/data" --listen 127.0.0.1:0 --endpoint-suffix clients.example \
	--stop-databases-on-exit >"$work/ready" 2>"$work/log" &
server=$!
read -r _ word KURABE_ENDPOINT <"$work/ready" || word=
[ "$word" = ready ] || { cat "$work/log" >&2; exit 1; }

export KURABE_ENDPOINT KURABE_DATA="$work/data" KURABE_CA="$work/data/ca.pem"
export AWS_ACCESS_KEY_ID=$KURABE_ROOT_ACCESS_KEY AWS_SECRET_ACCESS_KEY=$KURABE_ROOT_SECRET_KEY
export AWS_REGION=us-east-1 AWS_ENDPOINT_URL=$KURABE_ENDPOINT AWS_EC2_METADATA_DISABLED=true
"$KURABE" exec --endpoint "$KURABE_ENDPOINT" --data "$KURABE_DATA" -- "$@" &
command=$!
wait "$command"
status=$?
command=
exit "$status"
