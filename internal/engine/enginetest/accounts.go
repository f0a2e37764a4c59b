package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/proc"
	"kurabe/internal/volume"
)

// RunAccounts looks at what one instance can reach of another, of its own verification and
// of the host, when code of a tenant runs as its account.
func RunAccounts(t *testing.T, s Setup) {
	if s.User == nil {
		t.Skip("needs root: without it all is one user's")
	}
	a, b := Serving(t, s), NewBed(t, s)
	b.Satisfy(t)
	t.Run("an instance reaches nothing of another one", func(t *testing.T) { reachesNothing(t, a, b) })
	t.Run("nothing outlives a verification", func(t *testing.T) { outlivesNothing(t, a) })
	t.Run("a removed instance gives its account back", func(t *testing.T) { givesBack(t, b) })
}

// Account is whom the files of the instance belong to, nil for ourselves.
func (b *Bed) Account() *proc.Credential { return b.Lifecycle.Account(b.Want.Instance) }

// asAccount runs a script as an account, with no rights but its own.
func asAccount(t *testing.T, user *proc.Credential, text string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), passTime)
	defer cancel()
	out, err := proc.Run(ctx, proc.Tool{
		Name: "attack", Argv: []string{"/bin/sh", "-c", text}, Env: []string{"PATH=/usr/sbin:/usr/bin:/bin"}, Dir: "/", User: user,
	})
	return string(out), err
}

// attacks are what is tried of an instance. Each works for the account that it names, so
// that none fails for another reason.
func attacks(t *testing.T, b *Bed) []struct{ name, script string } {
	home, pid := b.Home(), b.Process(t).PID
	socket := ""
	entries, err := os.ReadDir(home.RunDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type() == fs.ModeSocket {
			socket = filepath.Join(home.RunDir(), e.Name())
		}
	}
	if socket == "" {
		t.Fatal("it has no socket")
	}
	dial := "cd " + home.RunDir() + " && perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un($ARGV[0])) or die $!' " + filepath.Base(socket)
	list := []struct{ name, script string }{
		{"list its folder", "ls " + home.Dir},
		{"list its data", "ls " + home.DataDir()},
		{"write its data", "touch " + filepath.Join(home.DataDir(), "planted")},
		{"read its settings", "cat " + home.ConfDir() + "/*"},
		{"read its key", "cat " + filepath.Join(home.TLSDir(), "server.key")},
		{"list its logs", "ls " + home.LogDir()},
		{"come to its socket", dial},
		{"see its environment", fmt.Sprintf("cat /proc/%d/environ", pid)},
		{"see its memory", fmt.Sprintf("cat /proc/%d/maps", pid)},
		{"enter its working folder", fmt.Sprintf("ls /proc/%d/cwd/", pid)},
		{"see its open files", fmt.Sprintf("ls /proc/%d/fd", pid)},
		{"signal it", fmt.Sprintf("kill -0 %d", pid)},
		{"trace it", fmt.Sprintf("perl -e 'syscall(101, 16906, %d, 0, 0) == 0 or die $!'", pid)}, // PTRACE_SEIZE
		{"read its standard error", "cat " + home.StartLog()},
	}
	return list
}

func reachesNothing(t *testing.T, a, b *Bed) {
	id, _ := b.Take(t)
	mine, theirs := a.Lifecycle.Account(a.Want.Instance), b.Lifecycle.Account(b.Want.Instance)
	if mine.UID == theirs.UID || mine.UID == a.User.UID {
		t.Errorf("the accounts are %d and %d, the package's is %d", mine.UID, theirs.UID, a.User.UID)
	}
	for _, at := range attacks(t, b) {
		if _, err := asAccount(t, theirs, at.script); err != nil && at.name != "trace it" {
			t.Errorf("%s: its own account cannot, so the test says nothing: %v", at.name, err)
		}
		if out, err := asAccount(t, mine, at.script); err == nil {
			t.Errorf("%s: another instance's account can: %.200s", at.name, out)
		}
	}
	// What is the service's alone, no account reaches.
	for name, path := range map[string]string{
		"a snapshot": filepath.Join(b.Root, "snapshots", string(id), "data"), "the book": filepath.Join(b.Root, "accounts.json"),
		"the record of the process": b.Home().RecordFile(), "what was applied": b.Home().AppliedFile(),
	} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, user := range []*proc.Credential{mine, theirs} {
			if out, err := asAccount(t, user, "ls "+path+"/ || cat "+path); err == nil {
				t.Errorf("%s: account %d can read it: %.200s", name, user.UID, out)
			}
		}
	}
	if pid := b.Process(t).PID; pid > 0 {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			fmt.Sprintf("\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", theirs.UID), "\nGroups:\t \n", "\nNoNewPrivs:\t1\n",
			"\nCapInh:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n", "\nCapBnd:\t0000000000000000\n",
		} {
			if !strings.Contains(string(status), want) {
				t.Errorf("the server's rights are not %q: %s", want, status)
			}
		}
	}
}

// planting is a driver whose check leaves a process that is in no session, group or folder
// of the server's, as a tenant's code in the copy could.
type planting struct {
	engine.Driver
	t     *testing.T
	users []int
	views []string
}

func (d *planting) Check(ctx context.Context, i engine.Instance, dataDir string, r engine.CheckRequest) (engine.Checked, error) {
	checked, err := d.Driver.Check(ctx, i, dataDir, r)
	uid := os.Getuid()
	if i.User != nil {
		uid = i.User.UID
	}
	d.users = append(d.users, uid)
	_, planted := proc.Run(ctx, proc.Tool{
		Name: "plant", Argv: []string{"/bin/sh", "-c", Daemon},
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", User: i.User, Cgroups: i.Cgroups,
	})
	if left, e := proc.Owned(uid); planted != nil || e != nil || len(left) == 0 {
		d.t.Errorf("nothing was planted: %v, %v, %v", left, planted, e)
	}
	// What another account sees of the copy while it is there.
	out, e := asAccount(d.t, credentialBeside(uid), "ls "+dataDir)
	if e == nil {
		d.views = append(d.views, out)
	}
	return checked, err
}

// credentialBeside is an account that is nobody's.
func credentialBeside(uid int) *proc.Credential {
	return &proc.Credential{UID: uid + 100_000_000, GID: uid + 100_000_000, Name: "kurabe-beside"}
}

func outlivesNothing(t *testing.T, b *Bed) {
	id, _ := b.Take(t)
	if err := b.Snapshots().Seal(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d := &planting{Driver: b.Driver, t: t}
	s := b.Setup
	s.Driver = d
	l := lifecycle(t, s, []kurabe.EngineVersion{b.Version})
	all := engine.NewSnapshots(filepath.Join(b.Root, "snapshots"), l)
	v, err := all.Verify(t.Context(), engine.VerifyRequest{Snapshot: id})
	if err != nil || !v.OK {
		t.Fatalf("%+v, %v", v, err)
	}
	if len(d.users) != 1 || d.users[0] == l.Account(b.Want.Instance).UID || d.users[0] == b.User.UID {
		t.Errorf("the copy was checked as %v; the instance runs as %d", d.users, l.Account(b.Want.Instance).UID)
	}
	if len(d.views) > 0 {
		t.Errorf("another account sees the copy: %v", d.views)
	}
	for _, uid := range d.users {
		if left, err := proc.Owned(uid); err != nil || len(left) > 0 {
			t.Errorf("it left %v, %v", left, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(b.Root, "scratch", "*")); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	for _, name := range book(t, b.Setup).Names() {
		if strings.HasPrefix(name, "scratch/") {
			t.Errorf("the book still has %s", name)
		}
	}
}

// givesBack removes an instance that a process of its account has outlived.
func givesBack(t *testing.T, b *Bed) {
	user := b.Lifecycle.Account(b.Want.Instance)
	if _, err := asAccount(t, user, "setsid sh -c 'cd /; sleep 600' >/dev/null 2>&1 & sleep 0.1"); err != nil {
		t.Fatal(err)
	}
	b.Want.Goal, b.Want.Generation = kurabe.GoalAbsent, b.Want.Generation+1
	b.Satisfy(t)
	if left, err := proc.Owned(user.UID); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	for _, name := range book(t, b.Setup).Names() {
		if strings.HasSuffix(name, string(b.Want.Instance)) {
			t.Errorf("the book still has %s", name)
		}
	}
}

// handEnv tells a test binary to take the steps of one instance and nothing else.
const handEnv = "KURABE_TEST_HAND_OVER"

// HandOverInChild is what a test named TestHandOverInChild does: as a child, the steps of
// the instance that it is told of; as itself, nothing.
func HandOverInChild(t *testing.T, make func(root string) Setup) {
	order := os.Getenv(handEnv)
	if order == "" {
		t.Skip("only as a child of TestTakeOver")
	}
	var e errand
	if err := json.Unmarshal([]byte(order), &e); err != nil {
		t.Fatal(err)
	}
	s := make(e.Root)
	versions, err := s.Driver.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := &Bed{Setup: s, Want: e.Of, Lifecycle: lifecycle(t, s, versions)}
	fmt.Println("begun")
	if err := b.steps(t.Context(), string(engine.StepHandOver)); err != nil {
		t.Fatal(err)
	}
	fmt.Println("done")
}

// RunTakeOver makes an instance as a version did that ran all of them as one user, and
// takes it over: while it runs it is left alone, its next start gives it an account, a kill
// in the midst of that is made good, and the way back works, too.
func RunTakeOver(t *testing.T, s Setup) {
	if s.User == nil {
		t.Skip("needs root: without it all is one user's")
	}
	s.OneUser = true
	b := Serving(t, s)
	b.MustQuery(t, "CREATE TABLE kept (n integer)")
	b.MustQuery(t, "INSERT INTO kept VALUES (7)")
	if got := b.Lifecycle.Account(b.Want.Instance); got.UID != s.User.UID {
		t.Fatalf("it runs as %d, want %d", got.UID, s.User.UID)
	}
	crowd(t, b)

	// The new version comes, and leaves a running server alone.
	b.switchTo(t, false)
	pid := b.Process(t).PID
	b.Satisfy(t)
	if now := b.Process(t).PID; now != pid {
		t.Error("a running server was restarted for its account")
	}
	if got := b.Lifecycle.Account(b.Want.Instance); got.UID != s.User.UID {
		t.Errorf("while it runs as %d the book says %d", s.User.UID, got.UID)
	}

	b.Crash(t)
	for _, after := range []time.Duration{0, time.Microsecond, 10 * time.Millisecond} {
		b.killHanding(t, after)
	}
	b.switchTo(t, false) // what a service that starts anew reads
	b.Satisfy(t)
	own := b.Lifecycle.Account(b.Want.Instance)
	if own.UID == s.User.UID {
		t.Error("it was not taken over")
	}
	b.allOwnedBy(t, own.UID)
	if got := b.MustQuery(t, "SELECT n FROM kept"); got != "7" {
		t.Errorf("it has %s", got)
	}

	// Back to one user for all.
	b.switchTo(t, true)
	b.Want.Boot, b.Want.Generation = b.Want.Boot+1, b.Want.Generation+1
	b.Satisfy(t)
	b.allOwnedBy(t, s.User.UID)
	if got := b.MustQuery(t, "SELECT n FROM kept"); got != "7" {
		t.Errorf("it has %s", got)
	}
}

// crowdFiles make the handing over long enough to be met in the middle.
const crowdFiles = 3000

// crowd adds files to the folder of logs, which both engines leave alone.
func crowd(t *testing.T, b *Bed) {
	t.Helper()
	for n := range crowdFiles {
		path := filepath.Join(b.Home().LogDir(), fmt.Sprintf("crowd.%d", n))
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, b.User.UID, b.User.GID)); err != nil {
			t.Fatal(err)
		}
	}
}

// switchTo is another service on the same folders.
func (b *Bed) switchTo(t *testing.T, oneUser bool) {
	t.Helper()
	books.Lock()
	delete(books.of, filepath.Join(b.Root, "accounts.json"))
	books.Unlock()
	b.OneUser = oneUser
	b.Lifecycle = lifecycle(t, b.Setup, []kurabe.EngineVersion{b.Version})
}

// killHanding kills a service when its book says that the files change hands, or a while
// after the first of them have.
func (b *Bed) killHanding(t *testing.T, after time.Duration) {
	t.Helper()
	order, err := json.Marshal(errand{Root: b.Root, Of: b.Want})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(b.Root, "hand-over.log")
	child, err := proc.Start(t.Context(), proc.Spec{
		Name: "hand over", Argv: []string{self, "-test.run=^TestHandOverInChild$", "-test.v"}, Dir: here,
		Env:          append(os.Environ(), handEnv+"="+string(order), "TMPDIR="+b.Root),
		StdoutStderr: log, LockFile: log + ".lock", RecordFile: log + ".json",
	})
	if err != nil {
		t.Fatal(err)
	}
	booked := func() bool {
		text, err := os.ReadFile(filepath.Join(b.Root, "accounts.json"))
		return err == nil && strings.Contains(string(text), string(b.Want.Instance))
	}
	given := func() bool { // the first folder of an engine's own has changed hands
		info, err := os.Lstat(b.Home().DataDir())
		return err == nil && int(info.Sys().(*syscall.Stat_t).Uid) != b.User.UID
	}
	for deadline := time.Now().Add(passTime); !(booked() && (after == 0 || given())) && child.Alive(); time.Sleep(time.Millisecond / 4) {
		if time.Now().After(deadline) {
			t.Fatal("the child never began")
		}
	}
	time.Sleep(after)
	if err := child.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if err := child.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(log)
	owners := map[uint32]int{}
	err = filepath.WalkDir(b.Home().Dir, func(path string, d fs.DirEntry, err error) error {
		if info, e := d.Info(); err == nil && e == nil {
			owners[info.Sys().(*syscall.Stat_t).Uid]++
		}
		return err
	})
	t.Logf("killed %v after it began (the book has it: %v): owners %v, %v: %.80s", after, booked(), owners, err, text)
}

// allOwnedBy demands that nothing in the home is another account's, and that the server is
// the account's.
func (b *Bed) allOwnedBy(t *testing.T, uid int) {
	t.Helper()
	err := filepath.WalkDir(b.Home().Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		if st.Uid != 0 && int(st.Uid) != uid || st.Gid != 0 && int(st.Gid) != uid && uid != b.User.UID {
			t.Errorf("%s is of %d:%d, want %d", path, st.Uid, st.Gid, uid)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if running, err := proc.Owned(uid); err != nil || len(running) == 0 {
		t.Errorf("the server does not run as %d: %v", uid, err)
	}
}

// Daemon leaves a process in no session, group or folder of whom it was started by.
const Daemon = "setsid sh -c 'trap \"\" HUP TERM INT; cd /; sleep 600' >/dev/null 2>&1 & sleep 0.1"

// Attack is a script and what it would reach.
type Attack struct{ Name, Script string }

// SecludedAttacks are what code in a secluded server tries, of a file of the host that
// anybody may read and of a running instance.
func SecludedAttacks(witness string, b *Bed) []Attack {
	return []Attack{
		{"read a file of the host", "cat >/dev/null; cat " + witness},
		{"see another process", fmt.Sprintf("cat >/dev/null; tr '\\0' ' ' < /proc/%d/cmdline | grep -q test", os.Getpid())},
		{"list instances", "cat >/dev/null; ls " + filepath.Dir(b.Home().Dir) + " | grep -q " + string(b.Want.Instance)},
		{"reach an endpoint", fmt.Sprintf("cat >/dev/null; bash -c 'echo > /dev/tcp/%s/%d'", b.Want.Address, b.Want.Port)},
		{"see who has an account here", "cat >/dev/null; grep -q '^nobody:' /etc/passwd"},
		{"see the machine's devices", "cat >/dev/null; ls /sys/kernel"},
	}
}

// CopyBeside is a copy of a snapshot of the instance in a folder of an account of its own,
// and what a driver is told of it.
func (b *Bed) CopyBeside(t *testing.T) (engine.Instance, string) {
	t.Helper()
	id, _ := b.Take(t)
	user := &proc.Credential{UID: 654_301, GID: 654_301, Name: "kurabe-654301"}
	home := engine.Home{Dir: filepath.Join(b.Root, "beside")}
	if err := volume.EnsureDir(home.Dir, 0o750, os.Getuid(), user.GID); err != nil {
		t.Fatal(err)
	}
	_, _, err := volume.Transfer(t.Context(), filepath.Join(b.Root, "snapshots", string(id), "data"), home.DataDir(),
		volume.TransferOptions{Owner: &volume.Owner{UID: user.UID, GID: user.GID}})
	if err != nil {
		t.Fatal(err)
	}
	i := b.Instance()
	i.Home, i.SeenDir, i.User = home, home.Dir, user
	return i, home.DataDir()
}
