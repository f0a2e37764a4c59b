package target

import (
	"crypto/rand"
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

// owner is the process that something belongs to, so that another lab knows whether it
// still runs. Its text is MACHINE/BOOT/NAMESPACE/PID/START, of letters that a tag may have.
type owner struct {
	machine string // of its identity and name, see thisMachine
	space   string // of process numbers: those of a container are its own
	pid     int
	start   uint64 // of the process, ticks since the machine started: a number is used again
	boot    string // of the machine
}

func (o owner) String() string {
	return strings.Join([]string{o.machine, o.boot, o.space, strconv.Itoa(o.pid), strconv.FormatUint(o.start, 10)}, "/")
}

func parseOwner(text string) (owner, error) {
	parts := strings.Split(strings.TrimSpace(text), "/")
	if len(parts) != 5 {
		return owner{}, errors.New("not MACHINE/BOOT/NAMESPACE/PID/START")
	}
	pid, err := strconv.Atoi(parts[3])
	if err != nil || pid <= 0 {
		return owner{}, errors.New("no process number")
	}
	start, err := strconv.ParseUint(parts[4], 10, 64)
	if err != nil {
		return owner{}, errors.New("no start of a process")
	}
	return owner{parts[0], parts[2], pid, start, parts[1]}, nil
}

// life is what is known of an owner.
type life int

const (
	dead life = iota
	alive
	unknown // on another machine, or in another container of this one
)

// life looks whether the process runs.
func (o owner) life(me owner) life {
	switch {
	case o.machine != me.machine:
		return unknown
	case o.boot != me.boot:
		return dead
	case o.space != me.space:
		return unknown
	}
	if start, err := processStart(o.pid); err != nil || start != o.start {
		return dead
	}
	return alive
}

// thisProcess is us.
func thisProcess() (owner, error) {
	pid := os.Getpid()
	start, err := processStart(pid)
	if err != nil {
		return owner{}, fmt.Errorf("read our own process: %w", err)
	}
	boot := first8(readTrimmed("/proc/sys/kernel/random/boot_id"))
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return owner{}, fmt.Errorf("read our own process: %w", err)
	}
	space = strings.Trim(strings.TrimPrefix(space, "pid:"), "[]")
	return owner{thisMachine(boot), space, pid, start, boot}, nil
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

// processStart is when a process began, ticks since the machine started.
func processStart(pid int) (uint64, error) {
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

// The beginnings of every name that the lab gives.
const (
	namePrefix     = "kurabe-lab-" // of the RDS API and of folders
	databasePrefix = "kurabe_lab_"
)

// newID names what one target creates: unlike any other's.
func newID() string {
	var b [5]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// password is for a server of ours: 24 of 62 letters are 142 bits.
func password() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	const length = 24
	var out []byte
	for len(out) < length {
		var b [64]byte
		rand.Read(b[:]) // never fails
		for _, c := range b {
			// Bytes from 248 on would prefer the first letters.
			if int(c) < 256/len(letters)*len(letters) && len(out) < length {
				out = append(out, letters[int(c)%len(letters)])
			}
		}
	}
	return string(out)
}
