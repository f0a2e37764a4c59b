package mariadb

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/mariadbtest"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/pki"
)

// Two members, or one that was cloned again, have no file of the same name.
func TestLogOfAClone(t *testing.T) {
	dir, i := t.TempDir(), mariadbtest.Follower()
	if err := beginLog(dir, "0-1-5,1-2-7", firstLogNumber(i), &workshop{}); err != nil {
		t.Fatal(err)
	}
	names, err := binlog.List(dir)
	if err != nil || len(names) != 1 || binlog.FileNumber(names[0]) != firstLogNumber(i)-1 {
		t.Errorf("%v, %v", names, err)
	}
	if end, err := binlog.ReadTail(dir); err != nil || !end.Closed {
		t.Errorf("there is nothing to recover, and it says %+v, %v", end, err)
	}
	if err := errors.Join(forgetPlace(dir), os.WriteFile(filepath.Join(dir, binlog.FileName(firstLogNumber(i))), []byte("begun"), 0o600), forgetPlace(dir), forgetPlace(dir)); err != nil {
		t.Error(err)
	}
	if left, err := binlog.List(dir); err != nil || len(left) != 1 || binlog.FileNumber(left[0]) != firstLogNumber(i) {
		t.Errorf("%v, %v", left, err)
	}
	if state, err := os.ReadFile(filepath.Join(dir, binlog.BaseName+".state")); err != nil || string(state) != "0-1-5\n1-2-7\n" {
		t.Errorf("%q, %v", state, err)
	}
	seen := map[int64]bool{}
	for number := range 3 {
		for epoch := range 3 {
			i.Instance, i.Role.Epoch = i.Instance.Owner().Member(number+2), kurabe.Epoch(epoch+1)
			if n := firstLogNumber(i); n < 2 || n > firstNumbers+1 || seen[n] {
				t.Errorf("member %d in epoch %d begins at %d", number+2, epoch+1, n)
			}
			seen[firstLogNumber(i)] = true
		}
	}
}

func TestFollowerFile(t *testing.T) {
	d, h := &Driver{}, engine.Home{Dir: t.TempDir()}
	if d.IsFollower(h) {
		t.Error("no data is a follower's")
	}
	if err := os.Mkdir(h.DataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if d.IsFollower(h) || d.giveUp(h, "a reason") != nil || conf.Exists(filepath.Join(h.DataDir(), followFile)) {
		t.Error("the data of a writer became a follower's")
	}
	if err := writeFollowing(h.DataDir(), following{Position: "0-1-5"}); err != nil || !d.IsFollower(h) {
		t.Errorf("it is no follower: %v", err)
	}
	lock := d.roleLock(h)
	lock.Lock()
	if err := d.giveUp(h, "in the midst of a promotion"); err != nil || !d.IsFollower(h) {
		t.Errorf("it was given up while its role changed: %v", err)
	}
	lock.Unlock()
	if err := d.giveUp(h, "a reason"); err != nil || d.IsFollower(h) {
		t.Errorf("it was not given up: %v", err)
	}
	i := mariadbtest.Follower()
	i.Home = h
	if err := d.Rejoin(t.Context(), i, ""); !errors.Is(err, engine.ErrRebuild) || !strings.Contains(err.Error(), "a reason") {
		t.Errorf("one that was given up rejoins: %v", err)
	}
	if state, err := readFollowing(h); err != nil || state.Position != "0-1-5" {
		t.Errorf("%+v, %v", state, err)
	}
	if err := removeFollowing(h.DataDir()); err != nil || d.IsFollower(h) {
		t.Errorf("it follows still: %v", err)
	}
	if err := os.WriteFile(filepath.Join(h.DataDir(), followFile), []byte("{"), 0o600); err != nil || !d.IsFollower(h) {
		t.Errorf("half a file makes a writer: %v", err)
	}
}

func TestChangeSource(t *testing.T) {
	i := mariadbtest.Follower()
	i.Role.Source.Address = `127.0.0.1' , MASTER_USE_GTID=no \`
	got := changeSource(i)
	for _, part := range []string{
		`MASTER_HOST='127.0.0.1\' , MASTER_USE_GTID=no \\'`, "MASTER_PORT=3306", "MASTER_USER='" + role.MemberName(i.Instance) + "'", "MASTER_PASSWORD=''",
		"MASTER_SSL_VERIFY_SERVER_CERT=1", "MASTER_SSL_KEY='/run/kurabe/a/tls/server.key'", "MASTER_USE_GTID=slave_pos", "MASTER_HEARTBEAT_PERIOD=0.25",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in %s", part, got)
		}
	}
}

func TestAccountsOfMembers(t *testing.T) {
	i := mariadbtest.Writer()
	i.Home = engine.Home{Dir: t.TempDir()}
	authority, err := pki.Open(filepath.Join(i.Home.Dir, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(i.Home.TLSDir(), 0o700), os.WriteFile(filepath.Join(i.Home.TLSDir(), door.AuthorityFile), authority.PEM(), 0o600)); err != nil {
		t.Fatal(err)
	}
	first, err := accountSQL(i)
	if err != nil {
		t.Fatal(err)
	}
	again, err := accountSQL(i)
	if err != nil || !slices.Equal(first, again) {
		t.Errorf("another password for each time: %v", err)
	}
	password, err := readLookPassword(i.Home)
	text := strings.Join(first, ";\n") + ";\n"
	if err != nil || len(password.Reveal()) != 32 || strings.Contains(text, password.Reveal()) {
		t.Errorf("the password is in the statements, or is none: %v", err)
	}
	if info, err := os.Stat(lookFile(i.Home)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	verifier, err := Verifier(password)
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Golden(t, "members.sql", strings.ReplaceAll(text, verifier, "*VERIFIER"))
	i.Role.Followers = nil
	if none, err := accountSQL(i); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}

func TestLocalSource(t *testing.T) {
	i := mariadbtest.Follower()
	i.Role.Source.ID = i.Instance.Owner().Member(3)
	s := localSource(i)
	if s.Home.Dir != "/var/lib/kurabe/homes/"+string(i.Instance.Owner())+"~3" || s.SeenDir != "/run/kurabe/"+string(i.Instance.Owner())+"~3" {
		t.Errorf("%s, %s", s.Home.Dir, s.SeenDir)
	}
	if s.Instance != i.Role.Source.ID || s.Listens() != i.Role.Source.Address || !role.Writes(s) || i.Role.Duty != kurabe.DutyFollow {
		t.Errorf("%+v", s.Assignment)
	}
}

func TestReloadOfAGroup(t *testing.T) {
	variables := []running{
		{name: waitingSetting, value: "OFF", origin: "CONFIG", kind: "BOOLEAN"},
		{name: "read_only", value: "OFF", origin: "SQL", kind: "BOOLEAN"},
		{name: "event_scheduler", value: "ON", origin: "SQL", kind: "ENUM"},
		{name: "replicate_wild_ignore_table", value: "a.%,b.%", origin: "CONFIG", kind: "VARCHAR"},
		{name: "sync_relay_log", value: "10000", origin: "COMPILE-TIME", kind: "INT UNSIGNED"},
	}
	statements := func(i engine.Instance) (all []string) {
		for _, c := range changes(i, variables) {
			all = append(all, c.statement())
		}
		return all
	}
	got := statements(mariadbtest.Writer(mariadbtest.Instance(nil).Instance.Member(2)))
	if want := []string{"SET GLOBAL sync_relay_log = 0", "SET GLOBAL " + waitingSetting + " = 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = statements(mariadbtest.Instance(nil))
	if want := []string{"SET GLOBAL read_only = DEFAULT", "SET GLOBAL event_scheduler = DEFAULT", "SET GLOBAL " + waitingSetting + " = DEFAULT"}; !slices.Equal(got, want) {
		t.Errorf("without a group: %q, want %q", got, want)
	}
}
