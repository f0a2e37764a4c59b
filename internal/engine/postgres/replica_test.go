package postgres

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/postgres/wal"
)

const (
	sourceID  = kurabe.InstanceID("db-SSSSSSSSSSSSSSSSSSSSSSSS77")
	replicaID = kurabe.InstanceID("db-RRRRRRRRRRRRRRRRRRRRRRRR22")
)

func TestContinuedBy(t *testing.T) {
	source := walEnd{oldest: 0x2000000, at: 0x9000000, history: []wal.Stretch{{Timeline: 1, End: 0x3000000}, {Timeline: 2, End: 0x5000000}, {Timeline: 3, End: wal.Endless}}}
	first, second := wal.Stretch{Timeline: 1, End: 0x3000000}, wal.Stretch{Timeline: 2, End: 0x5000000}
	for name, c := range map[string]struct {
		at      wal.LSN
		history []wal.Stretch
		lost    string
	}{
		"the timeline that is written":      {0x9000000, []wal.Stretch{first, second, {Timeline: 3, End: wal.Endless}}, ""},
		"up to where another one began":     {0x5000000, []wal.Stretch{first, {Timeline: 2, End: wal.Endless}}, ""},
		"beyond that":                       {0x5000001, []wal.Stretch{first, {Timeline: 2, End: wal.Endless}}, "which nobody else has"},
		"beyond the end of the first":       {0x4000000, []wal.Stretch{{Timeline: 1, End: wal.Endless}}, "which nobody else has"},
		"a timeline of nobody":              {0x4000000, []wal.Stretch{first, second, {Timeline: 4, End: wal.Endless}}, "none of its source's"},
		"a later one":                       {0x4000000, []wal.Stretch{first, second, {Timeline: 3, End: 0x6000000}, {Timeline: 4, End: wal.Endless}}, "none of its source's"},
		"another one of the same number":    {0x4000000, []wal.Stretch{{Timeline: 1, End: 0x2800000}, {Timeline: 2, End: wal.Endless}}, "none of its source's"},
		"the source has its log from there": {0x2000000, []wal.Stretch{{Timeline: 1, End: wal.Endless}}, ""},
		"the source has its log from later": {0x1ffffff, []wal.Stretch{{Timeline: 1, End: wal.Endless}}, "has its log from 0/2000000 on"},
	} {
		err := walEnd{at: c.at, history: c.history}.continuedBy(source)
		if (c.lost == "") != (err == nil) || err != nil && (!errors.Is(err, engine.ErrRebuild) || !strings.Contains(err.Error(), c.lost)) {
			t.Errorf("%s: %v, want %q", name, err, c.lost)
		}
	}
}

// A slot's name may have small letters, digits and the underscore (slot.c), and a replica
// must never have the name of one that a commit waits for.
func TestNamesOfReplicas(t *testing.T) {
	name := memberName(sourceID, replicaID)
	if !regexp.MustCompile(`^[a-z0-9_]{1,63}$`).MatchString(name) || !followerForm.MatchString(name) || memberForm.MatchString(name) {
		t.Errorf("%q", name)
	}
	if _, ok := memberOf(sourceID, name); ok {
		t.Errorf("%q is taken for a member", name)
	}
	for _, other := range []string{memberName(sourceID, sourceID.Member(1)), memberName(sourceID, sourceID.Member(2)), memberName(sourceID, "db-OTHER")} {
		if other == name {
			t.Errorf("two followers have the name %q", name)
		}
	}
	i := replicaInstance()
	if ownName(i) != name {
		t.Errorf("the replica calls itself %q, its source %q", ownName(i), name)
	}
}

func replicaInstance() engine.Instance {
	return engine.Instance{Assignment: kurabe.Assignment{Instance: replicaID, Address: "127.66.1.2", Port: 5432,
		Settings: map[string]string{"max_standby_streaming_delay": "30000"},
		Role:     &kurabe.Role{Epoch: 2, Duty: kurabe.DutyFollow, ServesReads: true, Source: &kurabe.Source{ID: sourceID.Member(2), Address: "127.66.1.1", Port: 5432, Epoch: 7}}}}
}

func TestReplicaLetsReadersIn(t *testing.T) {
	i := replicaInstance()
	settings, access, ident := renderSettings(i), renderAccess(i), (&Driver{serviceUser: "kurabe"}).renderIdent(i)
	for _, want := range []string{"primary_slot_name = '" + memberName(sourceID, replicaID) + "'", "max_standby_streaming_delay = '30000'", "hot_standby = 'on'"} {
		if !strings.Contains(settings, want) {
			t.Errorf("its settings lack %s:\n%s", want, settings)
		}
	}
	if strings.Contains(access, "host all all all reject") || !strings.Contains(access, "host all all all scram-sha-256") {
		t.Errorf("clients do not come in:\n%s", access)
	}
	if !strings.Contains(ident, string(replicaID)) {
		t.Errorf("it does not know its own certificate, by which it is probed:\n%s", ident)
	}
	i.Role.ServesReads = false
	if access := renderAccess(i); !strings.Contains(access, "host all all all reject") {
		t.Errorf("a standby lets clients in:\n%s", access)
	}
}

// A source lets a replica in by its certificate, and commits do not wait for it.
func TestSourceOfAReplica(t *testing.T) {
	i := engine.Instance{Assignment: kurabe.Assignment{Instance: sourceID, Address: "127.66.1.1", Port: 5432,
		Role: &kurabe.Role{Epoch: 1, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{sourceID.Member(2), replicaID}, WaitFor: []kurabe.InstanceID{sourceID.Member(2)}}}}
	if ident := (&Driver{serviceUser: "kurabe"}).renderIdent(i); !strings.Contains(ident, string(replicaID)) {
		t.Errorf("the replica is not let in:\n%s", ident)
	}
	if names := waitNames(i.Role.WaitFor); names != `FIRST 1 ("kurabe_member_2")` {
		t.Errorf("commits wait for %s", names)
	}
}
