//go:build integration

package integration

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
	"kurabe/internal/sklookup"
)

// cloneData is enough for a clone to take a while.
var cloneData = map[string]string{
	"postgres": "CREATE TABLE bulk AS SELECT n, repeat(md5(n::text), 16) AS pad FROM generate_series(1, 200000) n",
	"mariadb":  "CREATE TABLE bulk AS SELECT seq AS n, REPEAT(MD5(seq), 16) AS pad FROM seq_1_to_200000",
}

// moment is one at which the service dies: once brings it about, missing says what is
// still to be seen of it, and late, if any, whether it was over before the service died.
type moment struct {
	name    string
	once    func(t *testing.T, b *pairBed)
	missing func(writer, standby harness.Member) string
	late    func(standby harness.Member) bool
}

// convertMoments are within a conversion.
var convertMoments = []moment{
	{"while the standby is cloned", convert, func(_, standby harness.Member) string {
		_, err := os.Lstat(standby.Home())
		return wordsOf(err)
	}, func(standby harness.Member) bool {
		_, err := os.Lstat(standby.DataDir()) // it appears when it is complete
		return err == nil
	}},
	{"while the standby joins", convert, func(_, standby harness.Member) string {
		_, err := standby.Server()
		return wordsOf(err)
	}, nil},
}

// failoverMoments are within a failover, the last two within a planned one.
var failoverMoments = []moment{
	{"just after the writer", killWriter, func(_, _ harness.Member) string { return "" }, nil},
	{"when the standby has taken over", killWriter, tookOver, nil},
	{"while the old writer joins", killWriter, func(writer, _ harness.Member) string {
		if !writer.Follows() {
			return "it follows nobody"
		}
		return ""
	}, nil},
	{"when the writer has yielded", askFailover, func(writer, _ harness.Member) string {
		if pid, err := writer.Server(); err == nil {
			return fmt.Sprintf("its server is %d", pid)
		}
		return ""
	}, nil},
	{"when it was handed over", askFailover, tookOver, nil},
}

func convert(t *testing.T, b *pairBed) { b.SetMultiAZ(t, true) }

func askFailover(t *testing.T, b *pairBed) { must(t, b.AskFailover(t)) }

func killWriter(t *testing.T, b *pairBed) {
	t.Helper()
	writer, _ := b.Pair(t)
	must(t, harness.KillServers(writer))
}

func tookOver(_, standby harness.Member) string {
	if standby.Follows() {
		return "it follows"
	}
	return ""
}

func wordsOf(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestMultiAZSurvivesTheService kills the service in the middle of everything that it does
// with two servers. All must come to its end, and nothing that was acknowledged be missing.
func TestMultiAZSurvivesTheService(t *testing.T) {
	onceIsEnough(t)
	eachEngineBeside(t, func(t *testing.T, engine string) {
		s := harness.Start(t, harness.Options{})
		in := harness.Request("survivor", engine)
		if engine == "mariadb" {
			in.BackupRetentionPeriod = aws.Int32(1) // or it would restart to be converted
		}
		i := s.MustCreate(t, in)
		i.Query(t, cloneData[engine])
		survivesTheService(t, &pairBed{i, i.Pulse(t)})
	})
}

func survivesTheService(t *testing.T, b *pairBed) {
	for _, m := range convertMoments {
		inTurn(t, m.name, func(t *testing.T) {
			from := time.Now()
			b.serviceDies(t, m, onlyMember(t, b.Instance))
			if errs, newest := b.pulse.Errors(from); errs > 0 {
				t.Errorf("the client of a server that holds its endpoint itself saw %d errors, the newest: %v", errs, newest)
			}
			b.SetMultiAZ(t, false)
			b.WaitSingle(t)
		})
	}
	b.SetMultiAZ(t, true)
	b.WaitWhole(t)
	for _, m := range failoverMoments {
		inTurn(t, m.name, func(t *testing.T) {
			writer, _ := b.Pair(t)
			b.serviceDies(t, m, writer)
		})
	}
	t.Run("for a while", func(t *testing.T) { // which it need not be able to
		if err := errors.Join(sklookup.Available(), sklookup.Pinnable()); err != nil {
			t.Skip(err)
		}
		b.servesAlone(t)
	})
	inTurn(t, "with both servers", b.allDie)
	inTurn(t, "while the standby is away", b.diesWithoutStandby)
	inTurn(t, "while it is deleted", b.diesAmidDeletion)
}

// other is the server beside one, or what will be its folder.
func (b *pairBed) other(one harness.Member) harness.Member {
	for _, m := range b.Service.Members(b.ID) {
		if m != one {
			return m
		}
	}
	return harness.Member{Service: b.Service, ID: one.ID + "~0"} // no number of a server
}

// serviceDies kills the service at a moment, starts it again and demands that all comes to
// its end with the same two servers.
func (b *pairBed) serviceDies(t *testing.T, m moment, writer harness.Member) {
	t.Helper()
	b.pulse.WaitMore(t, beatsBefore)
	from := time.Now()
	m.once(t, b)
	harness.Wait(t, gapBound, m.name, func() string { return m.missing(writer, b.other(writer)) })
	b.Service.Kill(t)
	standby := b.other(writer)
	if m.late != nil && m.late(standby) {
		t.Errorf("%s: it was over when the service died", m.name)
	}
	b.Service.Start(t)
	b.settled(t)
	if now := b.Service.Members(b.ID); len(now) != 2 || !slices.Contains(now, writer) || !slices.Contains(now, standby) {
		t.Errorf("the servers are %v, want %s and %s", now, writer.ID, standby.ID)
	}
	t.Logf("%v without an answer", b.pulse.Gap(from).Round(time.Millisecond))
}

// servesAlone has clients come and go while there is no service, and while the next one
// takes over, after a failover: the endpoint is not the server's own address then.
func (b *pairBed) servesAlone(t *testing.T) {
	login := b.Login(t)
	comes := func() {
		t.Helper()
		session, err := harness.Open(t.Context(), login)
		must(t, err)
		session.Close()
	}
	b.Service.Kill(t)
	// A session from before may have passed through the service.
	b.pulse.WaitMore(t, beatsAfter)
	from := time.Now()
	for range 3 {
		comes()
	}
	b.pulse.WaitMore(t, beatsAfter)
	b.Service.Start(t)
	b.settled(t)
	if errs, newest := b.pulse.Errors(from); errs > 0 {
		t.Errorf("clients saw %d errors, the newest: %v", errs, newest)
	}
	comes()
}

// allDie is what a machine does that loses its power, as far as one can play it.
func (b *pairBed) allDie(t *testing.T) {
	b.pulse.WaitMore(t, beatsBefore)
	writer, standby := b.Pair(t)
	b.Service.Kill(t)
	must(t, harness.KillServers(writer, standby))
	b.Service.Start(t)
	b.settled(t)
}

// diesWithoutStandby has the service find, when it starts, a writer that serves alone and
// then dies, and a standby that lacks rows and must not take its place.
func (b *pairBed) diesWithoutStandby(t *testing.T) {
	writer, standby := b.Pair(t)
	b.standbyFrozen(t)
	b.Service.Kill(t)
	must(t, harness.KillServers(writer))
	b.Service.Start(t)
	b.pulse.WaitMore(t, beatsAfter)
	b.pulse.Verify(t)
	if now, _ := b.Pair(t); now != writer {
		t.Errorf("%s writes, although %s alone had every commit", now.ID, writer.ID)
	}
	must(t, standby.Thaw())
	b.settled(t)
}

// diesAmidDeletion is the end of the instance.
func (b *pairBed) diesAmidDeletion(t *testing.T) {
	b.pulse.Stop()
	b.AskDelete(t)
	b.Service.Kill(t)
	b.Service.Start(t)
	b.WaitGone(t)
	noMemberLeft(t, b.Instance)
}
