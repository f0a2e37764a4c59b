package proc

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// ticksPerSecond is USER_HZ, which Linux fixes at 100 for every architecture
// that we build for (see times(2)).
const ticksPerSecond = 100

// StartedAt is when the process started, to a hundredth of a second; zero when
// the kernel does not tell when it booted.
func (p Process) StartedAt() time.Time {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	_, rest, found := bytes.Cut(data, []byte("\nbtime "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	boot, err := strconv.ParseInt(string(line), 10, 64)
	if !found || err != nil {
		return time.Time{}
	}
	return time.Unix(boot, 0).Add(time.Duration(p.StartTime) * time.Second / ticksPerSecond)
}

// SameBoot says whether the record is of this boot of the machine: a process
// that ended with its machine did not crash. A missing record is of no boot.
func SameBoot(recordFile string) (bool, error) {
	rec, found, err := readRecord(recordFile)
	if err != nil || !found {
		return false, err
	}
	boot, err := bootID()
	return err == nil && rec.BootID == boot, err
}
