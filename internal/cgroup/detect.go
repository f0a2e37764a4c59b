package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Lever is one kind of limit.
type Lever struct {
	Enforceable bool
	Version     int    // of cgroups, 1 or 2; 0 if neither has the controller
	Reason      string // why not enforceable, for users

	base string // our parent group is made here
}

// Levers are the limits that can be enforced on this host, for one service.
type Levers struct {
	CPU, Memory, IO Lever

	parent     string
	accounting string // v1: where CPU use is counted, if not beside the limits
}

// String is one line per lever, for `kurabe explain`.
func (l Levers) String() string {
	var b strings.Builder
	for _, each := range []struct {
		name  string
		lever Lever
	}{{"cpu", l.CPU}, {"memory", l.Memory}, {"io", l.IO}} {
		if each.lever.Enforceable {
			fmt.Fprintf(&b, "%s: enforced (cgroup v%d, %s)\n", each.name, each.lever.Version, each.lever.base)
		} else {
			fmt.Fprintf(&b, "%s: not enforced: %s\n", each.name, each.lever.Reason)
		}
	}
	return b.String()
}

// controller is what one lever is called in either version.
type controller struct {
	what, v1, v2 string
	probe        string // v1 file that tells if the kernel can throttle at all
}

var (
	cpuController    = controller{"CPU", "cpu", "cpu", "cpu.cfs_quota_us"}
	memoryController = controller{"memory", "memory", "memory", "memory.limit_in_bytes"}
	ioController     = controller{"I/O", "blkio", "io", "blkio.throttle.read_bps_device"}
)

// detector is the input of detection, so that tests can pretend another host.
type detector struct {
	root     string
	self     map[string]string // our own group: by v1 controller, v2 under ""
	writable func(dir string) bool
	uid      int
}

// Detect looks, and changes nothing. root is where cgroups are mounted, usually
// /sys/fs/cgroup; parent is the folder of this service's groups in each hierarchy.
func Detect(root, parent string) Levers {
	raw, _ := os.ReadFile("/proc/self/cgroup") // Without it we look at the top only.
	d := detector{root, parseSelf(string(raw)), writable, os.Geteuid()}
	return d.levers(parent)
}

func (d detector) levers(parent string) Levers {
	l := Levers{
		CPU: d.lever(cpuController), Memory: d.lever(memoryController), IO: d.lever(ioController),
		parent: parent,
	}
	if dir, ok := d.mountV1("cpuacct"); ok && l.CPU.Enforceable && l.CPU.Version == 1 {
		// Mounted with cpu it is the same folder, perhaps under another name.
		if base := d.highest(dir, d.self["cpuacct"]); base != "" && !sameDir(base, l.CPU.base) {
			l.accounting = base
		}
	}
	return l
}

func (d detector) lever(c controller) Lever {
	if dir, ok := d.mountV1(c.v1); ok {
		base := d.highest(dir, d.self[c.v1])
		switch {
		case base == "":
			return Lever{Version: 1, Reason: d.notWritable(c, dir)}
		case !exists(filepath.Join(base, c.probe)):
			return Lever{Version: 1, Reason: fmt.Sprintf("this kernel is built without %s throttling (%s is missing)", c.what, c.probe)}
		}
		return Lever{Enforceable: true, Version: 1, base: base}
	}
	dir := d.mountV2()
	if dir == "" || !hasWord(filepath.Join(dir, "cgroup.controllers"), c.v2) {
		return Lever{Reason: fmt.Sprintf("%s control (cgroup v1 %q or v2 %q) is not mounted at %s", c.what, c.v1, c.v2, d.root)}
	}
	base := d.highest(dir, d.self[""])
	switch {
	case base == "":
		return Lever{Version: 2, Reason: d.notWritable(c, dir)}
	case base != dir && base == filepath.Join(dir, d.self[""]):
		return Lever{Version: 2, Reason: d.ownUnit(c, base)}
	case !hasWord(filepath.Join(base, "cgroup.controllers"), c.v2):
		return Lever{Version: 2, Reason: fmt.Sprintf("the %s controller is not delegated to %s (systemd: Delegate=%s)", c.v2, base, c.v2)}
	}
	return Lever{Enforceable: true, Version: 2, base: base}
}

func (d detector) notWritable(c controller, dir string) string {
	if d.uid == 0 {
		return fmt.Sprintf("%s is mounted read-only, as in most containers", dir)
	}
	return fmt.Sprintf("setting %s limits needs root, or a cgroup delegated to uid %d (a user service of systemd: %s)", c.what, d.uid, userService)
}

// userService is how an ordinary user gets limits: the groups are then beside the
// service's, below the user's own manager.
const userService = "systemctl --user"

// ownUnit refuses the very group that we run in. For groups below it, its processes
// have to leave it, and while a database is there no process may enter it again:
// systemd's next start of the unit ends with 219/CGROUP, and the databases are
// without a service. From systemd 254 on DelegateSubgroup= puts the service one
// level lower. The top of the mount, as in a container, has no such second start.
func (d detector) ownUnit(c controller, base string) string {
	return fmt.Sprintf("with %s limits in %s, which is the service's own cgroup, systemd could not start the service again beside its databases; use a user service (%s), or DelegateSubgroup= of systemd 254 and later",
		c.what, base, userService)
}

// mountV1 finds a hierarchy by its own folder or one shared as "cpu,cpuacct".
func (d detector) mountV1(name string) (string, bool) {
	entries, _ := os.ReadDir(d.root)
	for _, entry := range entries {
		dir := filepath.Join(d.root, entry.Name())
		if slices.Contains(strings.Split(entry.Name(), ","), name) && exists(filepath.Join(dir, "cgroup.procs")) {
			return dir, true
		}
	}
	return "", false
}

// mountV2 is the root itself, or "unified" beside v1.
func (d detector) mountV2() string {
	for _, dir := range []string{d.root, filepath.Join(d.root, "unified")} {
		if exists(filepath.Join(dir, "cgroup.controllers")) {
			return dir
		}
	}
	return ""
}

// highest is the topmost folder on the way to our own group that we may change. It
// is not our own group, because that goes when the service is restarted or stopped,
// and the databases are to stay.
func (d detector) highest(mount, self string) string {
	if d.writable(mount) {
		return mount
	}
	dir := mount
	for _, part := range strings.Split(strings.Trim(self, "/"), "/") {
		dir = filepath.Join(dir, part)
		if part != "" && d.writable(dir) {
			return dir
		}
	}
	return ""
}

// parseSelf reads /proc/self/cgroup: lines of "number:controllers:path".
func parseSelf(raw string) map[string]string {
	self := map[string]string{}
	for _, line := range strings.Split(raw, "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, name := range strings.Split(parts[1], ",") {
			self[name] = parts[2]
		}
	}
	return self
}

// writable: we may make groups in dir and move processes into them.
func writable(dir string) bool {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS) == nil &&
		unix.Faccessat(unix.AT_FDCWD, filepath.Join(dir, "cgroup.procs"), unix.W_OK, unix.AT_EACCESS) == nil
}
