package enginetest

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kurabe/internal/proc"
)

// Account is the account that engines run as, nil where only our own may be used:
// as root a test takes the named one, because the servers refuse root.
func Account(t *testing.T, name string) *proc.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		t.Skipf("no account for the engine: %v", err)
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if uidErr != nil || gidErr != nil {
		t.Fatalf("account %s: uid %q, gid %q", name, u.Uid, u.Gid)
	}
	return &proc.Credential{UID: uid, GID: gid}
}

// Reachable is a folder that the engine's account can enter, unlike TempDir's.
func Reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kurabe-engine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// LongBarredPath serves an instance at a path longer than a socket address, below
// a folder that only root may enter: the admin socket is dialled through a
// descriptor and the server works behind a bind mount.
func LongBarredPath(t *testing.T, setup func(t *testing.T, root string) Setup) {
	root := filepath.Join(Reachable(t), strings.Repeat("long-", 20), strings.Repeat("path-", 20))
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	Serving(t, setup(t, root)).MustQuery(t, "SELECT 1")
}
