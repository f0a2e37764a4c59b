package mariadb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/replica"
	"kurabe/internal/engine/scratch"
	"kurabe/internal/logkey"
)

// Config is what a Driver needs to know of its host.
type Config struct {
	// Guard is the path of kurabe_guard.so. Without it no version is ready.
	Guard string
	// Prefixes are where a server may be installed: PREFIX/sbin/mariadbd with
	// PREFIX/share/mysql. Empty means the usual ones.
	Prefixes []string
}

// prefixes are Debian's and that of a tarball.
var prefixes = []string{"/usr", "/usr/local", "/usr/local/mysql"}

// Driver implements engine.Driver. It keeps the plugin's bytes, which it renders into
// each instance's settings folder: the one place that every engine's user can reach and
// none can write.
type Driver struct {
	replica.Roles // what a server does in its group

	guard string
	// pluginDir is where the guard comes from.
	pluginDir string
	guardErr  error
	prefixes  []string
}

var (
	_ engine.Driver  = (*Driver)(nil)
	_ engine.Refuser = (*Driver)(nil)
	_ engine.Feeder  = (*Driver)(nil)
)

// New returns a driver.
func New(c Config) *Driver {
	d := &Driver{prefixes: c.Prefixes}
	if len(d.prefixes) == 0 {
		d.prefixes = prefixes
	}
	guard, err := os.ReadFile(c.Guard)
	if err != nil {
		d.guardErr = fmt.Errorf("the plugin that guards the accounts is missing: %w", err)
	}
	d.guard, d.pluginDir = string(guard), filepath.Dir(c.Guard)
	return d
}

// Name implements engine.Driver.
func (d *Driver) Name() kurabe.EngineName { return kurabe.MariaDB }

// StopSignal is a clean shutdown: sessions are ended, what is dirty is written.
func (d *Driver) StopSignal() int { return int(syscall.SIGTERM) }

// KillSignal ends the server at once. It is one process, so nothing survives it,
// and recovery replays the log.
func (d *Driver) KillSignal() int { return int(syscall.SIGKILL) }

// Render implements engine.Driver.
func (d *Driver) Render(i engine.Instance) map[string]string {
	return conf.Render(i, d.guard, d.pluginDir)
}

// Command implements engine.Driver. The options come first in the file's favour:
// --defaults-file keeps the host's own /etc/mysql out.
func (d *Driver) Command(i engine.Instance) engine.Command {
	return engine.Command{
		Argv: []string{conf.ServerPath(i.Version.BinDir), "--defaults-file=" + filepath.Join(i.Seen().ConfDir(), conf.SettingsFile)},
		Env:  scratch.Env(),
	}
}

// Preparations implements engine.Driver.
func (d *Driver) Preparations() []engine.Preparation {
	return []engine.Preparation{{What: "wait for what an earlier server has written", Do: func(ctx context.Context, i engine.Instance) ([]string, error) {
		return nil, conf.AwaitWrites(ctx, i.Home.DataDir())
	}}}
}

// Verifier is engine.Verifier.
func Verifier(password logkey.Secret) (string, error) { return door.Verifier(password) }
