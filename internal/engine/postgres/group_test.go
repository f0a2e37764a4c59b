package postgres

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/parameter"
	"kurabe/internal/volume"
)

// member is a server of the sample's group.
func member(number int, role kurabe.Role) engine.Instance {
	i := sample("postgres15", map[string]string{"shared_buffers": "16384", "timezone": "UTC"})
	i.Version.Engine = kurabe.Postgres
	i.Instance, i.Role = i.Instance.Member(number), &role
	if number > 1 {
		i.ListensAt = "127.66.0.9"
		i.Home.Dir, i.SeenDir = "/srv/kurabe/db-1~2", "/run/kurabe/db-1~2"
	}
	return i
}

func held(i engine.Instance) engine.Instance {
	i.ClientsKeptOut = true
	return i
}

// Who lets clients in, and whom the service's role. Without a group nothing else matters.
func TestGroupAccess(t *testing.T) {
	followers := []kurabe.InstanceID{"db-1~2", "db-1~3"}
	without := held(sample("postgres15", nil))
	force := member(1, kurabe.Role{Duty: kurabe.DutyWrite})
	force.Settings = map[string]string{parameter.ForceSSL: "1"}
	cases := map[string]struct {
		i                engine.Instance
		clients, members bool
	}{
		"without a group":        {without, true, false},
		"a writer":               {member(1, kurabe.Role{Duty: kurabe.DutyWrite, Followers: followers}), true, true},
		"a writer of forced TLS": {force, true, false},
		"a writer with nobody":   {member(1, kurabe.Role{Duty: kurabe.DutyWrite}), true, false},
		"a writer that is held":  {held(member(1, kurabe.Role{Duty: kurabe.DutyWrite, Followers: followers})), false, true},
		"one that yields":        {member(1, kurabe.Role{Duty: kurabe.DutyStepDown, Followers: followers}), false, true},
		"one that rests":         {member(1, kurabe.Role{Duty: kurabe.DutyFenced}), false, false},
		"a follower":             {member(2, kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{}}), false, false},
		"a follower of nobody":   {member(2, kurabe.Role{Duty: kurabe.DutyFollow}), false, false},
	}
	d := New(Config{ServiceUser: "root"})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := d.Render(c.i)
			rules := strings.Split(strings.TrimSpace(files[accessFile]), "\n")
			if got := slices.Contains(rules, "host all all all scram-sha-256"); got != c.clients {
				t.Errorf("clients come in: %v\n%s", got, files[accessFile])
			}
			own := slices.Index(rules, "host all rdsadmin all reject")
			for _, rule := range []string{"hostssl replication rdsadmin all cert map=members", "hostssl rdsadmin rdsadmin all cert map=members"} {
				if at := slices.Index(rules, rule); at >= own || (at >= 0) != c.members {
					t.Errorf("%q stands at %d, and what shuts others out at %d", rule, at, own)
				}
			}
			for _, id := range followers {
				if got := strings.Contains(files[identFile], `members "`+string(id)+`" rdsadmin`+"\n"); got != c.members {
					t.Errorf("%s is mapped: %v", id, got)
				}
			}
		})
	}
}

// Nothing that a group needs is taken from what a user has set for a writer.
func TestGroupKeepsSettings(t *testing.T) {
	wanted := map[string]string{"wal_sender_timeout": "60000", "wal_receiver_timeout": "60000", "max_standby_streaming_delay": "-1", "wal_retrieve_retry_interval": "5000"}
	i := member(1, kurabe.Role{Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{"db-1~2"}})
	i.Settings = wanted
	text := New(Config{ServiceUser: "root"}).Render(i)[settingsFile]
	for name, value := range wanted {
		if !strings.Contains(text, "\n"+name+" = '"+value+"'\n") {
			t.Errorf("%s is not what the user has set", name)
		}
	}
}

func TestWaitNames(t *testing.T) {
	for _, c := range []struct {
		ids  []kurabe.InstanceID
		want string
	}{
		{nil, ""},
		{[]kurabe.InstanceID{"db-X~2"}, `FIRST 1 ("kurabe_member_2")`},
		{[]kurabe.InstanceID{"db-X"}, `FIRST 1 ("kurabe_member_1")`},
		{[]kurabe.InstanceID{"db-X~10", "db-X~2"}, `ANY 1 ("kurabe_member_2", "kurabe_member_10")`},
	} {
		got := waitNames(c.ids)
		if got != c.want {
			t.Errorf("%v: %s", c.ids, got)
		}
		back, sorted := waitedFor("db-X", got), slices.Sorted(slices.Values(c.ids))
		slices.Sort(back)
		if !slices.Equal(back, sorted) {
			t.Errorf("%s is read as %v", got, back)
		}
	}
	for _, foreign := range []string{"*", "ANY 1 (a, b)", `FIRST 1 ("kurabe_member_02")`, `FIRST 1 ("kurabe_clone_2")`, `FIRST 1 ("x kurabe_member_2")`} {
		if got := waitedFor("db-X", foreign); got != nil {
			t.Errorf("%s is read as %v", foreign, got)
		}
	}
}

// A word of libpq's never ends early.
func TestSourceInfo(t *testing.T) {
	i := member(2, kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: "db-1", Address: "127.66.0.7", Port: 5432}})
	i.SeenDir = `/run/it's a \ path`
	info := followInfo(i)
	if !strings.Contains(info, `sslkey='/run/it\'s a \\ path/tls/server.key' `) || strings.Contains(info, "password") {
		t.Error(info)
	}
	if !strings.Contains(info, "sslmode='verify-full'") {
		t.Error("the source's address is not compared with its certificate")
	}
	i.Version.Family = "postgres14"
	if got := followInfo(i); !strings.Contains(got, "sslmode='verify-ca'") {
		t.Errorf("libpq of 14 compares no addresses: %s", got)
	}
	if got := toolInfo(i, "/elsewhere/ca.pem"); !strings.Contains(got, "sslrootcert='/elsewhere/ca.pem'") || strings.Contains(got, memberPrefix) {
		t.Error(got)
	}
}

// An answer counts from when it was first seen, whatever the follower's clock says.
func TestHeardAgo(t *testing.T) {
	w := &watcher{owner: "db-1", heard: map[kurabe.InstanceID]heard{}}
	began := time.Now()
	row := followerRow{Name: "kurabe_member_2", PID: 7, Streaming: true, Flushed: "1/A0", Replayed: "1/90", Reply: "2026-11-21 04:00:00+00"}
	for _, c := range []struct {
		name   string
		after  time.Duration
		change func()
		want   time.Duration
	}{
		{"the first look", 0, func() {}, 0},
		{"nothing new", time.Second, func() {}, time.Second},
		{"an answer, by a clock that was set back", 2 * time.Second, func() { row.Reply = "2020-01-01 00:00:00+00" }, 0},
		{"nothing new again", 5 * time.Second, func() {}, 3 * time.Second},
		{"a new session that has not answered yet", 6 * time.Second, func() { row.PID, row.Reply = 8, "" }, 0},
	} {
		c.change()
		views, err := w.followers([]followerRow{row, {Name: "somebody", Flushed: "0/0", Replayed: "0/0"}}, began.Add(c.after))
		want := engine.FollowerView{Streaming: true, Flushed: 1<<32 + 0xA0, Replayed: 1<<32 + 0x90, HeardAgo: c.want}
		if err != nil || len(views) != 1 || views["db-1~2"] != want {
			t.Errorf("%s: %v, %v", c.name, views, err)
		}
	}
	if _, err := w.followers([]followerRow{{Name: "kurabe_member_2", Flushed: "x", Replayed: "0/0"}}, began); err == nil {
		t.Error("a place that is none is accepted")
	}
}

// What a follower has heard counts from when it was first seen, whatever its clock says.
func TestFollowsByAnyClock(t *testing.T) {
	var s stream
	began := time.Now()
	for _, c := range []struct {
		name  string
		after time.Duration
		word  string
		want  bool
	}{
		{"nothing has come", 0, "", false},
		{"the first word, of now", 0, "7 04:00:00" + lately, true},
		{"no other one", 2 * time.Second, "7 04:00:00" + lately, true},
		{"the clock was set back, and believes it", 4 * time.Second, "7 04:00:00" + lately, false},
		{"one by the clock as it is", 5 * time.Second, "7 01:00:05" + lately, true},
		{"the clock was set ahead, and believes nothing", 6 * time.Second, "7 01:00:05", true},
		{"one by that clock", 7 * time.Second, "7 13:00:07" + lately, true},
		{"the receiver ends", 8 * time.Second, "", false},
		{"another one, whose word is old or ahead", 9 * time.Second, "8 04:00:00", false},
		{"the same", 10 * time.Second, "8 04:00:00", false},
		{"the next one", 11 * time.Second, "8 04:00:01", true},
	} {
		if got := s.follows(c.word, began.Add(c.after)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// The age of a transaction is told of by two clocks, and never by how far they are apart.
func TestLagByTwoClocks(t *testing.T) {
	const hours = 3 * 3600
	for name, c := range map[string]struct {
		age, apart float64
		want       time.Duration
	}{
		"clocks that agree":                      {2, 0.001, 2 * time.Second},
		"a message that was long under way":      {40, 30, 40 * time.Second},
		"the follower's is ahead":                {hours + 2, hours, 2 * time.Second},
		"the follower's is behind":               {2 - hours, -hours, 2 * time.Second},
		"the follower's is behind by little":     {-3, -5, engine.LagUnknown},
		"the source's was set back since":        {2 - hours, 0, engine.LagUnknown},
		"the follower's is ahead, and was right": {2, hours, engine.LagUnknown},
	} {
		if got := lagOf(&c.age, c.apart); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := lagOf(nil, 0); got != engine.LagUnknown {
		t.Errorf("no transaction: %v", got)
	}
}

// dataFolder is a home with data that no server has seen.
func dataFolder(t *testing.T) engine.Instance {
	t.Helper()
	i := member(2, kurabe.Role{Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: "db-1", Address: "127.0.0.1", Port: 1}})
	i.Home.Dir = t.TempDir()
	i.SeenDir = i.Home.Dir
	if err := os.Mkdir(i.Home.DataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestIsFollower(t *testing.T) {
	i, d := dataFolder(t), New(Config{ServiceUser: "root"})
	if d.IsFollower(i.Home) {
		t.Error("a folder without the file is a follower's")
	}
	if err := putStandbySignal(i.Home.DataDir(), nil); err != nil {
		t.Fatal(err)
	}
	if err := putStandbySignal(i.Home.DataDir(), nil); err != nil || !d.IsFollower(i.Home) {
		t.Errorf("twice: %v", err)
	}
}

// One that was cut off in the midst of pg_rewind can only be cloned; one that came to the
// end, but for the removal of the mark, is done.
func TestRejoinAfterACut(t *testing.T) {
	i, d := dataFolder(t), New(Config{ServiceUser: "root"})
	if err := volume.AtomicWrite(markPath(i.Home), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Rejoin(t.Context(), i, ""); !errors.Is(err, engine.ErrRebuild) {
		t.Errorf("marked: %v", err)
	}
	if err := putStandbySignal(i.Home.DataDir(), nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Rejoin(t.Context(), i, ""); err != nil {
		t.Errorf("done but for the mark: %v", err)
	}
	if _, err := os.Lstat(markPath(i.Home)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mark is left: %v", err)
	}
}

func TestCloneKeepsData(t *testing.T) {
	i, d := dataFolder(t), New(Config{ServiceUser: "root"})
	kept := filepath.Join(i.Home.DataDir(), "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Clone(t.Context(), i, ""); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over data that is there: %v", err)
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Error(err)
	}
}

// A source that cannot be reached is no reason to throw data away.
func TestUnreached(t *testing.T) {
	for words, want := range map[string]bool{
		`pg_rewind: error: connection to server at "127.66.0.7", port 5432 failed: Connection refused`:                                  true,
		"pg_rewind: error: could not find previous WAL record at 0/3000110":                                                             false,
		"pg_rewind: error: could not fetch file list: server closed the connection unexpectedly":                                        false,
		"pg_rewind: fatal: source and target clusters are from different systems":                                                       false,
		"pg_rewind: error: could not connect to server: Connection refused":                                                             true,
		"pg_rewind: servers diverged at WAL location 0/5000060 on timeline 1\npg_rewind: error: could not open file: Permission denied": false,
	} {
		if got := unreached.MatchString(words); got != want {
			t.Errorf("%s: %v", words, got)
		}
	}
}

// The service's own commits wait for nobody in a group, and are as ever without one.
func TestOwnSession(t *testing.T) {
	for name, c := range map[string]struct {
		i    engine.Instance
		want string
	}{
		"without a group": {sample("postgres15", nil), "on"},
		"in a group":      {member(1, kurabe.Role{Duty: kurabe.DutyWrite}), "local"},
	} {
		for _, settings := range []map[string]string{plainSession(15), silentSession(15)} {
			if got := ownSession(c.i, settings)["synchronous_commit"]; got != c.want {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}
