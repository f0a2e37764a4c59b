package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/internal/hostlink"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

// lifeOf tells this data folder on this machine, until it is started anew, from a copy of it.
func machineID(data string) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Stat(data, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d:%d", strings.TrimSpace(string(boot)), st.Dev, st.Ino), nil
}

// lifeFile, below DATA/link, has the life in which this host was heard last.
const machineIDFile = "life"

// doubleTime is how long a start waits for the place of its host: the service has to miss what
// this machine was before, also when that has announced to be away.
const doubleTime = awayTime + firstTime + 5*time.Second

// takePlace makes sure that this machine is the host that its folder says, before any database
// is touched: a folder that was not used in this life may be a copy. While the service is not
// reached nobody can tell, and the databases are what matters: it is waited for so long.
func (n *Agent) takePlace(ctx context.Context, life string, within time.Duration) error {
	path := filepath.Join(n.self.dir, machineIDFile)
	last, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(last) == life {
		return nil
	}
	err = n.link.Place(ctx, within, doubleTime)
	if errors.Is(err, hostlink.ErrDouble) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		n.log.Warn("service not reachable; the agent keeps running the databases", logkey.Error, err)
		return nil
	}
	return volume.AtomicWrite(path, []byte(life), 0o600)
}
