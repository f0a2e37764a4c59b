package warden

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"

	"kurabe/internal/proc"
)

// Config says what a warden guards. Paths are absolute.
type Config struct {
	// Dir holds what is the warden's own: socket, record, lock, log and note. It is a
	// folder that only our own user can write.
	Dir string `json:"dir"`

	RecordFile string `json:"record_file"` // of the server's Spec
	LockFile   string `json:"lock_file"`   // of the server's Spec
	DataDir    string `json:"data_dir"`    // the server's processes work in it

	// Cgroups are the cgroup.procs files of the control group that is the server's alone:
	// whoever is in it is killed, but not the warden.
	Cgroups []string `json:"cgroups,omitempty"`
	// Joins are the cgroup.procs files of the group that the warden runs in; none means
	// where its starter is. In the server's own group its CPU quota would be the warden's
	// too, and a warden that is throttled is late.
	Joins []string `json:"joins,omitempty"`
}

// Target is what a lease lets the server have, and its end takes away.
type Target struct {
	// Addresses are taken off this machine's interfaces, and only such as have no network
	// of their own: see netaddr.Drop. Loopback needs none.
	Addresses []netip.Addr
}

const (
	socketName = "warden.sock"
	recordName = "warden.json"
	lockName   = "warden.lock"
	logName    = "warden.log"
	noteName   = "warden.fenced"
)

// configEnv carries the order to the process that it is for. It holds no secret.
const configEnv = "KURABE_WARDEN"

// order is what a warden is born with.
type order struct {
	Config Config `json:"config"`
	// Of the one that it succeeds under the same pid; 0 if there was no lease.
	Until     int64        `json:"until,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
}

func (c Config) file(name string) string { return filepath.Join(c.Dir, name) }

func (c Config) marks() proc.Marks {
	return proc.Marks{RecordFile: c.RecordFile, LockFile: c.LockFile, DataDir: c.DataDir, Cgroups: c.Cgroups}
}

func (c Config) check() error {
	for what, path := range map[string]string{"folder": c.Dir, "record file": c.RecordFile, "lock file": c.LockFile, "data folder": c.DataDir} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("warden: %s %q must be an absolute path", what, path)
		}
	}
	return nil
}

// Best effort both: they need root.
const (
	oomNever  = -1000 // memory that runs out must not end the warden before the server
	niceFirst = -20   // a machine that is busy must not make it late
)

// filesMax: killing takes a descriptor for each process of the server.
const filesMax = 1 << 16

// spec is the warden as a process: this program in its present version.
func (c Config) spec() (proc.Spec, error) {
	env, err := order{Config: c}.env()
	if err != nil {
		return proc.Spec{}, err
	}
	return proc.Spec{
		Name: "warden", Argv: argv(c), Env: env, Dir: "/",
		StdoutStderr: c.file(logName), LockFile: c.file(lockName), RecordFile: c.file(recordName),
		Cgroups: c.Joins, OOMScoreAdj: oomNever, Nice: niceFirst, Nofile: filesMax,
	}, nil
}

// ownProgram is what the shim is: after an upgrade on disk still our version.
const ownProgram = "/proc/self/exe"

func argv(c Config) []string { return []string{ownProgram, subcommand, c.Dir} }

func (o order) env() ([]string, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	// A heap of a few hundred KiB, one thread that runs Go code.
	return []string{configEnv + "=" + string(raw), "GOMAXPROCS=1", "GOGC=25"}, nil
}
