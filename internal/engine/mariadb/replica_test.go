package mariadb

import (
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/role"
)

func TestFollowersOfASource(t *testing.T) {
	const source, replica = kurabe.InstanceID("db-S"), kurabe.InstanceID("db-R")
	i := engine.Instance{Assignment: kurabe.Assignment{Instance: source, Role: &kurabe.Role{Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{source.Member(2), replica}}}}
	if own := role.GroupFollowers(i); !slices.Equal(own, []kurabe.InstanceID{source.Member(2)}) {
		t.Errorf("its own followers: %v", own)
	}
	for name, want := range map[string]kurabe.InstanceID{
		role.MemberName(source.Member(2)): source.Member(2), role.MemberName(replica): replica, role.MemberName("db-X"): "", role.LookName(source): "", "root": "",
	} {
		if id, ours := role.FollowerOf(i, name); ours != (want != "") || ours && id != want {
			t.Errorf("%s is %q, %v; want %q", name, id, ours, want)
		}
	}
}

// A replica lets clients in, writes for nobody, and answers for nothing. A reader of a cluster
// answers for its writer.
func TestSettingsOfAReplica(t *testing.T) {
	i := follower()
	other := *i.Role.Source
	other.ID = kurabe.NewInstanceID()
	for _, c := range []struct {
		source         *kurabe.Source
		reads, answers bool
	}{{i.Role.Source, false, true}, {i.Role.Source, true, true}, {&other, true, false}} {
		role, reads := *i.Role, c.reads
		role.Reads, role.Source = reads, c.source
		i.Role = &role
		have := map[string]string{}
		for _, o := range groupSettings(i) {
			have[o.name] = o.value
		}
		want := map[string]string{"kurabe_guard_hold": flag(!reads), "rpl_semi_sync_slave_enabled": flag(c.answers), "read_only": "1", "rpl_semi_sync_master_enabled": "0", eventScheduler: "OFF"}
		for name, value := range want {
			if have[name] != value {
				t.Errorf("%+v: %s is %q, want %q", c, name, have[name], value)
			}
		}
	}
}
