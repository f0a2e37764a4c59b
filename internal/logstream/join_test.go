package logstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/blob/blobtest"
)

// otherServer is the second one of the instance.
const otherServer = db + "~2"

// after is a server that has all that another one had written up to a moment, and numbers its
// files for itself: it goes on from the beginning of its oldest one.
func after(s *server, common time.Time) *server {
	next := newServer()
	next.ends, next.oldest = []int64{0, 0, 0, 700}, 3
	next.goesOn = func(m kurabe.LogMark) (kurabe.LogPosition, error) {
		if m.At.After(common) {
			return kurabe.LogPosition{}, fmt.Errorf("%w: it came later than %v", ErrElsewhere, common)
		}
		return kurabe.LogPosition{File: fileName(next.oldest)}, nil
	}
	return next
}

// takesOver has another server write, and be followed.
func (b *bed) takesOver(id kurabe.InstanceID, s *server) {
	b.stop()
	b.server, b.serverID = s, id
	b.start()
}

// joined is a log of two servers: x was taken of the first one, the moments are before, at and
// after the change.
type joined struct {
	*bed
	first  *server
	x      snap
	common time.Time // what was marked later the second server does not have
	moved  time.Time
}

func newJoined(t *testing.T, repo *blobtest.Memory) *joined {
	t.Helper()
	j := &joined{bed: newBed(t, quickDir(t), repo)}
	j.first = j.server
	t.Cleanup(j.stopAll)
	j.start()
	time.Sleep(1500 * time.Millisecond)
	at, from := j.server.snapshot()
	j.x = snap{at, from}
	for range 4 {
		j.server.write(3000)
		time.Sleep(time.Second)
	}
	time.Sleep(400 * time.Millisecond)
	j.common = time.Now().UTC()
	j.server.write(50) // nobody else has it
	time.Sleep(1500 * time.Millisecond)
	return j
}

// move has the second server write.
func (j *joined) move() {
	j.moved = time.Now().UTC()
	j.takesOver(otherServer, after(j.first, j.common))
	time.Sleep(1500 * time.Millisecond)
	j.server.write(2000)
	time.Sleep(2 * time.Second)
}

// fetch gets the log up to a moment, and checks that each part is what its server wrote.
func (j *joined) fetch(t *testing.T, x snap, at time.Time, servers ...*server) Fetched {
	t.Helper()
	dir := filepath.Join(quickDir(t), "fetched")
	got, err := j.store.Fetch(context.Background(), db, x.from, x.at, at, dir)
	if err != nil {
		t.Fatalf("%v; it reaches %+v", err, j.log())
	}
	if len(got.Joined) != len(servers)-1 || got.After.At.Before(at) || hasMark(got.Before) && got.Before.Until.After(at) {
		t.Fatalf("of %d servers, around %v: %+v", len(servers), at, got)
	}
	for n, s := range servers {
		folder := dir
		if n > 0 {
			folder = got.Joined[n-1]
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			number := fileNumber(e.Name())
			have, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil || !bytes.Equal(have, content(number, 0, int64(len(have)))) || int64(len(have)) > s.ends[number] {
				t.Errorf("part %d, file %d: %d bytes of %d, %v", n, number, len(have), s.ends[number], err)
			}
			if last := got.After.Position; n == len(servers)-1 && e.Name() == last.File && int64(len(have)) != last.Offset {
				t.Errorf("the last file has %d bytes, not %d", len(have), last.Offset)
			}
		}
	}
	return got
}

// TestJoin: the log of the server that takes over goes on from that of the former writer, and
// any moment can be had from a snapshot of that one.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		repo := blobtest.NewMemory()
		j := newJoined(t, repo)
		j.move()
		l := j.log()
		if len(l.Runs) != 2 || !l.Continued(0) || l.Runs[1].Ended != "" || time.Since(l.Last().At) > time.Second {
			t.Fatalf("%+v", l)
		}
		// Of a piece that was pushed already only the first mark and the last are known.
		if place := l.Runs[1].After; place.Offset != 12000 && place.Offset != 9000 || l.Runs[0].Last.Position.Offset != 12050 {
			t.Errorf("it goes on from %v, and the former one's ended at %v", place, l.Runs[0].Last.Position)
		}
		if a, b := l.Runs[0].First.Position.Server, l.Runs[1].First.Position.Server; a != db || b != otherServer {
			t.Errorf("they are of %q and %q", a, b)
		}
		j.fetch(t, j.x, j.x.at.Add(time.Second), j.first)
		j.fetch(t, j.x, l.Runs[0].Last.At, j.first)
		between := j.moved.Add(-200 * time.Millisecond) // of the newest mark and the end
		got := j.fetch(t, j.x, between, j.first, j.server)
		if got.BeforeIn != 0 || !got.Before.At.Equal(l.Runs[0].Last.At) {
			t.Errorf("the mark before is %+v in part %d", got.Before, got.BeforeIn)
		}
		if got = j.fetch(t, j.x, l.Last().At, j.first, j.server); got.BeforeIn != 1 {
			t.Errorf("the mark before is in part %d", got.BeforeIn)
		}
		j.refuse(j.x.at, j.x.from, l.Last().At.Add(1))
		// What was taken behind the place that both have is of the former writer alone.
		alone := snap{l.Runs[0].Last.At, kurabe.LogPosition{Server: db, File: fileName(0), Offset: 12050}}
		j.refuse(alone.at, alone.from, j.moved)
		j.fetch(t, alone, alone.at, j.first)
		// A position of one server says nothing in the log of the other.
		j.refuse(j.moved, kurabe.LogPosition{Server: db, File: fileName(3), Offset: 900}, l.Last().At)
		own := snap{l.Runs[1].First.At, kurabe.LogPosition{Server: otherServer, File: fileName(3), Offset: 900}}
		j.fetch(t, own, l.Last().At, j.server)

		j.comesBack(t)
	})
}

// comesBack has the first server write again, which has all of the second one's; and then
// all three runs are known from the repository alone, and from the index.
func (j *joined) comesBack(t *testing.T) {
	back := j.first
	back.set(func() {
		back.ends, back.oldest = append(back.ends, 500), 1
		back.goesOn = func(kurabe.LogMark) (kurabe.LogPosition, error) { return kurabe.LogPosition{File: fileName(1)}, nil }
	})
	second := j.server
	j.takesOver(db, back)
	time.Sleep(1500 * time.Millisecond)
	j.server.write(100)
	time.Sleep(2 * time.Second)
	j.fetch(t, j.x, j.log().Last().At, j.first, second, back)

	j.stop()
	back.write(77)
	if err := j.store.Finish(context.Background(), db, db, &session{back}); err != nil {
		t.Fatal(err)
	}
	want := j.log()
	for _, spool := range []string{quickDir(t), ""} {
		if spool != "" {
			j.cfg.Spool = spool
		}
		store, err := New(j.cfg)
		if err == nil {
			err = store.survey(context.Background(), j.repo)
		}
		if err != nil {
			t.Fatal(err)
		}
		j.store = store
		if got := j.log(); len(got.Runs) != 3 || !got.Continued(0) || !got.Continued(1) || got.Last() != want.Last() {
			t.Errorf("learned %+v\ninstead of %+v", got, want)
		}
		j.fetch(t, j.x, want.Last().At, j.first, second, back)
	}
}

// cuts are what can happen between the end of one run and the first mark of the next one.
var cuts = map[string]struct {
	do   func(j *joined)
	want string // "" for no gap
}{
	"it does not answer": {func(j *joined) {
		j.server.set(func() { j.server.failing = 3 })
		time.Sleep(3 * time.Second)
	}, ""},
	"the service is started again": {func(j *joined) {
		j.server.set(func() { j.server.failing = 2 })
		j.stop()
		j.start()
	}, ""},
	"it ends between the two runs": {func(j *joined) {
		j.stop()
		j.server.set(func() { j.server.failing = 0 })
		f := &follower{s: j.store, inst: j.store.get(db), server: otherServer}
		must := func(err error) {
			if err != nil {
				j.t.Fatal(err)
			}
		}
		must(f.pickUp())
		must(f.finishRun(joinedWord))
		if l := j.log(); len(l.Runs) != 1 || l.Runs[0].Ended != "" {
			j.t.Fatalf("%+v", l)
		}
		must(f.begin(context.Background(), &session{j.server}))
		_ = f.tick(context.Background(), brokenLog{&session{j.server}})
		j.start()
	}, ""},
	"its log is gone": {func(j *joined) {
		j.server.set(func() {
			j.server.goesOn = func(kurabe.LogMark) (kurabe.LogPosition, error) { return kurabe.LogPosition{}, errGone }
		})
	}, "server db-TEST~2 writes, and no longer db-TEST: gone"},
	"it has nothing of it": {func(j *joined) {
		j.server.set(func() {
			j.server.goesOn = func(kurabe.LogMark) (kurabe.LogPosition, error) { return kurabe.LogPosition{}, ErrElsewhere }
		})
	}, "the server's history does not contain this WAL position"},
	"the clock went back": {func(j *joined) {
		j.server.set(func() { j.server.clock -= time.Hour; j.server.epoch++ })
	}, "the clock went back from "},
	"the log is not wanted any more": {func(j *joined) {
		j.stop()
		f := &follower{s: j.store, inst: j.store.get(db), server: otherServer}
		if err := errors.Join(f.pickUp(), f.finishRun(joinedWord), j.store.End(db, "switched off")); err != nil {
			j.t.Fatal(err)
		}
		j.start()
	}, "switched off"},
}

// TestJoinIsCutOff: until the second server's log has its first mark, nobody can say that it
// goes on; whatever breaks meanwhile, it is tried again, and a gap is told when it cannot.
func TestJoinIsCutOff(t *testing.T) {
	for name, c := range cuts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJoined(t, blobtest.NewMemory())
				j.stopRun()
				j.stopFollow()
				j.server, j.serverID = after(j.first, j.common), otherServer
				j.server.clock = 0
				j.server.set(func() { j.server.failing = 1 << 20 })
				j.start()
				time.Sleep(2 * time.Second)
				if l := j.log(); len(l.Runs) != 1 || l.Runs[0].Ended != "" {
					t.Fatalf("it does not answer, and %+v", l)
				}
				j.server.set(func() { j.server.failing = 0 })
				c.do(j)
				time.Sleep(30 * time.Second) // with pauses of five at most
				j.server.write(10)
				time.Sleep(2 * time.Second)
				l := j.log()
				if len(l.Runs) != 2 || l.Continued(0) != (c.want == "") || !strings.Contains(l.Runs[0].Ended, c.want) {
					t.Fatalf("%+v", l)
				}
				if c.want == "" {
					j.fetch(t, j.x, l.Last().At, j.first, j.server)
				} else {
					j.refuse(j.x.at, j.x.from, l.Last().At)
				}
				j.stop()
				if again, err := New(j.cfg); err != nil {
					t.Fatal(err)
				} else if told, _ := again.Log(db); len(told.Runs) != 2 || told.Continued(0) != (c.want == "") || told.Runs[0].Ended != l.Runs[0].Ended {
					t.Errorf("%+v\nafter a start\n%+v", l, told)
				}
			})
		})
	}
}

// brokenLog ends in the midst of a file.
type brokenLog struct{ *session }

func (b brokenLog) Mark(ctx context.Context) (kurabe.LogMark, error) {
	m, err := b.session.Mark(ctx)
	b.set(func() { b.failing = 1 })
	return m, err
}

// TestTrimJoined: what lies before the joint goes with the snapshots that need it, and the rest
// stands alone.
func TestTrimJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJoined(t, blobtest.NewMemory())
		j.move()
		time.Sleep(2 * time.Minute)
		if err := j.store.Trim(context.Background(), db, j.x.at); err != nil {
			t.Fatal(err)
		}
		j.fetch(t, j.x, j.log().Last().At, j.first, j.server)
		own := snap{at: time.Now().UTC(), from: j.server.position()}
		own.from.Server = otherServer
		time.Sleep(2 * time.Second)
		if err := j.store.Trim(context.Background(), db, own.at); err != nil {
			t.Fatal(err)
		}
		if l := j.log(); len(l.Runs) != 1 || !l.Runs[0].Continues.IsZero() {
			t.Errorf("%+v", l)
		}
		j.fetch(t, own, j.log().Last().At, j.server)
		j.stop()
	})
}

// TestJoinedIsLost: where a part of the former writer's log is lost, nothing goes on from it.
func TestJoinedIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		repo := blobtest.NewMemory()
		j := newJoined(t, repo)
		j.move()
		time.Sleep(2 * time.Minute)
		lost := ""
		for info := range repo.List(context.Background(), "") {
			if o, ok := parseObject(info.Name); ok && !o.marks && o.span.File == fileName(0) {
				lost = info.Name // the last one of the first run
			}
		}
		if err := repo.Delete(context.Background(), lost); err != nil {
			t.Fatal(err)
		}
		time.Sleep(surveyOther)
		l := j.log()
		if l.Continued(0) || l.Runs[len(l.Runs)-1].Ended != "" {
			t.Errorf("%s is lost: %+v", lost, l)
		}
		j.refuse(j.x.at, j.x.from, j.moved)
		j.stop()
	})
}
