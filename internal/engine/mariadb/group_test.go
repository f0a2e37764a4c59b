package mariadb

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/pki"
)

// member is a server of a group of two.
func member(number int, role kurabe.Role) engine.Instance {
	i := instance(nil)
	owner := i.Instance
	i.Instance, i.Role = owner.Member(number), &role
	if number > 1 {
		i.ListensAt = "127.66.0.8"
	}
	return i
}

func writer(wait ...kurabe.InstanceID) engine.Instance {
	id := instance(nil).Instance
	return member(1, kurabe.Role{Epoch: 3, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{id.Member(2)}, WaitFor: wait})
}

func follower() engine.Instance {
	id := instance(nil).Instance
	return member(2, kurabe.Role{Epoch: 3, Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: id, Address: "127.66.0.7", Port: 3306}})
}

func TestRenderGroup(t *testing.T) {
	waiting := writer(instance(nil).Instance.Member(2))
	waiting.Settings = map[string]string{"event_scheduler": "ON", "innodb_flush_log_at_trx_commit": "2"}
	held := writer()
	held.Held = true
	for name, i := range map[string]engine.Instance{"writer.cnf": waiting, "held.cnf": held, "follower.cnf": follower()} {
		t.Run(name, func(t *testing.T) { enginetest.Golden(t, "render/"+name, renderSettings(i)) })
	}
	other := follower()
	other.Role.Source = &kurabe.Source{ID: "db-B", Address: "127.66.0.9", Port: 3306}
	if renderSettings(other) == renderSettings(follower()) {
		t.Error("another source is no other file, so nobody would load it")
	}
}

func TestKeepsOut(t *testing.T) {
	held, alone := writer(), instance(nil)
	held.Held, alone.Held = true, true
	for name, c := range map[string]struct {
		i    engine.Instance
		want bool
	}{
		"without a group": {alone, false}, "a writer": {writer(), false}, "one that is held": {held, true}, "a follower": {follower(), true},
		"one that yields": {member(1, kurabe.Role{Duty: kurabe.DutyYield}), true}, "one that rests": {member(1, kurabe.Role{Duty: kurabe.DutyRest}), true},
	} {
		if got := role.KeepsOut(c.i); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestKeepsBinlog(t *testing.T) {
	writer := &kurabe.Role{Duty: kurabe.DutyWrite}
	for name, c := range map[string]struct {
		a    kurabe.Assignment
		want bool
	}{
		"nobody needs it": {kurabe.Assignment{}, false}, "backups": {kurabe.Assignment{Log: true}, true}, "followers": {kurabe.Assignment{Role: writer, Binlog: true}, true},
		"a role needs it, whatever is said": {kurabe.Assignment{Role: writer}, true}, "until the restart": {kurabe.Assignment{Binlog: true}, true},
	} {
		if got := role.KeepsBinlog(engine.Instance{Assignment: c.a}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMemberNames(t *testing.T) {
	a, b := kurabe.NewInstanceID(), kurabe.NewInstanceID()
	names := []string{role.MemberName(a), role.MemberName(a.Member(2)), role.LookName(a), role.MemberName(b), "rdsmember_2", "admin"}
	slices.Sort(names)
	if len(slices.Compact(names)) != 6 {
		t.Errorf("two have one name: %v", names)
	}
	for name, want := range map[string]bool{
		role.MemberName(a): true, role.LookName(a.Member(12)): true, "rdsmember_2": false, "rdsmember_0_01234567": false, "rdsmember_2_0123456": false,
		"xrdsmember_2_01234567": false, "rdsprobe_2_01234567": false,
	} {
		if role.MemberForm.MatchString(name) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
	for name, want := range map[string]kurabe.InstanceID{
		role.MemberName(a): a, role.MemberName(a.Member(13)): a.Member(13), role.MemberName(b.Member(2)): "", role.LookName(a): "", "rdsmember_2": "", "rdsmember_0_01234567": "", "root": "",
	} {
		if id, ours := role.MemberOf(a, name); ours != (want != "") || ours && id != want {
			t.Errorf("%s is of %q, %v; want %q", name, id, ours, want)
		}
	}
}

func TestWaitTextIsReadBack(t *testing.T) {
	owner := instance(nil).Instance
	rapid.Check(t, func(t *rapid.T) {
		var ids []kurabe.InstanceID
		for _, n := range rapid.SliceOfDistinct(rapid.IntRange(1, 99), rapid.ID).Draw(t, "numbers") {
			ids = append(ids, owner.Member(n))
		}
		got := role.WaitedFor(owner, role.WaitText(ids))
		slices.Sort(ids)
		slices.Sort(got)
		if !slices.Equal(got, ids) {
			t.Fatalf("%v became %v", ids, got)
		}
	})
}

// Two members, or one that was cloned again, have no file of the same name.
func TestLogOfAClone(t *testing.T) {
	dir, i := t.TempDir(), follower()
	if err := beginLog(dir, "0-1-5,1-2-7", firstLogNumber(i), nil); err != nil {
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
	if d.IsFollower(h) || d.giveUp(h, "a reason") != nil || exists(filepath.Join(h.DataDir(), followFile)) {
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
	i := follower()
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
	i := follower()
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
	i := writer()
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
	i := follower()
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
	got := statements(writer(instance(nil).Instance.Member(2)))
	if want := []string{"SET GLOBAL sync_relay_log = 0", "SET GLOBAL " + waitingSetting + " = 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = statements(instance(nil))
	if want := []string{"SET GLOBAL read_only = DEFAULT", "SET GLOBAL event_scheduler = DEFAULT", "SET GLOBAL " + waitingSetting + " = DEFAULT"}; !slices.Equal(got, want) {
		t.Errorf("without a group: %q, want %q", got, want)
	}
}
