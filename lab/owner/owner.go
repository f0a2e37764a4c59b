package owner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Owner is the process that something belongs to, so that another lab knows whether it
// still runs. Its text is MACHINE/BOOT/NAMESPACE/PID/START, of letters that a tag may have.
type Owner struct {
	Machine string // of its identity and name, see thisMachine
	Space   string // of process numbers: those of a container are its own
	PID     int
	Start   uint64 // of the process, ticks since the machine started: a number is used again
	Boot    string // of the machine
}

func (o Owner) String() string {
	return strings.Join([]string{o.Machine, o.Boot, o.Space, strconv.Itoa(o.PID), strconv.FormatUint(o.Start, 10)}, "/")
}

// Parse reads what String writes.
func Parse(text string) (Owner, error) {
	parts := strings.Split(strings.TrimSpace(text), "/")
	if len(parts) != 5 {
		return Owner{}, errors.New("not MACHINE/BOOT/NAMESPACE/PID/START")
	}
	pid, err := strconv.Atoi(parts[3])
	if err != nil || pid <= 0 {
		return Owner{}, errors.New("no process number")
	}
	start, err := strconv.ParseUint(parts[4], 10, 64)
	if err != nil {
		return Owner{}, errors.New("no start of a process")
	}
	return Owner{Machine: parts[0], Space: parts[2], PID: pid, Start: start, Boot: parts[1]}, nil
}

// Life is what is known of an owner.
type Life int

const (
	Dead Life = iota
	Alive
	Unknown // on another machine, or in another container of this one
)

// Life looks whether the process runs.
func (o Owner) Life(me Owner) Life {
	switch {
	case o.Machine != me.Machine:
		return Unknown
	case o.Boot != me.Boot:
		return Dead
	case o.Space != me.Space:
		return Unknown
	}
	if start, err := ProcessStart(o.PID); err != nil || start != o.Start {
		return Dead
	}
	return Alive
}

// This is our own process.
func This() (Owner, error) {
	pid := os.Getpid()
	start, err := ProcessStart(pid)
	if err != nil {
		return Owner{}, fmt.Errorf("read our own process: %w", err)
	}
	boot := first8(readTrimmed("/proc/sys/kernel/random/boot_id"))
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Owner{}, fmt.Errorf("read our own process: %w", err)
	}
	space = strings.Trim(strings.TrimPrefix(space, "pid:"), "[]")
	return Owner{Machine: thisMachine(boot), Space: space, PID: pid, Start: start, Boot: boot}, nil
}

// thisMachine is a short digest of the machine's identity and name. Where there is no
// identity the boot stands for it: two machines of the same name are then not taken for
// one that was restarted, at the price that after a restart leftovers are unknown.
func thisMachine(boot string) string {
	name, err := os.Hostname()
	if err != nil {
		name = "unnamed"
	}
	id := readTrimmed("/etc/machine-id")
	if id == "" {
		id = boot
	}
	sum := sha256.Sum256([]byte(id + " " + name))
	return hex.EncodeToString(sum[:4])
}

func readTrimmed(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "" // the callers know what to do without
	}
	return strings.TrimSpace(string(data))
}

func first8(text string) string { return text[:min(8, len(text))] }

// ProcessStart is when a process began, ticks since the machine started.
func ProcessStart(pid int) (uint64, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	return parseStart(string(data))
}

// parseStart begins after the name, which is in brackets and may hold anything.
func parseStart(stat string) (uint64, error) {
	const state, start = 0, 19
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= start {
		return 0, errors.New("stat of a process is too short")
	}
	if fields[state] == "Z" {
		return 0, syscall.ESRCH // it has ended, and nobody has looked yet
	}
	return strconv.ParseUint(fields[start], 10, 64)
}
