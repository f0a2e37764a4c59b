package proc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func (b bed) marks() Marks {
	return Marks{RecordFile: b.spec().RecordFile, LockFile: b.spec().LockFile, DataDir: b.data}
}

// ends waits until nothing of the tree is found, and returns all that was.
func ends(t *testing.T, tree *Tree) map[int]bool {
	t.Helper()
	all := map[int]bool{}
	eventually(t, "the tree's end", func() bool {
		found, err := tree.Kill(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range found {
			all[pid] = true
		}
		return len(found) == 0
	})
	return all
}

func TestTreeKill(t *testing.T) {
	b := newBed(t)
	tree := NewTree(b.marks())
	if err := tree.Look(); err != nil {
		t.Error("before there is anything:", err)
	}
	p := b.start(t, "/bin/sh", "-c", `(cd / && echo away && exec sleep 60) & sleep 60 & kill -STOP $!; echo ready; sleep 60`)
	eventually(t, "the children", func() bool {
		found, err := Survivors(b.data)
		return err == nil && len(found) == 3 && strings.Contains(b.log(t), "ready") && strings.Contains(b.log(t), "away")
	})
	if err := tree.Look(); err != nil {
		t.Fatal(err)
	}
	if found := ends(t, tree); len(found) != 4 || !found[p.PID] {
		t.Errorf("killed %v, want 4 with %d", found, p.PID)
	}
	if held, err := LockHeld(b.marks().LockFile); held || err != nil {
		t.Errorf("lock held: %v %v", held, err)
	}
}

// The folder is gone and another has its name: what works in the old one is the server's.
func TestTreeOfFolderThatWent(t *testing.T) {
	b := newBed(t)
	tree := NewTree(Marks{DataDir: b.data})
	p := b.start(t, "/bin/sleep", "60")
	if err := tree.Look(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(b.data, b.data+".old"), os.Mkdir(b.data, 0o755), tree.Look()); err != nil {
		t.Fatal(err)
	}
	if found := ends(t, tree); !found[p.PID] {
		t.Errorf("killed %v, not %d", found, p.PID)
	}
}

// Who holds the lock to keep servers away is not one.
func TestTreeSparesHolder(t *testing.T) {
	b := newBed(t)
	release, err := Hold(b.marks().LockFile)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	tree := NewTree(b.marks())
	if err := tree.Look(); err != nil {
		t.Fatal(err)
	}
	if found, err := tree.Kill(deadline(t)); len(found) != 0 || err != nil {
		t.Errorf("killed %v, %v", found, err)
	}
	if ofServer(os.Getpid(), inodeOf(t, b.marks().LockFile).dev, inodeOf(t, b.marks().LockFile).ino) {
		t.Error("we would be killed")
	}
}

func inodeOf(t *testing.T, path string) inode {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return inode{st.Dev, st.Ino}
}

// A list of members stands in for a control group, which the suite of cgroup has.
func TestTreeGroup(t *testing.T) {
	b := newBed(t)
	p := b.start(t, "/bin/sleep", "60")
	procs := filepath.Join(b.dir, "cgroup.procs")
	members := strconv.Itoa(p.PID) + "\n" + strconv.Itoa(os.Getpid()) + "\n999999999\n"
	if err := os.WriteFile(procs, []byte(members), 0o600); err != nil {
		t.Fatal(err)
	}
	found := ends(t, NewTree(Marks{Cgroups: []string{procs, "/nonexistent/cgroup.procs"}}))
	if len(found) != 1 || !found[p.PID] {
		t.Errorf("killed %v, want %d", found, p.PID)
	}
}

func TestStartNotAfter(t *testing.T) {
	b := newBed(t)
	spec := b.spec("/bin/sleep", "60")
	spec.NotAfter = Boottime()
	_, err := Start(context.Background(), spec)
	var failed *StartError
	if !errors.As(err, &failed) || failed.Step != "start in time" {
		t.Errorf("start: %v", err)
	}
	spec.NotAfter = Boottime() + int64(startTimeout)
	if _, err := Start(context.Background(), spec); err != nil {
		t.Error(err)
	}
}

// A real group of version 2, which is killed by one word: members that work anywhere.
func TestTreeGroupV2(t *testing.T) {
	var dir string
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
			dir = filepath.Join(root, "kurabe-test-"+strconv.Itoa(os.Getpid()))
		}
	}
	if dir == "" || os.Mkdir(dir, 0o755) != nil {
		t.Skip("no control group of version 2 can be made")
	}
	t.Cleanup(func() {
		eventually(t, "the group is empty", func() bool { return syscall.Rmdir(dir) == nil })
	})
	if _, err := os.Stat(dir + "/cgroup.kill"); err != nil {
		t.Skip(err)
	}
	procs := dir + "/cgroup.procs"
	for _, withUs := range []bool{false, true} {
		b := newBed(t)
		spec := b.spec("/bin/sh", "-c", "cd /; sleep 60 & sleep 60")
		spec.Cgroups = []string{procs}
		if _, err := Start(deadline(t), spec); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the members", func() bool {
			members, err := groupMembers(procs)
			return err == nil && len(members) == 3
		})
		if withUs {
			// The killer is a member: the word would hit it as well. We are too many threads
			// to be moved, so another one pretends to be it.
			members, _ := groupMembers(procs)
			h := hunt{self: members[2], hit: map[int]*handle{}}
			h.group(procs)
			if len(h.hit) != 2 || h.hit[members[2]] != nil || len(h.errs) > 0 {
				t.Errorf("hit %v of %v, %v", h.hit, members, h.errs)
			}
		}
		if found := ends(t, NewTree(Marks{Cgroups: []string{procs}})); len(found) == 0 {
			t.Error("nothing was killed")
		}
	}
}
