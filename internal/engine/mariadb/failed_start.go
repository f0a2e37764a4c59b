package mariadb

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/volume"
)

var _ engine.Mender = (*Driver)(nil)

// leftPrepared is what a server says that finds transactions which InnoDB has prepared,
// and was not told by its binary log to recover.
var leftPrepared = regexp.MustCompile(`Found \d+ prepared transactions!`)

// AfterFailedStart implements engine.Mender. A server that shuts down closes its binary
// log first and has InnoDB write out the last commits then; killed in between, its log
// says that all ended well, and no later start looks into it for what InnoDB has only
// prepared. The server then demands a guess (--tc-heuristic-recover). The log has the
// answer: marked as in use, as after any crash, it is read, and what it holds is
// committed.
//
// What a start has allocated for a redo log of another size goes as well: until it is there
// whole and takes the place of the one that there is, it is nobody's.
func (d *Driver) AfterFailedStart(i engine.Instance, message string) error {
	if err := removeResizedLog(i.Home.DataDir()); err != nil {
		return fmt.Errorf("remove what was allocated for the log: %w", err)
	}
	if !role.KeepsBinlog(i) || !leftPrepared.MatchString(message) {
		return nil
	}
	if err := binlog.MarkInUse(i.Home.DataDir()); err != nil {
		return fmt.Errorf("have the server recover from its binary log: %w", err)
	}
	return nil
}

// resizedLog is the redo log that is made beside the one in force.
const resizedLog = "ib_logfile101"

func removeResizedLog(dataDir string) error {
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Lstat(conf.RedoLog + "0"); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // then the other one may be all that there is
	}
	if err := root.Remove(resizedLog); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
