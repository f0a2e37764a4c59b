package target

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"kurabe/lab/study"
)

// instanceBytes are for an instance's own files, its log among them.
const instanceBytes = 1 << 30

// oneBytes is about what one server of a study takes: its data, once more where a change
// writes a table anew, and the log of its statements.
func oneBytes(s *study.Study) int64 {
	need := dataBytes(s) + logBytes(s)
	if study.HasChanges(s) {
		need += dataBytes(s)
	}
	return need
}

// noRoom says why an instance has no room for a study, "" when it has, or grows by itself.
func noRoom(s *study.Study, gib int) string {
	need := oneBytes(s) + instanceBytes
	if gib == 0 || int64(gib)<<30 >= need {
		return ""
	}
	return fmt.Sprintf("its storage of %d GiB has no room for what the study writes, about %.1f GiB: give it storage_gib: %d, or the study a smaller scale", gib, gibibytes(need), need>>30+1)
}

func gibibytes(n int64) float64 { return float64(n) / (1 << 30) }

// noDisk says that the disk of a folder has less than is needed; hint is the way out.
func noDisk(folder string, need int64, hint string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return fmt.Errorf("look at the disk of %s: %w", folder, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < need {
		return fmt.Errorf("the study needs about %.1f GiB of disk, and %s has %.1f GiB free: %s", gibibytes(need), folder, gibibytes(free), hint)
	}
	return nil
}

// checkDisk looks at the disk of a server on this machine. Of others it claims nothing.
func (t *urlTarget) checkDisk(s *study.Study) error {
	folder := localData(t.admin.Host, t.admin.Engine, t.have)
	if folder == "" {
		return nil
	}
	need := oneBytes(s)
	if t.admin.Engine == study.Postgres && !t.inPlace() {
		need += dataBytes(s) // the template
	}
	return noDisk(folder, need, "make room, or give the study a smaller scale")
}

// localData is where a server has its data when that is on this machine for certain: the
// process in its pid file works in that folder. Behind a forwarded port a folder of the
// same name would be another's. "" when it is not, or may not be seen.
func localData(host, engine string, have map[string]setting) string {
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return ""
	}
	folder, pidFile := have["datadir"].value, have["pid_file"].value
	if engine == study.Postgres {
		folder, pidFile = have["data_directory"].value, "postmaster.pid"
	}
	if !filepath.IsAbs(folder) || pidFile == "" {
		return ""
	}
	if !filepath.IsAbs(pidFile) {
		pidFile = filepath.Join(folder, pidFile)
	}
	data, err := os.ReadFile(pidFile)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return ""
	}
	at, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(folder); err != nil || real != filepath.Clean(at) {
		return ""
	}
	return filepath.Clean(folder)
}
