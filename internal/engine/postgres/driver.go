package postgres

import (
	"os"
	"os/user"
	"strconv"
	"syscall"

	"kurabe"
	"kurabe/internal/engine"
)

// Config is what a Driver needs to know of its host.
type Config struct {
	// Root is the folder of the private trees (see tree.go). Every account that
	// runs an engine must be able to reach it.
	Root string
	// LibDir and ShareDir are where the packages install, one folder per major.
	// Empty means Debian's.
	LibDir   string
	ShareDir string
	// ServiceUser is the account that this process runs as, the only one that
	// may log in as rdsadmin. Empty means: look it up.
	ServiceUser string
}

// Driver implements engine.Driver. Everything it knows of a version is in the EngineVersion
// that Discover returned. It keeps no state but when the log of followers was seen to grow,
// without which it only waits longer.
type Driver struct {
	root        string
	libDir      string
	shareDir    string
	serviceUser string
	arrivals    arrivals
}

var (
	_ engine.Driver     = (*Driver)(nil)
	_ engine.Individual = (*Driver)(nil)
)

// New returns a driver. It does nothing until asked.
func New(c Config) *Driver {
	d := &Driver{root: c.Root, libDir: c.LibDir, shareDir: c.ShareDir, serviceUser: c.ServiceUser}
	if d.libDir == "" {
		d.libDir = "/usr/lib/postgresql"
	}
	if d.shareDir == "" {
		d.shareDir = "/usr/share/postgresql"
	}
	if d.serviceUser == "" {
		d.serviceUser = currentAccount()
	}
	return d
}

// currentAccount is the account name as the server's peer authentication will
// see it. Without an entry in the user database peer cannot succeed at all; the
// number is returned so that the rendered map still names nobody else.
func currentAccount() string {
	uid := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}

// Name implements engine.Driver.
func (d *Driver) Name() kurabe.EngineName { return kurabe.Postgres }

// StopSignal is a fast shutdown: sessions are ended, a checkpoint is written.
func (d *Driver) StopSignal() int { return int(syscall.SIGINT) }

// KillSignal is an immediate shutdown: the postmaster ends its children, and
// itself sends them SIGKILL after five seconds. SIGKILL to the postmaster would
// leave backends behind that go on writing.
func (d *Driver) KillSignal() int { return int(syscall.SIGQUIT) }
