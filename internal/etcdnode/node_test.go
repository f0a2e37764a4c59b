package etcdnode

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// deadline bounds every wait of these tests.
const deadline = 30 * time.Second

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

func mustStart(t *testing.T, dir string) *Node {
	t.Helper()
	n, err := Start(testContext(t), Options{Dir: dir, Log: silent()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func mustClose(t *testing.T, n *Node) {
	t.Helper()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, n *Node, key, value string) {
	t.Helper()
	if _, err := n.Client().Put(testContext(t), key, value); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, n *Node, key string) string {
	t.Helper()
	r, err := n.Client().Get(testContext(t), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}

func TestRestartKeepsEverything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	began := time.Now()
	n := mustStart(t, dir)
	t.Logf("first start: %s", time.Since(began))
	for i := range 3000 { // past a raft snapshot
		put(t, n, fmt.Sprintf("/k/%04d", i), strings.Repeat("x", 2000))
	}
	began = time.Now()
	mustClose(t, n)
	t.Logf("close: %s", time.Since(began))
	if took := time.Since(began); took > closeTimeout {
		t.Errorf("close took %s", took)
	}
	began = time.Now()
	n = mustStart(t, dir)
	t.Logf("restart: %s", time.Since(began))
	if got := get(t, n, "/k/2999"); len(got) != 2000 {
		t.Errorf("last key has %d bytes after the restart", len(got))
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v %v; want mode 0700", info.Mode(), err)
	}
}

// Another local user must find nothing to talk to.
func TestNothingListens(t *testing.T) {
	before := listeners(t)
	n := mustStart(t, t.TempDir())
	put(t, n, "/k", "v")
	for socket := range listeners(t) {
		if !before[socket] {
			t.Errorf("a socket listens: %s", socket)
		}
	}
}

// listeners lists this process's listening sockets by inode.
func listeners(t *testing.T) map[string]bool {
	t.Helper()
	mine := map[string]bool{}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok && err == nil {
			mine[strings.TrimSuffix(inode, "]")] = true
		}
	}
	out := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6", "unix"} {
		text, err := os.ReadFile("/proc/self/net/" + table)
		if err != nil {
			continue // no IPv6 here
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if table == "unix" && len(f) > 6 && f[3] == "00010000" && mine[f[6]] ||
				table != "unix" && len(f) > 9 && f[3] == "0A" && mine[f[9]] {
				out[strings.TrimSpace(line)] = true
			}
		}
	}
	return out
}

func TestBackupHoldsTheState(t *testing.T) {
	n := mustStart(t, t.TempDir())
	put(t, n, "/k", "saved")
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := n.Backup(testContext(t), path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "saved") {
		t.Error("the backup does not hold the value")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestMaintainKeepsADailyBackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup.db")
	n, err := Start(testContext(t), Options{Dir: t.TempDir(), Log: silent(), Backup: path})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	look := func() (now, before time.Time) {
		t.Helper()
		if err := n.maintain(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err == nil {
			now = info.ModTime()
		}
		if info, err := os.Stat(path + ".1"); err == nil {
			before = info.ModTime()
		}
		return now, before
	}
	first, before := look()
	if first.IsZero() || !before.IsZero() {
		t.Fatalf("after the first pass: %v, %v", first, before)
	}
	if again, _ := look(); !again.Equal(first) {
		t.Error("written again within a day")
	}
	old := first.Add(-25 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if again, before := look(); !again.After(old) || !before.Equal(old) {
		t.Errorf("after a day: %v, and before it %v", again, before)
	}
}

func TestMaintainShrinksTheFile(t *testing.T) {
	n := mustStart(t, t.TempDir())
	for i := range 120 {
		put(t, n, fmt.Sprintf("/k/%d", i), strings.Repeat("x", 1<<20))
	}
	ctx := testContext(t)
	if _, err := n.Client().Delete(ctx, "/k/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if err := n.shrink(ctx); err != nil { // compacts, so that there is free space
		t.Fatal(err)
	}
	put(t, n, "/after", "v")
	if err := n.maintain(ctx); err != nil {
		t.Fatal(err)
	}
	if size := n.etcd.Server.Backend().Size(); size > 8<<20 {
		t.Errorf("database has %d bytes after the shrink", size)
	}
	if get(t, n, "/after") != "v" {
		t.Error("value lost")
	}
}
