package hostlink

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// hearingBed is a server whose clock is the test's.
type hearingBed struct {
	*testing.T
	*Server
	at time.Time
}

func newHearingBed(t *testing.T) *hearingBed {
	t.Helper()
	b := &hearingBed{T: t, at: time.Unix(1_000_000, 0)}
	kv := store.NewMemory()
	b.serve(kv)
	b.write(store.NewChange().PutJoinedHost(kurabe.JoinedHost{ID: "h1"}, 0))
	b.write(store.NewChange().CreateInstance(kurabe.InstanceSpec{ID: "db-A", Name: "shop"}))
	b.group("db-A", 7, 0)
	return b
}

// serve is one life of the server.
func (b *hearingBed) serve(kv store.KV) {
	view := store.NewView(kv)
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	go view.Run(ctx)
	if err := view.WaitReady(ctx); err != nil {
		b.Fatal(err)
	}
	b.Server = NewServer(ServerConfig{KV: kv, View: view, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.at }})
}

func (b *hearingBed) write(c *store.Change) int64 {
	b.Helper()
	revision, err := c.Commit(b.Context(), b.KV)
	if err == nil {
		err = b.View.WaitRevision(b.Context(), revision)
	}
	if err != nil {
		b.Fatal(err)
	}
	return revision
}

func (b *hearingBed) group(writer kurabe.InstanceID, epoch kurabe.Epoch, mod int64) int64 {
	b.Helper()
	return b.write(store.NewChange().PutGroup(kurabe.Group{Instance: "db-A", Epoch: epoch, Primary: writer, LastNumber: 2, Members: []kurabe.Member{{ID: "db-A"}, {ID: "db-A~2"}}}, mod))
}

func (b *hearingBed) look() {
	e, _ := b.elected()
	b.judge(b.Context(), e, b.View.JoinedHosts()[0])
}

// say is a word of the host.
func (b *hearingBed) say(q Alive) AliveAnswer {
	b.Helper()
	e, _ := b.elected()
	a, err := b.alive(b.Context(), e, "h1", q)
	if err != nil {
		b.Fatal(err)
	}
	return a
}

// word says whether the writer of an epoch may go on.
func (b *hearingBed) word(epoch kurabe.Epoch) bool {
	a := b.say(Alive{Writers: map[kurabe.InstanceID]kurabe.Epoch{"db-A": epoch}})
	return slices.Contains(a.Granted, "db-A")
}

func (b *hearingBed) want(what string, have, want bool) {
	b.Helper()
	if have != want {
		b.Errorf("%s: %v", what, have)
	}
}

func (b *hearingBed) lost() bool { return !b.View.LostSince("h1").IsZero() }

func TestOnlyTheWriterOfTheRecordIsGranted(t *testing.T) {
	b := newHearingBed(t)
	b.want("its epoch", b.word(7), true)
	b.want("one that is over", b.word(6), false)
	i, _ := b.View.Instance("db-A")
	b.group("db-A~2", 8, i.GroupMod)
	b.want("after another one took over", b.word(7), false)
	b.want("a writer that is another server", b.word(8), false)
}

// From when it was decided that a host is lost until it is written that it is not, nothing is
// granted to it: another server may be taking its writer's place.
func TestALostHostIsGrantedNothing(t *testing.T) {
	b := newHearingBed(t)
	b.want("at first", b.word(7), true)
	b.look()
	b.at = b.at.Add(kurabe.HostLostAfter)
	b.look()
	b.want("lost too early", b.lost(), false)
	b.at = b.at.Add(time.Millisecond)
	kv := b.KV
	b.KV = brokenKV{kv} // what was decided may have been written or not
	b.look()
	b.want("decided, and perhaps not written", b.word(7), false)
	b.KV = kv
	b.look()
	b.want("told to be heard again", b.lost(), false)
	b.want("once that is written", b.word(7), true)
	b.at = b.at.Add(kurabe.HostLostAfter + time.Millisecond)
	b.look()
	b.want("lost", b.lost(), true)
	b.want("its first word after that", b.word(7), false)
	b.serve(b.KV)
	b.want("its first word to the next life of the service", b.word(7), false)
	b.look()
	b.want("heard again", b.lost(), false)
	b.want("granted again", b.word(7), true)
}

// A host that goes away in order is not lost for as long as it has asked for.
func TestAHostThatIsAway(t *testing.T) {
	b := newHearingBed(t)
	b.say(Alive{SilentFor: 20 * time.Second})
	b.look()
	b.at = b.at.Add(20*time.Second + kurabe.HostLostAfter)
	b.look()
	b.want("lost while it is away", b.lost(), false)
	b.at = b.at.Add(time.Millisecond)
	b.look()
	b.want("lost after that", b.lost(), true)
	b.say(Alive{Looking: true})
	b.look()
	b.want("back before it has looked", b.lost(), true)
	b.say(Alive{SilentFor: time.Hour})
	b.look()
	b.want("back", b.lost(), false)
	b.at = b.at.Add(silentMost + kurabe.HostLostAfter + time.Second)
	b.look()
	b.want("lost although it asked for an hour", b.lost(), true)
}

// What was granted for a silence is known to the next life of the service, and to the next
// planner.
func TestAnAnnouncedSilenceOutlivesTheService(t *testing.T) {
	b := newHearingBed(t)
	if a := b.say(Alive{Writers: map[kurabe.InstanceID]kurabe.Epoch{"db-A": 7}, SilentFor: 20 * time.Second}); len(a.Granted) != 1 {
		t.Fatalf("%+v", a)
	}
	b.at = b.at.Add(time.Second)
	b.serve(b.KV)
	b.want("its word when it is back", b.word(7), true)
	b.look() // what was granted cannot be taken back, though it has spoken
	b.at = b.at.Add(time.Second)
	b.serve(b.KV)
	b.want("its word to the next life", b.word(7), true)
	b.at = b.at.Add(20 * time.Second)
	b.look()
	b.want("lost while its writer may serve", b.lost(), false)
	b.at = b.at.Add(kurabe.HostLostAfter + time.Millisecond)
	b.look()
	b.want("lost after that", b.lost(), true)
}

// Another planner may have decided, or granted, since this one was the planner last.
func TestAnElectionBeginsWithTheRecords(t *testing.T) {
	b := newHearingBed(t)
	election := Election{Since: b.at}
	b.Elected = func() (Election, bool) { return election, true }
	b.want("at first", b.word(7), true)
	joined := b.View.JoinedHosts()[0]
	revision := b.write(store.NewChange().PutPresence(kurabe.Presence{Host: "h1", Lost: true, Since: b.at}, joined.ModRevision))
	election = Election{Since: b.at, Fence: store.Fence{ModRevision: revision + 1}}
	b.want("before it knows what was decided", b.word(7), false)
	election.Fence.ModRevision = revision
	b.want("after another one has decided", b.word(7), false)
}

// brokenKV does what it is told, or not, and says that it did not.
type brokenKV struct{ store.KV }

func (brokenKV) Txn(context.Context, []store.Cond, []store.Op) (int64, error) {
	return 0, context.DeadlineExceeded
}

// A lease counts from when the word was sent, and only for whom it was asked.
func TestLeases(t *testing.T) {
	l := NewLeases(Boottime)
	l.Want("db-A", 7)
	before := Boottime()
	say := func(_ context.Context, q Alive) (AliveAnswer, error) {
		if q.Writers["db-A"] != 7 || !q.Looking {
			t.Errorf("it says %+v", q)
		}
		time.Sleep(20 * time.Millisecond) // the answer takes its time
		return AliveAnswer{Granted: []kurabe.InstanceID{"db-A", "db-B"}}, nil
	}
	if err := l.say(t.Context(), say, 0); err != nil {
		t.Fatal(err)
	}
	until := l.Until("db-A")
	if least := before + int64(kurabe.LeaseTime); until < least || until > least+int64(15*time.Millisecond) {
		t.Errorf("the lease ends %s after %s from the word", time.Duration(until-least), kurabe.LeaseTime)
	}
	if l.Until("db-B") != 0 {
		t.Error("a lease that nobody asked for")
	}
	if err := l.Leave(t.Context(), say, 10*time.Second); err != nil || l.Until("db-A") < until+int64(10*time.Second) {
		t.Errorf("while it is away: %v", err)
	}
	l.Want("db-A", 8)
	if l.Until("db-A") != 0 {
		t.Error("the next epoch begins with a lease of the one before")
	}
	l.Drop("db-A")
	if len(l.wants) != 0 {
		t.Error("it is asked for on")
	}
}

// joins lets the host in by a clock that shows at, beside any record that is there.
func (b *hearingBed) joins(at time.Time) {
	b.Helper()
	joined, _ := b.View.JoinedHost("h1")
	b.write(store.NewChange().PutJoinedHost(kurabe.JoinedHost{ID: "h1", JoinedAt: at}, joined.ModRevision))
}

// The hour of a host's joining is that of a clock which was set back since: who falls silent
// is lost as soon as ever. A host that joins again by such a clock gets the time to come.
func TestTheHourOfJoiningIsNoWord(t *testing.T) {
	b := newHearingBed(t)
	for _, joined := range []time.Time{b.at.Add(3 * time.Hour), b.at.Add(-12 * time.Hour)} {
		b.joins(joined)
		b.look()
		b.at = b.at.Add(kurabe.HostLostAfter)
		b.look()
		b.want("lost before it can have come", b.lost(), false)
		b.at = b.at.Add(time.Millisecond)
		b.look()
		b.want("lost when it did not come", b.lost(), true)
		b.word(7)
		b.look()
		b.want("heard", b.lost(), false)
		b.at = b.at.Add(kurabe.HostLostAfter + time.Millisecond)
		b.look()
		b.want("lost when it fell silent", b.lost(), true)
	}
}

// Since when a host is lost is told by the clock as it is: a standby there is replaced in time.
func TestLostWhileTheClockGoesBack(t *testing.T) {
	b := newHearingBed(t)
	b.say(Alive{})
	b.at = b.at.Add(kurabe.HostLostAfter + time.Second)
	b.look()
	since := b.View.LostSince("h1")
	b.look()
	b.want("as it was", b.View.LostSince("h1").Equal(since) && b.lost(), true)
	b.at = b.at.Add(-3 * time.Hour)
	b.serve(b.KV) // which has a monotonic clock of its own, the test's has none
	b.look()
	b.at = b.at.Add(kurabe.HostLostAfter + time.Second)
	b.look()
	b.want("lost by now", b.lost() && !b.View.LostSince("h1").After(b.at), true)
	since = b.View.LostSince("h1")
	b.at = b.at.Add(time.Minute)
	b.look()
	b.want("from then on", b.View.LostSince("h1").Equal(since), true)
}
