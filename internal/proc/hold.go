package proc

// Hold takes a lock file as the processes of an engine do, until release is called
// or we die: no server can start on a data folder meanwhile. A *LockHeldError says
// that one runs.
func Hold(lockFile string) (release func(), err error) { return tryLock(lockFile) }
