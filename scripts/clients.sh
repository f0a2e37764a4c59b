#!/usr/bin/env bash
# The suite of other people's clients.
#
#   scripts/clients.sh           runs every test/clients/*/run.sh in turn and ends with the totals
#   scripts/clients.sh python    installs the clients in Python into .cache/clients-venv and prints its folder
#   scripts/clients.sh earlier   installs SDK and CLI of an earlier generation into .cache/clients-earlier and prints its folder
#   scripts/clients.sh provider  builds Terraform's AWS provider into .cache/terraform and prints its folder
#
# A run.sh ends with a line "N passed, N failed, N skipped" and with 0 if nothing failed. It is
# ended after `bound`, as Ctrl-C ends it; what it has started it then cleans up.
set -euo pipefail
cd "$(dirname "$0")/.."

# Of the package "ansible", some 600 MB unpacked, the collection amazon.aws alone is taken.
ansible=12.3.0
bound=1h

python() {
	local venv=$PWD/.cache/clients-venv wanted
	wanted="$(cksum < test/clients/python/requirements.txt) $ansible"
	if [ "$(cat "$venv/installed" 2> /dev/null)" != "$wanted" ]; then
		echo "The clients in Python go to .cache/clients-venv (some 500 MB)" >&2
		python3 -m venv "$venv"
		"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement test/clients/python/requirements.txt >&2
		local wheel
		wheel=$(mktemp -d)
		trap "rm -rf '$wheel'" EXIT # a local name is gone by then
		"$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$wheel" "ansible==$ansible" >&2
		"$venv/bin/python" - "$wheel" "$venv/collections" <<- 'EOF'
			import pathlib, sys, zipfile
			(wheel,) = pathlib.Path(sys.argv[1]).glob("*.whl")
			with zipfile.ZipFile(wheel) as packed:
			    packed.extractall(sys.argv[2], [n for n in packed.namelist() if n.startswith("ansible_collections/amazon/aws/")])
		EOF
		echo "$wanted" > "$venv/installed"
	fi
	echo "$venv"
}

earlier() {
	local venv=$PWD/.cache/clients-earlier list=test/clients/python/requirements-earlier.txt
	if ! cmp -s "$list" "$venv/installed"; then
		echo "Earlier clients in Python go to .cache/clients-earlier (some 100 MB)" >&2
		python3 -m venv "$venv"
		"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$list" >&2
		cp "$list" "$venv/installed"
	fi
	echo "$venv"
}

provider() {
	local out=$PWD/.cache/terraform wanted
	wanted=$(cat test/clients/terraform/go.mod test/clients/terraform/main.go | cksum)
	if [ "$(cat "$out/built" 2> /dev/null)" != "$wanted" ]; then
		echo "Terraform's AWS provider is built in .cache/terraform (some minutes, 200 MB)" >&2
		mkdir -p "$out"
		(cd test/clients/terraform && "$("$OLDPWD/scripts/go.sh")" build -trimpath -ldflags='-s -w' -o "$out/terraform-provider-aws" .) >&2
		echo "$wanted" > "$out/built"
	fi
	echo "$out"
}

run() {
	local passed=0 failed=0 skipped=0 out
	out=$(mktemp)
	trap "rm -f '$out'" EXIT
	for each in test/clients/*/run.sh; do
		echo "== $each"
		local code=0
		timeout --signal=INT --kill-after=2m "$bound" "$each" 2>&1 | tee "$out" || code=$?
		if [[ "$(tail -n 1 "$out")" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
			passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
			# It failed and names no test: that is one failure.
			[ "$code" = 0 ] || [ "${BASH_REMATCH[2]}" != 0 ] || failed=$((failed + 1))
		else
			echo "$each: it ended with $code and without totals"
			failed=$((failed + 1))
		fi
	done
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}

case "${1:-run}" in
	python | earlier | provider | run) "${1:-run}" ;;
	*) echo "usage: $0 [python | earlier | provider]" >&2; exit 2 ;;
esac
