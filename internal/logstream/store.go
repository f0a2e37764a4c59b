package logstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

// Store keeps the logs of one host.
type Store struct {
	cfg    Config
	toDisk syncFunc      // tests know so what a loss of power leaves
	wake   chan struct{} // there is something to push

	mu         sync.Mutex // guards what follows, and all of instance, run and piece
	instances  map[kurabe.InstanceID]*instance
	spoolBytes int64 // of all spool files
	listed     bool  // all instances of the repository are known
}

// instance is the log of one instance.
type instance struct {
	id     kurabe.InstanceID
	follow token // of who writes its spool: Follow, Finish, Remove
	change token // of who changes its objects: a push, a survey, Trim, Remove

	runs       []*run // oldest first
	next       int    // number of the next spool file
	spoolBytes int64
	surveyed   bool       // the repository has been listed once
	adopted    []adoption // whose runs are kept, whoever began them
	// lost are pieces that are missing or damaged, of which no check has told yet, with the
	// moment of the last mark before each.
	lost map[place]time.Time

	grew    time.Time // when the newest mark moved
	session string    // why the session does not grow, "" while it does
	pushing string    // why the repository does not take pieces
	retry   time.Time // of the push that failed
	pause   time.Duration
}

// token is a lock that can be waited for with a context.
type token chan struct{}

func (t token) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t token) give() { <-t }

// silenceMax is how long a log may stand still before an error of its session is told.
const silenceMax = 5 * time.Second

// New is a store over a spool, which it reads. It makes no goroutine: see Run.
func New(cfg Config) (*Store, error) {
	if filepath.IsAbs(cfg.Spool) {
		if err := os.MkdirAll(cfg.Spool, 0o700); err != nil {
			return nil, fmt.Errorf("log spool: %w", err)
		}
	}
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("log spool: %w", err)
	}
	s := &Store{cfg: cfg, toDisk: fdatasync, wake: make(chan struct{}, 1), instances: map[kurabe.InstanceID]*instance{}}
	entries, err := os.ReadDir(cfg.Spool)
	if err != nil {
		return nil, fmt.Errorf("log spool: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || checkPart(e.Name()) != nil {
			continue
		}
		if err := s.load(kurabe.InstanceID(e.Name())); err != nil {
			return nil, fmt.Errorf("log spool of %s: %w", e.Name(), err)
		}
	}
	return s, nil
}

// get returns an instance, which may be new.
func (s *Store) get(id kurabe.InstanceID) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	inst := s.instances[id]
	if inst == nil {
		inst = &instance{id: id, follow: make(token, 1), change: make(token, 1), next: 1}
		s.instances[id] = inst
	}
	return inst
}

func (s *Store) find(id kurabe.InstanceID) (*instance, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inst, ok := s.instances[id]
	return inst, ok
}

func (s *Store) dir(id kurabe.InstanceID) string { return filepath.Join(s.cfg.Spool, string(id)) }

func (s *Store) runDir(id kurabe.InstanceID, folder string) string {
	return filepath.Join(s.dir(id), folder)
}

// Log returns what is kept of an instance. It is cheap.
func (s *Store) Log(id kurabe.InstanceID) (kurabe.InstanceLog, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inst, ok := s.instances[id]
	if !ok {
		return kurabe.InstanceLog{}, false
	}
	return inst.report(), true
}

// All returns what is kept of every instance, in the order of their ids.
func (s *Store) All() []kurabe.InstanceLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]kurabe.InstanceLog, 0, len(s.instances))
	for _, inst := range s.instances {
		all = append(all, inst.report())
	}
	slices.SortFunc(all, func(a, b kurabe.InstanceLog) int {
		return strings.Compare(string(a.Instance), string(b.Instance))
	})
	return all
}

func (inst *instance) report() kurabe.InstanceLog {
	l := kurabe.InstanceLog{Instance: inst.id}
	l.Runs, _ = inst.told()
	for _, r := range inst.runs {
		for _, p := range r.pieces {
			if p.pushed {
				l.StoredBytes += p.StoredBytes
			} else {
				l.StoredBytes += p.End - p.Start
				l.SpoolBytes += p.End - p.Start
			}
		}
	}
	switch {
	case inst.session != "" && time.Since(inst.grew) >= silenceMax:
		l.Failure = inst.session
	case inst.pushing != "":
		l.Failure = inst.pushing
	}
	return l
}

// live is the run that goes on, nil without one.
func (inst *instance) live() *run {
	if n := len(inst.runs); n > 0 && inst.runs[n-1].ended == "" {
		return inst.runs[n-1]
	}
	return nil
}

// addRun makes the folder of a new run, durably.
func (s *Store) addRun(inst *instance, server kurabe.InstanceID, joins *joint) (*run, error) {
	s.mu.Lock()
	before := ""
	if n := len(inst.runs); n > 0 {
		before = inst.runs[n-1].folder
	}
	s.mu.Unlock()
	r := &run{server: server, joins: joins, folder: runName(s.cfg.Now(), before, owner(s.cfg.Host), strings.ToLower(rand.Text()[:8]))}
	dir := s.runDir(inst.id, r.folder)
	if err := makeRunDir(s.cfg.Spool, dir); err != nil {
		return nil, err
	}
	s.mu.Lock()
	inst.runs = append(inst.runs, r)
	s.mu.Unlock()
	return r, nil
}

func makeRunDir(spool, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(volume.SyncDir(filepath.Dir(dir)), volume.SyncDir(spool))
}

// poke wakes Run.
func (s *Store) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// dropLocked takes pieces out of their run and the spool. Callers hold mu.
func (s *Store) dropLocked(inst *instance, pieces []*piece) {
	for _, p := range pieces {
		p.dropped = true
		s.forgetLocked(inst, p)
	}
}

// forgetLocked removes the spool file of a piece. One that cannot be removed is
// found by the next start.
func (s *Store) forgetLocked(inst *instance, p *piece) {
	if p.path == "" {
		return
	}
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.logger(inst).Warn("file of the log spool not removed", logkey.Error, err)
	}
	inst.spoolBytes -= p.spoolBytes
	s.spoolBytes -= p.spoolBytes
	p.path, p.spoolBytes = "", 0
}
