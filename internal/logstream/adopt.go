package logstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"kurabe"
)

// adoption is a snapshot that an import brought to this host, with whose log it goes.
type adoption struct {
	takenAt time.Time
	from    kurabe.LogPosition
}

// Adopt has the run kept here that holds a snapshot which an import brought back: it is in
// the repository, of a host that may be gone. All other runs of other hosts are left to
// them, in whose snapshots they are needed. It is quick once that is done.
func (s *Store) Adopt(ctx context.Context, id kurabe.InstanceID, takenAt time.Time, from kurabe.LogPosition) error {
	if err := checkPart(string(id)); err != nil {
		return fmt.Errorf("adopt the log: %w", err)
	}
	inst, point := s.get(id), adoption{takenAt, from}
	s.mu.Lock()
	known := slices.Contains(inst.adopted, point)
	if !known {
		inst.adopted, inst.surveyed = append(inst.adopted, point), false
	}
	done := inst.surveyed
	s.mu.Unlock()
	if done {
		return nil
	}
	repo, err := s.cfg.Repository()
	if err == nil {
		err = s.surveyOne(ctx, repo, inst)
	}
	if err != nil {
		return fmt.Errorf("adopt the log of %s: %w", id, err)
	}
	return nil
}

// leaveLocked forgets the runs of other hosts that go with no snapshot that was adopted.
func (s *Store) leaveLocked(inst *instance) (err error) {
	keep := map[string]bool{}
	for _, r := range inst.runs { // each after those that it may go on from
		told, ok := r.report()
		one := kurabe.InstanceLog{Runs: []kurabe.LogRun{told}}
		keep[r.folder] = keep[r.folder] || r.joins != nil && keep[r.joins.Run] || s.mine(r.folder) || len(inst.adopted) == 0 || ok && slices.ContainsFunc(inst.adopted, func(a adoption) bool {
			_, reaches := one.Reaches(a.takenAt, a.from)
			return reaches
		})
	}
	inst.runs = slices.DeleteFunc(inst.runs, func(r *run) bool { return !keep[r.folder] })
	for folder, is := range keep {
		if !is {
			err = errors.Join(err, os.RemoveAll(s.runDir(inst.id, folder)))
		}
	}
	return err
}

// mine says whether a run was begun here, or by a host that left no mark.
func (s *Store) mine(folder string) bool {
	who := ownerOf(folder)
	return s.cfg.Host == "" || who == "" || who == owner(s.cfg.Host)
}

// ownerBytes is how much of a sum of the host's id marks its runs.
const ownerBytes = 4

// owner is the mark of a host in the names of its runs, "" without one.
func owner(host string) string {
	if host == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(host))
	return hex.EncodeToString(sum[:ownerBytes])
}

// ownerOf is the mark in the name of a run, which lies between its time and chance.
func ownerOf(folder string) string {
	if parts := strings.Split(folder, "-"); len(parts) == 3 {
		return parts[1]
	}
	return ""
}
