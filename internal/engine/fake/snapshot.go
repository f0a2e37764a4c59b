package fake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kurabe"
)

// SnapshotBytes is how large each fake snapshot is.
const SnapshotBytes = 100 << 20

// Snapshots keeps snapshots in memory. Its faults are scripted, and it notes what
// nobody may ask of it.
type Snapshots struct {
	// TakeTime is how long a take or a copy lasts.
	// NoStandby, if it is there, may say why one cannot be copied.
	NoStandby func(kurabe.InstanceID) error
	TakeTime  time.Duration
	// SealTime is how long the checksums of one take.
	SealTime time.Duration
	// VerifyTime is how long a verification lasts.
	VerifyTime time.Duration
	// Before, when set, is asked at the start of each take, copy and removal, After
	// at its end; an error is the step's failure.
	Before, After func(step string, id kurabe.SnapshotID) error

	mu      sync.Mutex // guards everything below
	folders map[kurabe.SnapshotID]*snapshotFolder
	taken   map[kurabe.SnapshotID]int
	busy    map[string]int // takes and copies under way, by what they read
	most    int            // largest number of them at once
	wrong   []string

	rotten    map[kurabe.SnapshotID][]string // what a verification finds
	verified  map[kurabe.SnapshotID]int
	scratch   map[kurabe.SnapshotID]bool // copies of verifications under way or cut off
	verifying int                        // verifications under way

	occupiedLooks int
}

type snapshotFolder struct {
	facts    kurabe.SnapshotFacts
	complete bool
	sealed   bool
	damaged  bool
	gained   int64 // occupied bytes more than when it was taken
}

// NewSnapshots returns an empty store of snapshots.
func NewSnapshots() *Snapshots {
	return &Snapshots{
		folders: map[kurabe.SnapshotID]*snapshotFolder{}, taken: map[kurabe.SnapshotID]int{}, busy: map[string]int{},
		rotten: map[kurabe.SnapshotID][]string{}, verified: map[kurabe.SnapshotID]int{}, scratch: map[kurabe.SnapshotID]bool{},
	}
}

// Find looks at a folder.
func (s *Snapshots) Find(id kurabe.SnapshotID) (kurabe.SnapshotFacts, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f := s.folders[id]; {
	case f == nil:
		return kurabe.SnapshotFacts{}, "absent", nil
	case f.damaged:
		return kurabe.SnapshotFacts{}, "partial", errors.New("the manifest cannot be read")
	case !f.complete:
		return kurabe.SnapshotFacts{}, "partial", nil
	default:
		return f.facts, "complete", nil
	}
}

// Sealed says whether Seal was called.
func (s *Snapshots) Sealed(id kurabe.SnapshotID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[id]
	if f == nil || !f.complete {
		return false, errors.New("there is no such snapshot")
	}
	return f.sealed, nil
}

// Seal puts the checksums of a snapshot on record.
func (s *Snapshots) Seal(ctx context.Context, id kurabe.SnapshotID) error {
	if err := ask(s.Before, "seal-snapshot", id); err != nil {
		return err
	}
	if s.SealTime > 0 {
		timer := time.NewTimer(s.SealTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[id]
	if f == nil || !f.complete {
		return errors.New("there is no such snapshot")
	}
	f.sealed = true
	return nil
}

// Take makes a snapshot of an instance.
func (s *Snapshots) Take(ctx context.Context, a kurabe.SnapshotAssignment, of kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	if of.Instance.Owner() != a.Of || !of.Writes() || of.Goal == kurabe.GoalAbsent {
		s.note("take of %s with the assignment of %q, which is to be %s", a.Of, of.Instance, of.Goal)
	}
	return s.make(ctx, "take-snapshot", a.Snapshot, string(a.Of), progress)
}

// TakeStandby makes a snapshot of a standby.
func (s *Snapshots) TakeStandby(ctx context.Context, a kurabe.SnapshotAssignment, of, standby kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	if !standby.StandsBy(of) {
		s.note("take of %s with %q, which is no standby of %q", a.Of, standby.Instance, of.Instance)
	}
	return s.makeOfStandby(ctx, a, standby.Instance, progress)
}

// TakeFar makes a snapshot of a standby whose writer is elsewhere.
func (s *Snapshots) TakeFar(ctx context.Context, a kurabe.SnapshotAssignment, standby kurabe.Assignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	if standby.Instance != a.Standby || standby.Role == nil || standby.Role.Duty != kurabe.DutyFollow || standby.Role.Epoch != a.Epoch {
		s.note("take of %s with %q, which is not as it was ordered", a.Of, standby.Instance)
	}
	return s.makeOfStandby(ctx, a, standby.Instance, progress)
}

func (s *Snapshots) makeOfStandby(ctx context.Context, a kurabe.SnapshotAssignment, standby kurabe.InstanceID, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	if s.NoStandby != nil {
		if err := s.NoStandby(standby); err != nil {
			return kurabe.SnapshotFacts{}, err
		}
	}
	facts, err := s.make(ctx, "take-snapshot", a.Snapshot, string(a.Of), progress)
	if err == nil {
		facts.TakenFrom = standby
		s.put(a.Snapshot, snapshotFolder{facts: facts, complete: true})
	}
	return facts, err
}

// Copy makes a snapshot of another one.
func (s *Snapshots) Copy(ctx context.Context, a kurabe.SnapshotAssignment, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	if _, state, _ := s.Find(a.From); state != "complete" {
		return kurabe.SnapshotFacts{}, fmt.Errorf("snapshot %s is %s", a.From, state)
	}
	return s.make(ctx, "copy-snapshot", a.Snapshot, string(a.From), progress)
}

func (s *Snapshots) make(ctx context.Context, step string, id kurabe.SnapshotID, of string, progress func(done, total int64)) (kurabe.SnapshotFacts, error) {
	s.begin(id, of)
	defer s.end(of)
	if err := ask(s.Before, step, id); err != nil {
		return kurabe.SnapshotFacts{}, err
	}
	s.put(id, snapshotFolder{})
	const parts = 100
	for n := range int64(parts) {
		progress(n*SnapshotBytes/parts, SnapshotBytes)
		timer := time.NewTimer(s.TakeTime / parts)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return kurabe.SnapshotFacts{}, ctx.Err()
		}
	}
	facts := kurabe.SnapshotFacts{Method: kurabe.SnapshotCopied, TakenAt: time.Now(), SizeBytes: SnapshotBytes, OccupiedBytes: SnapshotBytes}
	s.put(id, snapshotFolder{facts: facts, complete: true})
	s.mu.Lock()
	s.taken[id]++
	s.mu.Unlock()
	return facts, ask(s.After, step, id)
}

// Remove leaves nothing of a snapshot.
func (s *Snapshots) Remove(_ context.Context, id kurabe.SnapshotID) error {
	if err := ask(s.Before, "remove-snapshot", id); err != nil {
		return err
	}
	s.mu.Lock()
	if s.busy[string(id)] > 0 {
		s.wrong = append(s.wrong, fmt.Sprintf("%s is removed while it is read", id))
	}
	delete(s.folders, id)
	s.mu.Unlock()
	return ask(s.After, "remove-snapshot", id)
}

func ask(hook func(step string, id kurabe.SnapshotID) error, step string, id kurabe.SnapshotID) error {
	if hook == nil {
		return nil
	}
	return hook(step, id)
}

func (s *Snapshots) begin(id kurabe.SnapshotID, of string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.folders[id]; f != nil && f.complete {
		s.wrong = append(s.wrong, fmt.Sprintf("%s is made again although it is complete", id))
	}
	if s.busy[of] > 0 {
		s.wrong = append(s.wrong, fmt.Sprintf("two read %s at a time", of))
	}
	s.busy[of]++
	n := 0
	for _, busy := range s.busy {
		n += busy
	}
	s.most = max(s.most, n)
}

func (s *Snapshots) end(of string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[of]--
}

func (s *Snapshots) put(id kurabe.SnapshotID, f snapshotFolder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folders[id] = &f
}

func (s *Snapshots) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// Lose takes a folder away, as a mishap would.
func (s *Snapshots) Lose(id kurabe.SnapshotID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.folders, id)
}

// Damage spoils the manifest of a snapshot.
func (s *Snapshots) Damage(id kurabe.SnapshotID) { s.put(id, snapshotFolder{damaged: true}) }

// Leave puts what a broken-off try leaves.
func (s *Snapshots) Leave(id kurabe.SnapshotID) { s.put(id, snapshotFolder{}) }

// Taken counts how often a snapshot was taken or copied to its end.
func (s *Snapshots) Taken(id kurabe.SnapshotID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[id]
}

// Most is the largest number of takes and copies that were under way at once.
func (s *Snapshots) Most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Wrong is what was asked of it and must not be.
func (s *Snapshots) Wrong() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.wrong...)
}
