//go:build integration

package mariadb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/role"
	"kurabe/internal/engine/mariadb/sqltext"
	"kurabe/internal/engine/mariadb/transfer"
)

// farPair is a pair whose homes are on two hosts, as far as a driver can tell: neither is
// below the other's folder, one authority signs for both.
func farPair(t *testing.T, here, there string) pair {
	t.Helper()
	if err := os.Mkdir(filepath.Join(here, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(here, "pki"), filepath.Join(there, "pki")); err != nil {
		t.Fatal(err)
	}
	return pair{enginetest.NewBed(t, setup(t, here)), enginetest.NewBed(t, setup(t, there))}
}

// host is what an agent does beside a writer: it answers followers that ask.
type host struct {
	bed    *enginetest.Bed
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex // guards the rest
	brought int
	errs    []error
}

// serve begins to answer, until stop.
func serve(t *testing.T, b *enginetest.Bed, feed func(ctx context.Context, a kurabe.Assignment, to engine.Ask) error) *host {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h := &host{bed: b, cancel: cancel}
	a := b.Want
	h.done.Go(func() {
		for ctx.Err() == nil {
			w, err := b.Lifecycle.OpenWatch(ctx, a)
			for err == nil {
				var v engine.RoleView
				v, err = w.Look(ctx)
				for _, ask := range v.Asks {
					err := feed(ctx, a, ask)
					h.mu.Lock()
					if err == nil {
						h.brought++
					} else {
						h.errs = append(h.errs, err)
					}
					h.mu.Unlock()
					_ = guard.Pause(ctx, (transfer.AskSeconds+1)*time.Second) // as the agent's
				}
				_ = guard.Pause(ctx, 50*time.Millisecond)
			}
			if w != nil {
				w.Close()
			}
		}
	})
	t.Cleanup(h.stop)
	return h
}

func (h *host) stop() {
	h.cancel()
	h.done.Wait()
}

func (h *host) said() (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.brought, errors.Join(h.errs...)
}

// begin makes the bed of a pair a writer with rows, and the other one a follower of it
// that has nothing yet.
func (p pair) begin(t *testing.T) {
	t.Helper()
	p.writer.Want.Log = true
	p.writer.Satisfy(t)
	p.writer.MustQuery(t, "CREATE TABLE t (id INT PRIMARY KEY, word TEXT)")
	p.writer.MustQuery(t, "INSERT INTO t VALUES (1, 'before the copy')")
	p.write(t, nil)
	id, at := p.writer.Want.Instance, p.follower.Want.Address
	p.follower.Want = p.writer.Want
	p.follower.Want.Instance, p.follower.Want.ListensAt = id.Member(2), at
	p.follower.Want.Role = &kurabe.Role{Epoch: 1, Duty: kurabe.DutyFollow, Source: &kurabe.Source{ID: id, Address: p.writer.Want.Address, Port: p.writer.Want.Port}}
}

// clean demands that nothing of a copy is left with the writer, and that it is held up by
// nothing.
func (p pair) clean(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(p.writer.Home().FeedDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		t.Errorf("left of the copy: %v, %v", left, err)
	}
	if _, err := os.Stat(p.writer.Home().CopyDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left of the tool: %v", err)
	}
	p.writer.MustQuery(t, "CREATE OR REPLACE TABLE held (id INT PRIMARY KEY)")
	p.writer.MustQuery(t, "INSERT INTO held VALUES (1)")
}

// TestGroupFar: the copy goes over the network, made by the tool and by a clone; the
// follower follows, answers, and is made anew in the same way.
func TestGroupFar(t *testing.T) {
	for _, c := range []struct {
		name string
		root func(t *testing.T) string
	}{
		{"copied", enginetest.Reachable},
		{"cloned", func(t *testing.T) string { return enginetest.LoopXFS(t, enginetest.Reachable(t)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := farPair(t, c.root(t), enginetest.Reachable(t))
			p.begin(t)
			h := serve(t, p.writer, p.writer.Lifecycle.Feed)
			p.follower.Satisfy(t)
			p.awaitFollowing(t)
			p.waitForFollower(t)
			p.writer.MustQuery(t, "INSERT INTO t VALUES (2, 'behind the copy')")
			awaitRow(t, p.follower, 2)

			// Its data is of no use any more.
			p.follower.Want.Generation++
			role := *p.follower.Want.Role
			role.RebuildSeq = 1
			p.follower.Want.Role = &role
			p.follower.Satisfy(t)
			p.awaitFollowing(t)
			awaitRow(t, p.follower, 1)
			awaitRow(t, p.follower, 2)
			h.stop()
			if n, err := h.said(); n != 2 || err != nil {
				t.Errorf("%d copies were brought: %v", n, err)
			}
			p.clean(t)
			p.checkLogs(t)
		})
	}
}

// TestGroupFarCut: the bringing ends in its midst; nothing half is used, and the next try
// begins anew.
func TestGroupFarCut(t *testing.T) {
	enginetest.OnceIsEnough(t)
	p := farPair(t, enginetest.Reachable(t), enginetest.Reachable(t))
	p.begin(t)
	fresh := p.follower.Home().FreshDir()
	for _, c := range []struct {
		name string
		met  func() bool
	}{
		{"while it is made", func() bool { _, err := os.Stat(p.writer.Home().CopyDir()); return err == nil }},
		{"while it is sent", func() bool { _, err := os.Stat(fresh); return err == nil }},
	} {
		h := serve(t, p.writer, func(ctx context.Context, a kurabe.Assignment, to engine.Ask) error {
			ctx, cancel := context.WithCancel(ctx)
			var watched sync.WaitGroup
			watched.Go(func() {
				for !c.met() && guard.Pause(ctx, time.Millisecond) == nil {
				}
				cancel()
			})
			defer watched.Wait()
			defer cancel()
			return p.writer.Lifecycle.Feed(ctx, a, to)
		})
		if err := p.follower.TrySatisfy(t.Context()); err == nil {
			t.Fatalf("%s: there is a copy", c.name)
		} else {
			t.Logf("%s: %v", c.name, err)
		}
		h.stop()
		n, err := h.said()
		t.Logf("%s: %d brought, %v", c.name, n, err)
		for _, dir := range []string{fresh, p.follower.Home().DataDir()} {
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %s: %v", c.name, dir, err)
			}
		}
		p.clean(t)
	}
	serve(t, p.writer, p.writer.Lifecycle.Feed)
	p.follower.Satisfy(t)
	p.awaitFollowing(t)
	awaitRow(t, p.follower, 1)
}

// TestGroupFarRefused: nobody comes, or somebody else does.
func TestGroupFarRefused(t *testing.T) {
	enginetest.OnceIsEnough(t)
	transfer.AskWait = 2 * (transfer.AskSeconds + 2) * time.Second // one question of before may be heard, and a pause made
	t.Cleanup(func() { transfer.AskWait = time.Minute })
	p := farPair(t, enginetest.Reachable(t), enginetest.Reachable(t))
	p.begin(t)
	demand := func(says string) {
		t.Helper()
		if err := p.follower.TrySatisfy(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; it wants %q", err, says)
		}
	}
	demand("has not come to " + p.follower.Want.ListensAt)

	stranger := p.writer.Want
	stranger.Instance = kurabe.NewInstanceID()
	stranger.Role = &kurabe.Role{Epoch: 1, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{p.follower.Want.Instance}}
	h := serve(t, p.writer, func(ctx context.Context, _ kurabe.Assignment, to engine.Ask) error {
		home := p.writer.Lifecycle.Home(stranger.Instance)
		authority, err := os.ReadFile(filepath.Join(p.writer.Home().TLSDir(), door.AuthorityFile))
		err = errors.Join(err, os.MkdirAll(home.TLSDir(), 0o755), os.MkdirAll(home.DataDir(), 0o755),
			os.WriteFile(filepath.Join(home.TLSDir(), door.AuthorityFile), authority, 0o600))
		if err != nil {
			return err
		}
		return p.writer.Lifecycle.Feed(ctx, stranger, to)
	})
	demand("somebody came and was turned away")
	h.stop()
	if _, err := h.said(); err == nil || !strings.Contains(err.Error(), "tls: ") {
		t.Errorf("the stranger hears %v", err)
	}

	inside(t, p.writer, "DROP USER "+sqltext.Account(role.MemberName(p.follower.Want.Instance)))
	demand("ask " + string(p.writer.Want.Instance) + " for a copy")
	p.writer.Crash(t)
	demand("ask " + string(p.writer.Want.Instance) + " for a copy")
}
