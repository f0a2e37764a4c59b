package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// joinCgroups moves the shim before exec, so that the engine's first page is
// already counted against its limit.
func joinCgroups(files []string) error {
	for _, file := range files {
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			return err
		}
	}
	return nil
}

func applyLimits(spec Spec) error {
	err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(spec.OOMScoreAdj)), 0)
	// Lowering needs CAP_SYS_RESOURCE. It is a hint to the kernel, not a promise to
	// the user, so its absence must not keep a database down.
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// Of this thread, which the process becomes. Lowering it needs CAP_SYS_NICE.
	if spec.Nice != 0 {
		err := unix.Setpriority(unix.PRIO_PROCESS, 0, spec.Nice)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("set priority: %w", err)
		}
	}
	// What an engine has in its memory is a tenant's: no file of it is left when it dies.
	if spec.User != nil {
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
			return fmt.Errorf("no core files: %w", err)
		}
	}
	if spec.Nofile == 0 {
		return nil
	}
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &have); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	// A host may keep even root below what was asked for: then its most.
	limit := unix.Rlimit{Cur: spec.Nofile, Max: spec.Nofile}
	err = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	if err != nil && have.Max < spec.Nofile {
		limit = unix.Rlimit{Cur: have.Max, Max: have.Max}
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	}
	if err != nil {
		return fmt.Errorf("limit of %d open files: %w", limit.Cur, err)
	}
	return nil
}

// openLog points standard output and error at the log, owned by the engine's user.
func openLog(spec Spec) error {
	path := spec.StdoutStderr
	if path == "" {
		path = os.DevNull
	}
	// Without blocking: somebody may have put a pipe there, which nobody reads.
	fd, err := openNoLink(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_NONBLOCK, 0o640)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if path != os.DevNull {
		if err := claimLog(fd, spec.User); err != nil {
			return &fs.PathError{Op: "claim", Path: path, Err: err}
		}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return err
	}
	for _, std := range []int{unix.Stdout, unix.Stderr} {
		if err := unix.Dup3(fd, std, 0); err != nil {
			return err
		}
	}
	return nil
}

// claimLog gives the log to the engine's user. Where that user can write the folder,
// the file may be a hard link to one of root's, which must not change hands.
func claimLog(fd int, user *Credential) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 {
		return errors.New("not a plain file with one name")
	}
	if user == nil || os.Geteuid() != 0 {
		return nil
	}
	return unix.Fchown(fd, user.UID, user.GID)
}

// enterView gives this thread, and what it becomes, its own table of mounts in
// which from is also visible as to.
func enterView(from, to string) error {
	for _, dir := range []string{filepath.Dir(to), to} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("own mount namespace (needs root): %w", err)
	}
	// Slave, not private: our bind stays inside all the same, but when the host
	// unmounts a disk, a database running for months does not keep it busy.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detach mounts: %w", err)
	}
	// Opened in this table of mounts: a bind takes no folder of another one.
	source, err := openNoLink(from, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source), to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s as %s: %w", from, to, err)
	}
	return nil
}

// viewPath is the working directory as the process will see it.
func viewPath(spec Spec) string {
	if spec.BindAs == "" {
		return spec.Dir
	}
	rel, err := filepath.Rel(spec.BindFrom, spec.Dir)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return spec.Dir
	}
	return filepath.Join(spec.BindAs, rel)
}

// closeOnExecFrom keeps every descriptor from first on away from the engine: one
// of ours that leaked into it would stay open for months.
func closeOnExecFrom(first int) error {
	err := unix.CloseRange(uint(first), ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Linux before 5.11 does not know the flag.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
