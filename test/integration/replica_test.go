//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// replicaBed is an instance, a client that writes into it all the time, and a read replica.
type replicaBed struct {
	t               *testing.T // of the whole: a pulse of a part would end with that
	source, replica *harness.Instance
	pulse           *harness.Pulse
}

func newReplicaBed(t *testing.T, s *harness.Service, name, engine string, multiAZ bool) *replicaBed {
	t.Helper()
	name += "-" + engine
	in := harness.Request(name, engine)
	if multiAZ {
		in = harness.MultiAZRequest(name, engine)
	}
	in.BackupRetentionPeriod = aws.Int32(1)
	b := &replicaBed{t: t, source: s.MustCreate(t, in)}
	if multiAZ {
		b.source.WaitWhole(t)
	}
	b.pulse = b.source.Pulse(t)
	b.pulse.WaitMore(t, beatsBefore)
	b.replica = b.source.MustReplicate(t, name+"-replica")
	return b
}

// caughtUp demands that the client goes on, and that the replica comes to have all its rows.
func (b *replicaBed) caughtUp(t *testing.T) {
	t.Helper()
	b.pulse.WaitMore(t, beatsAfter)
	b.replica.WaitReplicating(t)
	b.pulse.VerifyAt(t, b.replica.Login(t))
}

// TestReadReplica lives with a read replica: what it is told by, what it refuses, what
// becomes of it when it, its source or its own replica dies, and what is left when it goes.
func TestReadReplica(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := newReplicaBed(t, s, "source", engine, false)
		for _, part := range []struct {
			name string
			do   func(t *testing.T)
		}{
			{"described", b.described},
			{"reads only", b.readsOnly},
			{"its server dies", func(t *testing.T) { b.dies(t, b.replica) }},
			{"its source dies", func(t *testing.T) { b.dies(t, b.source) }},
			{"password", b.password},
			{"reboot", b.reboot},
			{"data lost", b.dataLost},
			{"replica of a replica", b.cascade},
			{"promoted", b.promoted},
		} {
			inTurn(t, part.name, part.do)
		}
	})
}

// described demands that either instance names the other.
func (b *replicaBed) described(t *testing.T) {
	b.caughtUp(t)
	r, s := b.replica.Describe(t), b.source.Describe(t)
	if have := aws.ToString(r.ReadReplicaSourceDBInstanceIdentifier); have != b.source.Name {
		t.Errorf("the replica's source is %q", have)
	}
	if !slices.Equal(s.ReadReplicaDBInstanceIdentifiers, []string{b.replica.Name}) {
		t.Errorf("the source's replicas are %v", s.ReadReplicaDBInstanceIdentifiers)
	}
	if aws.ToString(r.Endpoint.Address) == aws.ToString(s.Endpoint.Address) {
		t.Errorf("both are at %s", aws.ToString(r.Endpoint.Address))
	}
}

// readsOnly demands that clients read and cannot write, whatever they try.
func (b *replicaBed) readsOnly(t *testing.T) {
	session := b.replica.Open(t)
	for _, statement := range []string{"CREATE TABLE here (n int)", "INSERT INTO probe_of_nothing VALUES (1)", "CREATE DATABASE here", "DROP TABLE IF EXISTS pulse_1, pulse_2, pulse_3"} {
		if err := session.Exec(t.Context(), statement); err == nil {
			t.Errorf("%s was taken", statement)
		}
	}
	way := "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"
	if b.replica.Engine == "mariadb" {
		way = "SET GLOBAL read_only = 0"
	}
	if err := session.Exec(t.Context(), way); err == nil && b.replica.Engine == "mariadb" {
		t.Errorf("%s was taken", way)
	}
	if err := session.Exec(t.Context(), "CREATE TABLE here (n int)"); err == nil || !strings.Contains(err.Error(), "read") {
		t.Errorf("a table was made after %s: %v", way, err)
	}
}

// dies has a server killed; the replica goes on from where it was.
func (b *replicaBed) dies(t *testing.T, i *harness.Instance) {
	for range 2 {
		must(t, harness.KillServers(onlyMember(t, i)))
		i.WaitStatus(t, "available")
		b.caughtUp(t)
	}
}

// password sets one of the source: the replica's is the same.
func (b *replicaBed) password(t *testing.T) {
	const next = "Another-Passw0rd-0815"
	b.source.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.MasterUserPassword = aws.String(next) })
	for _, i := range []*harness.Instance{b.source, b.replica} {
		i.Password = next
		login := i.Login(t)
		harness.Wait(t, gapBound, "the new password is in force in "+i.Name, func() string {
			session, err := harness.Open(t.Context(), login)
			if err != nil {
				return err.Error()
			}
			session.Close()
			return ""
		})
	}
	b.pulse.Stop()
	b.pulse = b.source.Pulse(b.t)
	b.caughtUp(t)
}

func (b *replicaBed) reboot(t *testing.T) {
	before := b.replica.Server(t)
	_, err := b.replica.Service.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(b.replica.Name)})
	must(t, err)
	b.replica.WaitEvent(t, "DB instance restarted")
	b.caughtUp(t)
	if now := b.replica.Server(t); now == before {
		t.Errorf("process %d was not restarted", now)
	}
}

// dataLost takes the replica's data away: it is made anew.
func (b *replicaBed) dataLost(t *testing.T) {
	only := onlyMember(t, b.replica)
	must(t, only.Freeze())
	must(t, only.LoseData())
	b.replica.WaitStatus(t, "available")
	b.caughtUp(t)
}

// cascade makes a replica of the replica, and has the one between die.
func (b *replicaBed) cascade(t *testing.T) {
	lower := &replicaBed{source: b.source, pulse: b.pulse, replica: b.replica.MustReplicate(t, b.source.Name+"-lower")}
	lower.caughtUp(t)
	lower.dies(t, b.replica)
	lower.replica.Delete(t)
	noMemberLeft(t, lower.replica)
	noFollowerBut(t, b.source, b.replica)
}

// promoted makes the replica an instance of its own: both are written to from then on, and
// neither knows anything of the other.
func (b *replicaBed) promoted(t *testing.T) {
	lower := b.replica.MustReplicate(t, b.source.Name+"-lower")
	b.pulse.Stop()
	b.pulse.VerifyAt(t, b.replica.Login(t))
	b.replica.Promote(t, 1)
	b.replica.WaitLike(t, "is an instance of its own", func(d types.DBInstance) string {
		if source := aws.ToString(d.ReadReplicaSourceDBInstanceIdentifier); source != "" || aws.ToString(d.DBInstanceStatus) != "available" {
			return fmt.Sprintf("its source is %q, it is %s", source, aws.ToString(d.DBInstanceStatus))
		}
		return ""
	})
	b.pulse.VerifyAt(t, b.replica.Login(t))
	noFollowerBut(t, b.source)
	own := &replicaBed{source: b.replica, replica: lower, pulse: b.replica.Pulse(t)}
	own.caughtUp(t)
	if have := aws.ToInt32(b.replica.Describe(t).BackupRetentionPeriod); have != 1 {
		t.Errorf("its backups are kept for %d days", have)
	}
	// Its source goes: it becomes one, too.
	own.pulse.Stop()
	own.pulse.VerifyAt(t, lower.Login(t))
	b.replica.Delete(t)
	lower.WaitEvent(t, "romoted the read replica")
	lower.WaitStatus(t, "available")
	last := lower.Pulse(t)
	last.WaitMore(t, beatsAfter)
	last.Stop()
	lower.Delete(t)
	b.source.Delete(t)
	for _, i := range []*harness.Instance{b.source, b.replica, lower} {
		noMemberLeft(t, i)
	}
}

// noFollowerBut waits until a server has a slot or an account for these, and nobody else.
func noFollowerBut(t *testing.T, i *harness.Instance, followers ...*harness.Instance) {
	t.Helper()
	harness.Wait(t, gapBound, i.Name+" has what its followers need, and nothing else", func() string {
		names, err := onlyMember(t, i).FollowerNames(t.Context())
		if err != nil || len(names) != len(followers) {
			return fmt.Sprint(names, err)
		}
		return ""
	})
}

// TestReadReplicaOfMultiAZ fails its source over, in every way: the replica follows whoever
// writes, and never counts when a commit waits.
func TestReadReplicaOfMultiAZ(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := newReplicaBed(t, s, "pair", engine, true)
		pair := &pairBed{b.source, b.pulse}
		for _, f := range failovers {
			inTurn(t, f.name, func(t *testing.T) {
				pair.lose(t, f.strike)
				b.caughtUp(t)
			})
		}
		b.pulse.Stop()
		b.source.Delete(t)
		b.replica.WaitEvent(t, "romoted the read replica")
		b.replica.WaitStatus(t, "available")
		b.pulse.VerifyAt(t, b.replica.Login(t))
		b.replica.Delete(t)
		noMemberLeft(t, b.source)
		noMemberLeft(t, b.replica)
	})
}

// TestReadReplicaAhead has a replica receive what the standby never gets, and its writer die
// of it: nobody was told that this is committed. The replica must not show it once it says
// that it follows again.
func TestReadReplicaAhead(t *testing.T) {
	onceIsEnough(t)
	if !harness.Root() {
		t.Skip("only root may reset the connections of others")
	}
	t.Parallel() // with the test of a replica that is outrun: both wait more than they compute
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := newReplicaBed(t, s, "ahead", engine, true)
		b.caughtUp(t)
		// On a busy machine commits may go on without the standby before the writer dies: then
		// that one is started again, and nothing is lost.
		const roundsMost = 5
		for round := range roundsMost {
			if b.ahead(t, fmt.Sprint("alone_", round)) {
				return
			}
		}
		t.Errorf("the writer was started again in all of %d rounds", roundsMost)
	})
}

// ahead says whether the standby took over without what the replica had.
func (b *replicaBed) ahead(t *testing.T, table string) bool {
	b.pulse.Stop()
	must(t, b.source.Open(t).Exec(t.Context(), "CREATE TABLE "+table+" (n int)"))
	reader := b.replica.Open(t)
	shows := func(want string) {
		t.Helper()
		harness.Wait(t, gapBound, "the replica shows "+want, func() string {
			list, err := reader.Rows(t.Context(), "SELECT n FROM "+table)
			if have := fmt.Sprint(list, err); have != want+" <nil>" {
				return have
			}
			return ""
		})
	}
	shows("[]")
	writer, standby := b.source.Pair(t)
	session := b.source.Open(t)
	must(t, standby.Freeze())
	must(t, standby.LoseConnections(writer))
	var waits sync.WaitGroup
	var answer error
	waits.Go(func() { answer = session.Exec(t.Context(), "INSERT INTO "+table+" VALUES (1)") })
	shows("[1]")
	mark := b.source.Service.Log.Mark()
	must(t, harness.KillServers(writer))
	must(t, standby.Thaw())
	waits.Wait()
	b.source.WaitWhole(t)
	b.pulse = b.source.Pulse(b.t)
	b.caughtUp(t)
	steps := b.source.Service.Log.Steps(mark, b.replica.ID)
	at, after := b.source.Query(t, "SELECT count(*) FROM "+table), b.replica.Query(t, "SELECT count(*) FROM "+table)
	t.Logf("the commit was answered with %v; its source has %s rows, the replica %s; it went through %v", answer, at, after, steps)
	if at != after || answer == nil && at == "0" {
		t.Errorf("the source has %s rows, the replica %s", at, after)
	}
	return at == "0" && slices.Contains(steps, "clone")
}
