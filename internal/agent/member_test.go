package agent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/agent/endpoint"
	"kurabe/internal/agent/replication"
	"kurabe/internal/engine"
	"kurabe/internal/gateway"
)

// promoted has the second server, which follows, write for the second epoch.
func (b *bed) promoted(generation kurabe.Generation) {
	b.Helper()
	b.send(follows(1))
	b.send(of(elsewhere(member(1, kurabe.DutyFenced, 2)), generation, kurabe.Role{Epoch: 2, Duty: kurabe.DutyFenced}),
		of(follows(1), generation, kurabe.Role{Epoch: 2, Duty: kurabe.DutyWrite}))
	time.Sleep(replication.LookEvery) // virtual
	synctest.Wait()
	if r := b.lastOf(second); !r.Running || !r.Role.Writing || !r.Done {
		b.Fatalf("%+v, %+v, steps %v", r, r.Role, b.steps())
	}
}

// routes is where the newest endpoint led, nil without one; to which process is only
// checked to be known.
func (b *bed) routes() (list []gateway.Route, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.held) == 0 {
		return nil, false
	}
	n := b.held[len(b.held)-1]
	n.Lock()
	defer n.Unlock()
	for _, r := range n.Routes {
		if r.Writer.IsValid() && r.PID == 0 {
			b.Errorf("led %+v: whose process is it?", r)
		}
		r.PID = 0
		list = append(list, r)
	}
	return list, n.Closed
}

// A promoted server gets its clients once it writes, and none when it does not.
func TestEndpointOfAPromotedServer(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.startWriter()
		if list, _ := b.routes(); list != nil {
			t.Errorf("the first writer holds its endpoint itself: %+v", list)
		}
		b.promoted(3)
		leads, nobody := gateway.Route{Epoch: 2, Writer: netip.MustParseAddrPort("127.66.9.2:5432")}, gateway.Route{Epoch: 2}
		list, _ := b.routes()
		if len(list) == 0 || list[len(list)-1] != leads || slices.ContainsFunc(list, func(r gateway.Route) bool { return r != nobody && r != leads }) {
			t.Errorf("led %+v", list)
		}
		// The next service leads them on.
		b.stop()
		if b.held[0].Lock(); !b.held[0].Left || b.held[0].Closed {
			t.Error("the agent's end is not the endpoint's: its server may keep its clients")
		}
		b.held[0].Unlock()
		b.start()
		time.Sleep(replication.LookEvery) // virtual
		synctest.Wait()
		if list, closed := b.routes(); len(b.held) != 2 || closed || list[len(list)-1] != leads {
			t.Errorf("%d opened, led %+v", len(b.held), list)
		}
		// While it restarts, clients wait.
		under := b.blockAt(engine.StepWaitReady)
		b.group.say(second, refuses)
		b.engine.Crash(second)
		synctest.Wait()
		if list, closed := b.routes(); !under.Load() || closed || list[len(list)-1] != nobody {
			t.Errorf("starting: %v, led %+v", under.Load(), list)
		}
		b.send(of(follows(1), 4, kurabe.Role{Epoch: 3, Duty: kurabe.DutyFenced}))
		if list, _ := b.routes(); list[len(list)-1] != (gateway.Route{Epoch: 3}) {
			t.Errorf("deposed: led %+v", list)
		}
		time.Sleep(endpoint.Linger) // virtual
		synctest.Wait()
		if _, closed := b.routes(); !closed {
			t.Error("nobody writes here, and the endpoint is still held")
		}
	})
}

// Writers stop before those who follow them, which get the end of the log so.
func TestStopAllStopsFollowersLast(t *testing.T) {
	inGroup(t, func(b *bed) {
		b.startWriter()
		b.promoted(3)
		back := elsewhere(member(1, kurabe.DutyFollow, 2))
		back.Generation = 4
		b.send(back)
		if r := b.lastOf("db-1"); !r.Done || !r.Role.Following {
			t.Fatalf("%+v, %+v, steps %v", r, r.Role, b.steps())
		}
		b.stop()
		if err := b.agent.StopAll(context.Background()); err != nil {
			t.Error(err)
		}
		if got := b.group.stopped; !slices.Equal(got, []kurabe.InstanceID{second, "db-1"}) {
			t.Errorf("stopped in this order: %v", got)
		}
		for _, id := range []kurabe.InstanceID{"db-1", second} {
			if r := b.lastOf(id); r.Running || r.Done || r.Role.Writing || r.Role.Following || r.Role.Epoch == 0 {
				t.Errorf("%+v, %+v", r, r.Role)
			}
		}
	})
}

// memberLogs notes who follows which log.
type memberLogs struct {
	Logs
	mu    sync.Mutex // guards the rest
	under []kurabe.InstanceID
	slow  time.Duration // of the end of following
	ended []kurabe.InstanceID
	runs  []kurabe.LogRun

	elsewhere kurabe.LogPosition
	asked     int // for that
}

func (l *memberLogs) All() []kurabe.InstanceLog { return nil }
func (l *memberLogs) Log(kurabe.InstanceID) (kurabe.InstanceLog, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return kurabe.InstanceLog{Runs: slices.Clone(l.runs)}, true
}

func (l *memberLogs) End(_ kurabe.InstanceID, reason string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.under) > 0 {
		return errors.New("it is followed")
	}
	l.runs[len(l.runs)-1].Ended = reason
	return nil
}

func (l *memberLogs) Remove(_ context.Context, id kurabe.InstanceID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, id)
	return nil
}

func (l *memberLogs) Follow(ctx context.Context, id, _ kurabe.InstanceID, open OpenLog) error {
	if _, err := open(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.under = append(l.under, id)
	l.mu.Unlock()
	<-ctx.Done()
	time.Sleep(l.slow) // virtual
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under = l.under[1:]
	return nil
}

// Elsewhere is what another host has kept; it is asked for by nobody who has the primary here.
func (l *memberLogs) Elsewhere(context.Context, kurabe.InstanceID) (kurabe.LogPosition, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return l.elsewhere, l.elsewhere.File != "", nil
}

func (l *memberLogs) followed() []kurabe.InstanceID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.under)
}

// OpenLog notes whose log is opened.
func (e *watchedEngine) OpenLog(_ context.Context, a kurabe.Assignment) (engine.Log, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.logOf = append(e.logOf, a.Instance)
	return nil, nil
}

// OpenLogHolder notes from where on a standby holds the log.
func (e *watchedEngine) OpenLogHolder(_ context.Context, a kurabe.Assignment) (engine.LogHolder, error) {
	return logHolder{e, a.Instance}, nil
}

type logHolder struct {
	e  *watchedEngine
	by kurabe.InstanceID
}

func (h logHolder) Hold(_ context.Context, from kurabe.LogPosition) error {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	h.e.held = append(h.e.held, heldLog{h.by, from})
	return nil
}

func (logHolder) Close() {}

// heldLog is what a standby was told to hold.
type heldLog struct {
	by   kurabe.InstanceID
	from kurabe.LogPosition
}

func (e *watchedEngine) DropLog(_ context.Context, a kurabe.Assignment) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropped = append(e.dropped, a.Instance)
	return nil
}

// logged is an assignment of an instance whose log is kept.
func logged(a kurabe.Assignment) kurabe.Assignment {
	a.Log = true
	return a
}

// The log of an instance is that of the server that writes, and one that hangs while it
// lets go of it holds nobody up.
func TestLogIsOfTheWriter(t *testing.T) {
	inGroup(t, func(b *bed) {
		logs := &memberLogs{slow: time.Minute}
		b.logs = logs
		b.start()
		b.send(logged(wanted(1)))
		b.send(logged(primary(2, 0)), logged(follows(1)))
		if got := logs.followed(); !slices.Equal(got, []kurabe.InstanceID{"db-1"}) || !slices.Equal(b.group.logOf, []kurabe.InstanceID{"db-1"}) {
			t.Fatalf("followed %v, opened of %v", got, b.group.logOf)
		}
		began := time.Now()
		b.send(logged(of(elsewhere(member(1, kurabe.DutyFenced, 2)), 3, kurabe.Role{Epoch: 2, Duty: kurabe.DutyFenced})),
			logged(of(follows(1), 3, kurabe.Role{Epoch: 2, Duty: kurabe.DutyWrite})))
		if b.engine.Running("db-1") || time.Since(began) > 0 {
			t.Errorf("it runs after %v: %v", time.Since(began), b.engine.Running("db-1"))
		}
		time.Sleep(2 * logs.slow) // virtual
		synctest.Wait()
		if got := logs.followed(); !slices.Equal(got, []kurabe.InstanceID{"db-1"}) || !slices.Equal(b.group.logOf, []kurabe.InstanceID{"db-1", second}) {
			t.Errorf("followed %v, opened of %v", got, b.group.logOf)
		}
		// The log goes with the last server that has one.
		b.send(with(logged(of(elsewhere(member(1, kurabe.DutyFenced, 2)), 4, kurabe.Role{Epoch: 2, Duty: kurabe.DutyFenced})), kurabe.GoalAbsent))
		if len(logs.ended) != 0 {
			t.Error("the log is removed although its writer stays")
		}
		b.send(with(logged(of(follows(1), 4, kurabe.Role{Epoch: 2, Duty: kurabe.DutyWrite})), kurabe.GoalAbsent))
		time.Sleep(2 * logs.slow) // virtual
		synctest.Wait()
		if len(logs.ended) == 0 || logs.ended[0] != "db-1" || len(logs.followed()) != 0 {
			t.Errorf("removed %v, followed %v", logs.ended, logs.followed())
		}
	})
}

// The log of a server that follows one on another host has ended, and is kept no longer than
// the snapshots here. One that follows a server here leaves it alone.
func TestLogEndsWhereAnotherHostWrites(t *testing.T) {
	inGroup(t, func(b *bed) {
		logs := &memberLogs{slow: time.Minute, runs: []kurabe.LogRun{{}}}
		b.logs = logs
		b.start()
		b.send(logged(wanted(1)))
		b.send(logged(primary(2, 0)))
		ended := func() string { l, _ := logs.Log("db-1"); return l.Runs[0].Ended }
		for generation, host := range []kurabe.HostID{"host-1", "host-2"} {
			role := kurabe.Role{Epoch: 2, Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: second, Host: host, Address: "127.66.7.2", Port: 5432}}
			a := logged(of(elsewhere(member(1, kurabe.DutyFollow, 2)), kurabe.Generation(3+generation), role))
			a.Host = "host-1"
			b.send(a)
			time.Sleep(2 * logs.slow) // virtual
			synctest.Wait()
			if got := ended() != ""; got != (host == "host-2") || len(logs.followed()) > 0 {
				t.Errorf("it follows one on %s: ended %q, followed %v", host, ended(), logs.followed())
			}
			b.agent.removeLog(context.Background(), "db-1")
			if got := len(logs.ended) > 0; got != (host == "host-2") {
				t.Errorf("it follows one on %s: removed %v", host, got)
			}
		}
	})
}
