package role

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/mariadbtest"
)

func TestKeepsOut(t *testing.T) {
	held, alone := mariadbtest.Writer(), mariadbtest.Instance(nil)
	held.ClientsKeptOut, alone.ClientsKeptOut = true, true
	for name, c := range map[string]struct {
		i    engine.Instance
		want bool
	}{
		"without a group": {alone, false}, "a writer": {mariadbtest.Writer(), false}, "one that is held": {held, true}, "a follower": {mariadbtest.Follower(), true},
		"one that yields": {mariadbtest.Member(1, kurabe.Role{Duty: kurabe.DutyStepDown}), true}, "one that rests": {mariadbtest.Member(1, kurabe.Role{Duty: kurabe.DutyFenced}), true},
	} {
		if got := KeepsOut(c.i); got != c.want {
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
		if got := KeepsBinlog(engine.Instance{Assignment: c.a}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMemberNames(t *testing.T) {
	a, b := kurabe.NewInstanceID(), kurabe.NewInstanceID()
	names := []string{MemberName(a), MemberName(a.Member(2)), LookName(a), MemberName(b), "rdsmember_2", "admin"}
	slices.Sort(names)
	if len(slices.Compact(names)) != 6 {
		t.Errorf("two have one name: %v", names)
	}
	for name, want := range map[string]bool{
		MemberName(a): true, LookName(a.Member(12)): true, "rdsmember_2": false, "rdsmember_0_01234567": false, "rdsmember_2_0123456": false,
		"xrdsmember_2_01234567": false, "rdsprobe_2_01234567": false,
	} {
		if MemberForm.MatchString(name) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
	for name, want := range map[string]kurabe.InstanceID{
		MemberName(a): a, MemberName(a.Member(13)): a.Member(13), MemberName(b.Member(2)): "", LookName(a): "", "rdsmember_2": "", "rdsmember_0_01234567": "", "root": "",
	} {
		if id, ours := MemberOf(a, name); ours != (want != "") || ours && id != want {
			t.Errorf("%s is of %q, %v; want %q", name, id, ours, want)
		}
	}
}

func TestWaitTextIsReadBack(t *testing.T) {
	owner := mariadbtest.Instance(nil).Instance
	rapid.Check(t, func(t *rapid.T) {
		var ids []kurabe.InstanceID
		for _, n := range rapid.SliceOfDistinct(rapid.IntRange(1, 99), rapid.ID).Draw(t, "numbers") {
			ids = append(ids, owner.Member(n))
		}
		got := WaitedFor(owner, WaitText(ids))
		slices.Sort(ids)
		slices.Sort(got)
		if !slices.Equal(got, ids) {
			t.Fatalf("%v became %v", ids, got)
		}
	})
}

func TestFollowersOfASource(t *testing.T) {
	const source, replica = kurabe.InstanceID("db-S"), kurabe.InstanceID("db-R")
	i := engine.Instance{Assignment: kurabe.Assignment{Instance: source, Role: &kurabe.Role{Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{source.Member(2), replica}}}}
	if own := GroupFollowers(i); !slices.Equal(own, []kurabe.InstanceID{source.Member(2)}) {
		t.Errorf("its own followers: %v", own)
	}
	for name, want := range map[string]kurabe.InstanceID{
		MemberName(source.Member(2)): source.Member(2), MemberName(replica): replica, MemberName("db-X"): "", LookName(source): "", "root": "",
	} {
		if id, ours := FollowerOf(i, name); ours != (want != "") || ours && id != want {
			t.Errorf("%s is %q, %v; want %q", name, id, ours, want)
		}
	}
}

func TestServerIDsDiffer(t *testing.T) {
	seen := map[string]bool{"0": true}
	for range 1000 {
		id := ServerID(kurabe.NewInstanceID())
		if seen[id] {
			t.Fatalf("server_id %s twice", id)
		}
		seen[id] = true
	}
}
