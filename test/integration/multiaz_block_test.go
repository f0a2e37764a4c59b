//go:build integration

package integration

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/harness"
)

// blockTime is for how long commits are seen to wait: more than twice what they wait at most
// where they go on alone.
const blockTime = 5 * time.Second

// Words of KURABE-EVENT-0028 and KURABE-EVENT-0029.
const (
	nowWaits    = "commits wait until another server has them"
	nowGoesOn   = "another server has them. They had waited since"
	nowIsAlone  = "with one server alone"
	alreadyWait = "commits have waited for another server"
)

// blockBed is a pair whose commits wait for a lost standby as long as it takes.
type blockBed struct {
	*pairBed
	group string
}

// TestStandbyLostBlocks takes the standby away where commits are to wait for it. None is
// acknowledged that one server has alone, sessions stay, and there is a way out of each state.
func TestStandbyLostBlocks(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := newBlockBed(t, s, engine)
		b.Query(t, "CREATE TABLE held (what int)")
		inTurn(t, "the standby hangs and goes on", b.hangs)
		inTurn(t, "the standby is killed", b.standbyKilled)
		inTurn(t, "the writer is killed while the standby hangs", b.writerToo)
		inTurn(t, "the writer is lost", func(t *testing.T) {
			b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
		})
		inTurn(t, "the writer is lost, and its successor", b.successorToo)
		inTurn(t, "the standby loses its data", b.madeAnew)
		inTurn(t, "a reboot", b.rebooted)
		inTurn(t, "a stop and a start", b.stopped)
		inTurn(t, "degrade", b.degraded)
		inTurn(t, "one zone", b.oneZone)
		inTurn(t, "a deletion", b.deleted)
	})
}

func newBlockBed(t *testing.T, s *harness.Service, engine string) *blockBed {
	t.Helper()
	group := blockGroup(t, s, engine)
	in := harness.MultiAZRequest("blocked", engine)
	in.DBParameterGroupName = aws.String(group)
	b := &blockBed{&pairBed{Instance: s.MustCreate(t, in)}, group}
	b.WaitWhole(t)
	b.waitSaid(t, "go on alone no more", "explain", b.Name)
	b.pulse = b.Pulse(t)
	return b
}

// familyOf is the family of the parameter groups of an engine's default version.
func familyOf(t *testing.T, s *harness.Service, engine string) *string {
	t.Helper()
	versions, err := s.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{Engine: aws.String(engine), DefaultOnly: aws.Bool(true)})
	if err != nil || len(versions.DBEngineVersions) != 1 {
		t.Fatal(versions, err)
	}
	return versions.DBEngineVersions[0].DBParameterGroupFamily
}

// blockGroup is a parameter group that has commits wait.
func blockGroup(t *testing.T, s *harness.Service, engine string) string {
	t.Helper()
	group := "block-" + engine
	_, err := s.CreateDBParameterGroup(t.Context(), &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String(group), DBParameterGroupFamily: familyOf(t, s, engine), Description: aws.String("for a test"),
	})
	must(t, err)
	must(t, setPolicy(t, s, group, kurabe.StandbyLostBlock))
	return group
}

func standbyLost(value string) []types.Parameter {
	return []types.Parameter{{ParameterName: aws.String(kurabe.ParameterStandbyLost), ParameterValue: aws.String(value), ApplyMethod: types.ApplyMethodImmediate}}
}

func setPolicy(t *testing.T, s *harness.Service, group, value string) error {
	_, err := s.ModifyDBParameterGroup(t.Context(), &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String(group), Parameters: standbyLost(value)})
	return err
}

// policy says what becomes of commits.
func (b *blockBed) policy(t *testing.T, value string) {
	t.Helper()
	must(t, setPolicy(t, b.Service, b.group, value))
}

// waitSaid waits until a command of the client says something.
func (b *blockBed) waitSaid(t *testing.T, words string, args ...string) {
	t.Helper()
	args = append(args, "--endpoint", b.Service.URL(), "--data", b.Service.Data)
	harness.Wait(t, gapBound, "kurabe "+args[0]+" says "+words, func() string {
		out, err := exec.CommandContext(t.Context(), harness.Binary(t), args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), words) {
			return string(out)
		}
		return ""
	})
}

// frozen has the standby hang until commits wait and it was told, and returns since when.
func (b *blockBed) frozen(t *testing.T) (writer, standby harness.Member, from time.Time) {
	t.Helper()
	b.pulse.WaitMore(t, beatsBefore)
	writer, standby = b.Pair(t)
	from = time.Now()
	must(t, standby.Freeze())
	b.WaitEventsFrom(t, from, nowWaits)
	return writer, standby, from
}

// nothingIsAcknowledged demands that for blockTime.
func (b *blockBed) nothingIsAcknowledged(t *testing.T) {
	t.Helper()
	stands(t, b.pulse)
}

func stands(t *testing.T, pulse *harness.Pulse) {
	t.Helper()
	began, acked := time.Now(), pulse.Acked()
	harness.Wait(t, 2*blockTime, "time goes by", func() string {
		if now := pulse.Acked(); now != acked {
			t.Fatalf("%d rows were acknowledged while the standby hangs", now-acked)
		}
		if time.Since(began) < blockTime {
			return "not long enough"
		}
		return ""
	})
}

// goesOn demands that the pair is whole again, and commits with it.
func (b *blockBed) goesOn(t *testing.T, from time.Time) {
	t.Helper()
	b.WaitEventsFrom(t, from, nowGoesOn)
	b.settled(t)
}

// hangs: a session that was there before waits for its commit, and has it in the end.
func (b *blockBed) hangs(t *testing.T) {
	session := b.Open(t)
	defer session.Close()
	_, standby, from := b.frozen(t)
	done := make(chan error, 1)
	go func() { done <- session.Exec(t.Context(), "INSERT INTO held VALUES (1)") }()
	b.nothingIsAcknowledged(t)
	select {
	case err := <-done:
		t.Fatalf("the commit has come back: %v", err)
	default:
	}
	if err := b.AskFailover(t); err == nil || !strings.Contains(err.Error(), alreadyWait) {
		t.Errorf("a failover is answered with %v", err)
	}
	b.waitSaid(t, "commits wait for another server since", "explain", b.Name)
	b.waitSaid(t, "available, commits wait", "ls")
	must(t, standby.Thaw())
	if err := <-done; err != nil {
		t.Errorf("the commit that waited: %v", err)
	}
	if rows, err := session.Rows(t.Context(), "SELECT what FROM held"); err != nil || len(rows) != 1 {
		t.Errorf("its row: %v, %v", rows, err)
	}
	b.goesOn(t, from)
}

// writerToo kills the writer as well: whoever writes next has all that was acknowledged.
func (b *blockBed) writerToo(t *testing.T) {
	writer, standby, from := b.frozen(t)
	must(t, harness.KillServers(writer))
	b.nothingIsAcknowledged(t)
	must(t, standby.Thaw())
	b.goesOn(t, from)
}

// successorToo kills the successor of a dead writer as well, at the moment at which it is one:
// it is started again while it waits for the former writer, which waits for it.
func (b *blockBed) successorToo(t *testing.T) {
	b.pulse.WaitMore(t, beatsBefore)
	writer, standby := b.Pair(t)
	from := time.Now()
	must(t, harness.KillServers(writer))
	harness.Wait(t, gapBound, "the standby follows no more", func() string {
		if standby.Follows() {
			return "it does"
		}
		return ""
	})
	must(t, harness.KillServers(standby))
	b.settled(t)
	b.WaitEventsFrom(t, from, failoverEvents...)
}

// madeAnew: a copy brings the standby back. One of MariaDB cannot be made while commits wait,
// and is once the writer keeps clients out.
func (b *blockBed) madeAnew(t *testing.T) {
	_, standby, from := b.frozen(t)
	must(t, standby.LoseData())
	if b.Engine == "mariadb" {
		_, err := b.Service.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name)})
		must(t, err)
	}
	b.goesOn(t, from)
}

// rebooted: the reboot comes to its end, and commits still wait.
func (b *blockBed) rebooted(t *testing.T) {
	writer, standby, from := b.frozen(t)
	pid, err := writer.Server()
	must(t, err)
	_, err = b.Service.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name)})
	must(t, err)
	harness.Wait(t, gapBound, "the writer runs again", func() string {
		if now, err := writer.Server(); err != nil || now == pid {
			return "it does not"
		}
		return ""
	})
	if b.Engine == "postgres" { // another one keeps clients out
		b.WaitStatus(t, "available")
		if got := b.Query(t, "SELECT count(*) FROM held"); got != "1" {
			t.Errorf("a reader sees %q rows", got)
		}
	}
	b.nothingIsAcknowledged(t)
	must(t, standby.Thaw())
	b.goesOn(t, from)
}

// stopped: the writer stops, and so does the standby when it goes on; both start.
func (b *blockBed) stopped(t *testing.T) {
	writer, standby, _ := b.frozen(t)
	_, err := b.Service.StopDBInstance(t.Context(), &rds.StopDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name)})
	must(t, err)
	harness.Wait(t, gapBound, "the writer stops", func() string {
		if left := b.Service.Processes(writer.ID); len(left) > 0 {
			return "it still runs"
		}
		return ""
	})
	must(t, standby.Thaw())
	b.WaitStatus(t, "stopped")
	_, err = b.Service.StartDBInstance(t.Context(), &rds.StartDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name)})
	must(t, err)
	b.WaitWhole(t)
	b.settled(t)
}

// degraded lets commits go on alone, and has them wait again once the standby is back.
func (b *blockBed) degraded(t *testing.T) {
	_, standby, from := b.frozen(t)
	b.policy(t, kurabe.StandbyLostDegrade)
	b.pulse.WaitMore(t, beatsAfter)
	b.WaitEventsFrom(t, from, nowIsAlone)
	b.policy(t, kurabe.StandbyLostBlock)
	b.pulse.WaitMore(t, beatsAfter) // a word alone stops no commit
	must(t, standby.Thaw())
	b.settled(t)
	b.waitSaid(t, "go on alone no more", "explain", b.Name)
}

// oneZone lets commits go on, too, and two zones have them wait again.
func (b *blockBed) oneZone(t *testing.T) {
	_, _, from := b.frozen(t)
	b.SetMultiAZ(t, false)
	b.pulse.WaitMore(t, beatsAfter)
	b.WaitEventsFrom(t, from, nowIsAlone)
	b.WaitSingle(t)
	b.SetMultiAZ(t, true)
	b.settled(t)
	b.waitSaid(t, "go on alone no more", "explain", b.Name)
}

// deleted: nothing waits for anybody.
func (b *blockBed) deleted(t *testing.T) {
	b.frozen(t)
	b.pulse.Verify(t)
	b.pulse.Stop()
	b.gone(t)
}
