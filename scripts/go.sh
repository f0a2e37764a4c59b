#!/usr/bin/env bash
# Prints the go command to use, on one line, and nothing else on stdout.
#
#   scripts/go.sh          find a usable Go; fetch the toolchain if there is only an old one
#   scripts/go.sh --check  exit 0 if nothing has to be fetched or installed for that
#
# The wanted version stands in go.mod and nowhere else. Go 1.21 and later fetch
# it by themselves (GOTOOLCHAIN). Debian 12 has Go 1.19, which cannot, but the
# toolchain is an ordinary module, so Go 1.19 can download it: the checksum
# database vouches for it as for any other module.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
wanted=$(awk '$1 == "toolchain" { sub(/^go/, "", $2); t = $2 } $1 == "go" { g = $2 } END { print t ? t : g }' "$root/go.mod")
cache=$root/.cache/go-$wanted

say() { printf 'kurabe: %s\n' "$*" >&2; }
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# version_of asks outside of the module: an old Go refuses to read our go.mod.
version_of() { (cd / && GOTOOLCHAIN=local GOFLAGS='' "$1" env GOVERSION 2>/dev/null) | sed -n 's/^go\([0-9.]*\).*/\1/p'; }

candidates() {
	type -P go || true
	printf '%s\n' "$cache/bin/go" /usr/local/go/bin/go /usr/lib/go/bin/go
}

best='' best_version=0
while read -r go; do
	[ -x "$go" ] || continue
	version=$(version_of "$go")
	[ -n "$version" ] || continue
	if at_least "$wanted" "$version"; then
		echo "$go"
		exit
	fi
	if ! at_least "$version" "$best_version"; then best=$go best_version=$version; fi
done < <(candidates)

# From 1.21 on the go command is its own bootstrap; auto also where a
# distribution has set the default to local.
if [ -n "$best" ] && at_least 1.21 "$best_version"; then
	[ "${1:-}" != --check ] || exit 0
	echo "env GOTOOLCHAIN=auto $best"
	exit
fi
[ "${1:-}" != --check ] || exit 1
if [ -z "$best" ]; then
	say "no Go found; run scripts/install.sh"
	exit 1
fi

case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) say "no ready toolchain for $(uname -m); install Go $wanted by hand"; exit 1 ;;
esac
module=golang.org/toolchain version=v0.0.1-go$wanted.linux-$arch
say "Go $best_version is too old; fetching Go $wanted as module $module@$version into .cache"
mkdir -p "$root/.cache"
work=$(mktemp -d "$root/.cache/go-fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
# In a module of its own: an old Go refuses to read ours, which is above .cache.
echo 'module bootstrap' >"$work/go.mod"
(cd "$work" && GOFLAGS=-modcacherw GOMODCACHE=$work/mod GOPATH=$work/path "$best" mod download "$module@$version") >&2
got=$work/mod/$module@$version
# A module zip carries no modes.
chmod +x "$got"/bin/* "$got"/pkg/tool/*/*
rm -rf "$cache"
mv "$got" "$cache"
[ "$(version_of "$cache/bin/go")" = "$wanted" ] || { say "the fetched toolchain does not run"; exit 1; }
echo "$cache/bin/go"
