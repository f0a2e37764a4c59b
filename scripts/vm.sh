#!/usr/bin/env bash
# Boots a bare Debian 12 (systemd, cgroup v2 alone) and runs the tests of limits in
# it, as root: those of internal/cgroup and the limits of whole instances. For
# machines whose own cgroups are v1 or hybrid.
#
#   scripts/vm.sh DIR   DIR keeps the installed system (1.5 GiB) for the next run
#
# Needs root, debootstrap, qemu-system-x86, e2fsprogs and bin/kurabe_guard.so (make
# build); takes the mirror from this host's apt sources. Emulated it takes five
# to ten minutes; KURABE_VM_ACCEL=kvm uses KVM where it works (inside another virtual
# machine it may exist and be slower than emulation, so it is not the default).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=$(mkdir -p "${1:?usage: scripts/vm.sh DIR}" && cd "$1" && pwd)
accel=${KURABE_VM_ACCEL:-tcg}
go=$("$root/scripts/go.sh")
say() { printf '%s\n' "$*" >&2; }
fail() { say "vm: $*"; exit 1; }

[ "$(id -u)" = 0 ] || fail "debootstrap needs root"
for tool in debootstrap qemu-system-x86_64 mkfs.ext4; do
	type -P "$tool" >/dev/null || fail "$tool is missing (apt install debootstrap qemu-system-x86 e2fsprogs)"
done
[ -e "$root/bin/kurabe_guard.so" ] || fail "bin/kurabe_guard.so is missing; make build"

mirror() {
	apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(REPO_URI)' 2>/dev/null |
		awk '$1 == "Packages" && $2 == "bookworm" { print $3; exit }'
}

packages=systemd-sysv,udev,dbus,libpam-systemd,linux-image-cloud-amd64,initramfs-tools,kmod,procps,util-linux,adduser,iproute2
packages+=,ca-certificates,postgresql-15,mariadb-server-core,mariadb-client-core

# make_base fills the folder "base" once; its servers are programs, no services.
make_base() {
	local from
	from=$(mirror)
	[ -n "$from" ] || fail "this host's apt sources name no mirror of Debian 12 (bookworm)"
	rm -rf "$dir/new"
	say "vm: installing Debian 12 into $dir"
	debootstrap --variant=minbase --include="$packages" bookworm "$dir/new" "$from" >"$dir/debootstrap.log" 2>&1 ||
		fail "debootstrap did not finish, see $dir/debootstrap.log"
	chroot "$dir/new" adduser --quiet --system --group --no-create-home --home /nonexistent mysql
	chroot "$dir/new" systemctl --quiet disable postgresql
	chroot "$dir/new" systemctl --quiet mask serial-getty@ttyS0 getty@tty1
	echo '/dev/vda / ext4 defaults 0 1' >"$dir/new/etc/fstab"
	echo kurabe-vm >"$dir/new/etc/hostname"
	echo '127.0.0.1 localhost kurabe-vm' >"$dir/new/etc/hosts"
	mv "$dir/new" "$dir/base"
}

# patient writes the deadlines of the tests tenfold or more, for the emulator: an
# overlay of their build. The service itself is built as it is.
patient() {
	local file sep='' names='readyTime|endTime|availableTime|openTime|writeTime|backTime'
	mkdir -p "$dir/patient"
	printf '{"Replace": {'
	for file in internal/harness/{service,instance,session,ledger}.go test/integration/crash_test.go; do
		sed -E "s/^(const |\t)($names)( +)= [0-9]+ \* time.Second/\\1\\2\\3= 10 * time.Minute/" \
			"$root/$file" >"$dir/patient/${file//\//_}"
		printf '%s"%s": "%s"' "$sep" "$root/$file" "$dir/patient/${file//\//_}"
		sep=', '
	done
	printf '}}'
}

# add_tests puts in what is tested, and a unit that runs it and turns off.
add_tests() {
	local to=$dir/base/opt/kurabe overlay=()
	mkdir -p "$to/empty"
	if [ "$accel" = tcg ]; then
		patient >"$dir/overlay.json"
		overlay=(-overlay "$dir/overlay.json")
	fi
	cp "$root/bin/kurabe_guard.so" "$to/"
	cd "$root"
	export CGO_ENABLED=0
	$go build -trimpath -o "$to/kurabe" ./cmd/kurabe
	$go test -c -o "$to/cgroup.test" ./internal/cgroup
	$go test "${overlay[@]}" -c -tags integration -o "$to/integration.test" ./test/integration
	cat >"$to/run" <<-'RUN'
		#!/bin/bash
		cd /opt/kurabe/empty
		export TMPDIR=/var/tmp KURABE_BIN=/opt/kurabe/kurabe PATH=/usr/sbin:/usr/bin:/sbin:/bin
		[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || { echo "vm: no cgroup v2"; exit 1; }
		bad=0
		../cgroup.test -test.v || bad=1
		../integration.test -test.v -test.timeout 30m -test.run 'TestLimitsAreInTheKernel|TestMemoryOfOneInstanceIsItsOwn' || bad=1
		echo "vm: result $bad"
	RUN
	chmod 755 "$to/run"
	cat >"$dir/base/etc/systemd/system/kurabe-test.service" <<-'UNIT'
		[Unit]
		After=multi-user.target
		[Service]
		Type=oneshot
		ExecStart=/opt/kurabe/run
		StandardOutput=tty
		StandardError=tty
		TTYPath=/dev/ttyS0
		ExecStopPost=systemctl --no-block poweroff
		[Install]
		WantedBy=default.target
	UNIT
	chroot "$dir/base" systemctl --quiet enable kurabe-test
}

boot() {
	local kind=(-accel 'tcg,thread=multi' -cpu max)
	[ "$accel" != kvm ] || kind=(-accel kvm -cpu host)
	rm -f "$dir/disk.img"
	truncate -s 10G "$dir/disk.img"
	mkfs.ext4 -q -F -d "$dir/base" "$dir/disk.img"
	timeout 45m qemu-system-x86_64 "${kind[@]}" -smp 2 -m 6144 -display none -nodefaults -nic none -no-reboot \
		-kernel "$dir"/base/boot/vmlinuz-* -initrd "$dir"/base/boot/initrd.img-* \
		-append 'root=/dev/vda rw console=ttyS0 quiet panic=-1 systemd.show_status=0' \
		-drive "file=$dir/disk.img,format=raw,if=virtio,cache=unsafe" -device virtio-rng-pci -serial stdio </dev/null |
		sed -u 's,\r,,g' | tee "$dir/console.log" | grep --line-buffered -E '^ *(---|FAIL|ok|vm:|panic)|_test.go:'
	grep -q '^vm: result 0' "$dir/console.log" || fail "not all passed, see $dir/console.log"
}

[ -d "$dir/base" ] || make_base
add_tests
boot
