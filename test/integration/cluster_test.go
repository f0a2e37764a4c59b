//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// readsOfWriterMost: a session at the standby that is chosen is cut beside its promotion, and
// not before it, so one read may meet the new writer.
const readsOfWriterMost = 1

// clusterBed is a DB cluster, and a client that writes into it all the time.
type clusterBed struct {
	s     *harness.Service
	id    string // of the records, where the servers are on one host
	login harness.Login
	read  harness.Login
	pulse *harness.Pulse
}

func newClusterBed(t *testing.T, s *harness.Service, engine string, changes ...func(*rds.CreateDBClusterInput)) *clusterBed {
	t.Helper()
	in := &rds.CreateDBClusterInput{
		DBClusterIdentifier: aws.String("ring"), Engine: aws.String(engine), DBClusterInstanceClass: aws.String(harness.Class("micro")),
		MasterUsername: aws.String("master"), MasterUserPassword: aws.String(harness.Password), DatabaseName: aws.String("shop"), AllocatedStorage: aws.Int32(20),
	}
	for _, change := range changes {
		change(in)
	}
	_, err := s.CreateDBCluster(t.Context(), in)
	must(t, err)
	b := &clusterBed{s: s}
	c := b.whole(t)
	if owners := harness.Owners(s.Homes()); len(owners) == 1 {
		b.id = owners[0]
	}
	b.login = harness.Login{Engine: engine, Address: aws.ToString(c.Endpoint), Port: int(aws.ToInt32(c.Port)), User: "master", Password: harness.Password, Database: "shop", CAFile: filepath.Join(s.Data, "ca.pem")}
	b.read = b.login
	b.read.Address = aws.ToString(c.ReaderEndpoint)
	b.pulse, err = harness.NewPulse(t.Context(), b.login)
	must(t, err)
	b.pulse.Start()
	t.Cleanup(b.pulse.Stop)
	return b
}

func (b *clusterBed) describe(t *testing.T) types.DBCluster {
	t.Helper()
	out, err := b.s.DescribeDBClusters(t.Context(), &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String("ring")})
	must(t, err)
	return out.DBClusters[0]
}

// whole waits until the cluster is available with three servers that are, one of which could
// take over.
func (b *clusterBed) whole(t *testing.T) (c types.DBCluster) {
	t.Helper()
	harness.Wait(t, gapBound, "the cluster is whole", func() string {
		c = b.describe(t)
		out, err := b.s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
		must(t, err)
		available := 0
		for _, i := range out.DBInstances {
			if aws.ToString(i.DBInstanceStatus) == "available" {
				available++
			}
		}
		if aws.ToString(c.Status) != "available" || available != 3 || len(c.DBClusterMembers) != 3 {
			return fmt.Sprintf("%s, %d servers of %d", aws.ToString(c.Status), available, len(c.DBClusterMembers))
		}
		if said, err := kurabeCommand(b.s, harness.Binary(t), "explain", "ring"); err != nil || !strings.Contains(said, "writes, commits wait for ") {
			return fmt.Sprintf("no reader has every commit, %v", err)
		}
		return ""
	})
	return c
}

// writer is the server that clients of the cluster's endpoint speak with; others follow.
func (b *clusterBed) writer(t *testing.T) harness.Member {
	t.Helper()
	m, err := b.s.WriterOf(t.Context(), b.id, b.login)
	must(t, err)
	return m
}

// named is the server that is told to write, as users see it.
func (b *clusterBed) named(t *testing.T) string {
	t.Helper()
	for _, m := range b.describe(t).DBClusterMembers {
		if aws.ToBool(m.IsClusterWriter) {
			return aws.ToString(m.DBInstanceIdentifier)
		}
	}
	return ""
}

// follower is a server that does not write.
func (b *clusterBed) follower(t *testing.T) harness.Member {
	t.Helper()
	for _, m := range b.s.Members(b.id) {
		if m.Follows() {
			return m
		}
	}
	t.Fatal("nobody follows")
	return harness.Member{}
}

// whoReads asks a server which of the two it is.
var whoReads = map[string]string{
	"postgres": "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'writer' END",
	"mariadb":  "SELECT CASE WHEN @@GLOBAL.read_only THEN 'standby' ELSE 'writer' END",
}

// moved waits until another server is to write.
func (b *clusterBed) moved(t *testing.T, from string) {
	t.Helper()
	harness.Wait(t, gapBound, "another server is to write", func() string {
		if now := b.named(t); now == from {
			return now + " does"
		}
		return ""
	})
}

// failsOver asks for a failover, as soon as a reader has every commit again.
func (b *clusterBed) failsOver(t *testing.T) {
	t.Helper()
	harness.Wait(t, gapBound, "a failover is accepted", func() string {
		_, err := b.s.FailoverDBCluster(t.Context(), &rds.FailoverDBClusterInput{DBClusterIdentifier: aws.String("ring")})
		var not *types.InvalidDBClusterStateFault
		if errors.As(err, &not) {
			return not.Error()
		}
		must(t, err)
		return ""
	})
}

// reader reads by the reader endpoint until it is stopped, and counts who answered.
type reader struct {
	standby, writer, errors int
	newest                  error
	stop                    context.CancelFunc
	done                    chan struct{}
}

func (b *clusterBed) reads(t *testing.T) *reader {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &reader{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for ctx.Err() == nil {
			r.once(ctx, b.read)
		}
	}()
	return r
}

func (r *reader) once(ctx context.Context, l harness.Login) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, err := harness.Open(limited, l)
	var rows []string
	if err == nil {
		rows, err = s.Rows(limited, whoReads[l.Engine])
		s.Close()
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.errors, r.newest = r.errors+1, err
	case rows[0] == "standby":
		r.standby++
	default:
		r.writer++
	}
}

func (r *reader) end() {
	r.stop()
	<-r.done
}

// bothKilled is the case in which a commit can be with one server alone that has to come back.
const bothKilled = "writer and standby killed"

// standbyHangs leaves nobody to read at but the new writer.
const standbyHangs = "in order, while a standby hangs"

// TestCluster loses each kind of server of a DB cluster while clients write and read: what
// was acknowledged is there, a standby that hangs makes no commit wait, and who reads does so
// at a standby.
func TestCluster(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) { newClusterBed(t, s, engine).losesEach(t) })
}

func (b *clusterBed) losesEach(t *testing.T) {
	s := b.s
	for _, c := range []struct {
		name   string
		strike func(t *testing.T)
		moves  bool // another server writes afterwards
	}{
		{"writer killed", func(t *testing.T) { must(t, harness.KillServers(b.writer(t))) }, true},
		{"in order", b.failsOver, true},
		{standbyHangs, func(t *testing.T) {
			f, named := b.follower(t), b.named(t)
			must(t, f.Freeze())
			b.failsOver(t)
			b.moved(t, named)
			b.pulse.WaitMore(t, beatsAfter)
			must(t, f.Thaw())
		}, true},
		{"standby killed", func(t *testing.T) { must(t, harness.KillServers(b.follower(t))) }, false},
		{"writer frozen", func(t *testing.T) {
			w := b.writer(t)
			must(t, w.Freeze())
			b.pulse.WaitMore(t, beatsAfter)
			must(t, w.Thaw())
		}, true},
		{bothKilled, func(t *testing.T) { must(t, harness.KillServers(b.writer(t), b.follower(t))) }, false},
	} {
		inTurn(t, c.name, func(t *testing.T) {
			b.pulse.WaitMore(t, beatsBefore)
			b.whole(t)
			before, named, reads, began := b.writer(t).ID, b.named(t), b.reads(t), time.Now()
			c.strike(t)
			if c.moves { // until then rows may still go to the one that was there
				b.moved(t, named)
			}
			b.pulse.WaitMore(t, beatsAfter)
			b.whole(t)
			reads.end()
			b.pulse.Verify(t)
			after := b.writer(t).ID
			t.Logf("%v without an acknowledgement; read at standbys %d times, at the writer %d, %d errors", b.pulse.Gap(began).Round(time.Millisecond), reads.standby, reads.writer, reads.errors)
			if both := c.name == bothKilled; !both && c.moves == (before == after) { // of both either may be back first
				t.Errorf("%s wrote before, %s after", before, after)
			}
			if reads.standby == 0 {
				t.Errorf("nobody read at a standby: %v", reads.newest)
			}
			if c.name != bothKilled && c.name != standbyHangs && reads.writer > readsOfWriterMost {
				t.Errorf("%d of %d reads came to the writer", reads.writer, reads.standby+reads.writer)
			}
		})
	}
	inTurn(t, "standby frozen", func(t *testing.T) {
		b.whole(t)
		f, began := b.follower(t), time.Now()
		must(t, f.Freeze())
		b.pulse.WaitMore(t, 200) // two seconds and more
		must(t, f.Thaw())
		if waited := b.pulse.LongestWait(began); waited >= time.Second {
			t.Errorf("a commit waited %v for a standby that hung, though there was another one", waited)
		}
		b.whole(t)
		b.pulse.Verify(t)
	})
	b.pulse.Stop()
	b.delete(t)
	harness.Wait(t, gapBound, "nothing is left", func() string { return strings.Join(s.Homes(), " ") })
}

// delete returns when the cluster is gone.
func (b *clusterBed) delete(t *testing.T) {
	t.Helper()
	_, err := b.s.DeleteDBCluster(t.Context(), &rds.DeleteDBClusterInput{DBClusterIdentifier: aws.String("ring"), SkipFinalSnapshot: aws.Bool(true)})
	must(t, err)
	harness.Wait(t, gapBound, "the cluster is gone", func() string {
		_, err := b.s.DescribeDBClusters(t.Context(), &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String("ring")})
		var gone *types.DBClusterNotFoundFault
		if errors.As(err, &gone) {
			return ""
		}
		must(t, err)
		return "it is described"
	})
}
