package logstream

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/blob"
)

// Hosts that share a repository see each other's runs there. When a server on this host
// takes over, its log can go on from the pieces that the former writer's host has pushed; and
// a snapshot here can be brought to a moment of the time when another host wrote. Nothing of
// that makes another host's run one of ours: it is neither trimmed nor removed here.

// elsewherePatience is how long a run waits for a repository that does not answer, and might
// hold what it goes on from. The server holds its log back meanwhile.
const elsewherePatience = time.Minute

// foreign is a run of another host's, as the repository has it.
type foreign struct {
	folder string
	spans  []span // in order
}

// foreigners lists the runs of other hosts, oldest first.
func (s *Store) foreigners(ctx context.Context, repo *blob.Repository, id kurabe.InstanceID) ([]foreign, map[place]found, error) {
	seen, err := list(ctx, repo, id)
	if err != nil {
		return nil, nil, err
	}
	folders := map[string][]span{}
	for at, f := range seen {
		if f.piece && f.marks && !s.mine(at.folder) {
			folders[at.folder] = append(folders[at.folder], at.span)
		}
	}
	var all []foreign
	for folder, spans := range folders {
		slices.SortFunc(spans, span.compare)
		all = append(all, foreign{folder, spans})
	}
	slices.SortFunc(all, func(a, b foreign) int { return cmp.Compare(a.folder, b.folder) })
	return all, seen, nil
}

// newestMarks are those of the newest pieces, the newest first.
func (f foreign) newestMarks(ctx context.Context, repo *blob.Repository, id kurabe.InstanceID, most int) (server kurabe.InstanceID, marks []kurabe.LogMark, err error) {
	for _, at := range slices.Backward(f.spans) {
		h, own, err := readMarks(ctx, repo, objectName(id, f.folder, at))
		if err != nil {
			return server, marks, err
		}
		server = h.Server
		slices.Reverse(own)
		if marks = append(marks, own...); len(marks) >= most {
			break
		}
	}
	return server, slices.Compact(marks), nil
}

// Elsewhere is up to where other hosts' log of an instance is in the repository: what a
// server here must still have to go on with it. false where there is none.
func (s *Store) Elsewhere(ctx context.Context, id kurabe.InstanceID) (kurabe.LogPosition, bool, error) {
	at, ok, err := s.elsewhere(ctx, id)
	if err != nil {
		return at, false, fmt.Errorf("log of %s on other hosts: %w", id, err)
	}
	return at, ok, nil
}

func (s *Store) elsewhere(ctx context.Context, id kurabe.InstanceID) (at kurabe.LogPosition, ok bool, err error) {
	repo, err := s.cfg.Repository()
	if err != nil {
		return at, false, err
	}
	runs, _, err := s.foreigners(ctx, repo, id)
	if err != nil {
		return at, false, err
	}
	var marks []kurabe.LogMark
	if len(runs) > 0 {
		if at.Server, marks, err = runs[len(runs)-1].newestMarks(ctx, repo, id, 1); err != nil {
			return at, false, err
		}
	}
	if own, server := s.ownLast(id); hasMark(own) && (len(marks) == 0 || !marks[0].At.After(own.At)) {
		at.Server, marks = server, []kurabe.LogMark{own} // the other host has brought nothing yet
	}
	if len(marks) == 0 {
		return at, false, nil
	}
	// The oldest of the newest piece's: what its writer alone had is younger.
	last := marks[len(marks)-1].Position
	last.Server = at.Server
	return last, true, nil
}

// ownLast is the newest mark of what this host has.
func (s *Store) ownLast(id kurabe.InstanceID) (last kurabe.LogMark, server kurabe.InstanceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if inst, ok := s.instances[id]; ok {
		if r := inst.counting(); r != nil {
			return r.last(), r.server
		}
	}
	return last, ""
}

// beginBack begins a run that goes on from this host's own, which ended when another host's
// server took over, where that host has brought nothing into the repository since: it may have
// written for a moment only, and the server here has that.
func (f *follower) beginBack(ctx context.Context, log Log) (bool, error) {
	f.s.mu.Lock()
	r := f.inst.counting()
	moved := r != nil && r.ended == kurabe.WrittenElsewhere
	f.s.mu.Unlock()
	if !moved {
		return false, nil
	}
	at, joins, before, err := f.findJoint(ctx, log)
	switch {
	case f.noJoint(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, f.beginAt(at, joins, before)
}

// beginElsewhere begins a run that goes on from another host's, if that is newer than what
// this host has.
func (f *follower) beginElsewhere(ctx context.Context, log Log) (bool, error) {
	if f.s.cfg.Host == "" {
		return false, nil
	}
	joined, err := f.joinElsewhere(ctx, log)
	switch {
	case err == nil || f.noJoint(err):
		f.sought = time.Time{}
		return joined, nil
	case ctx.Err() != nil:
		return false, err
	case f.sought.IsZero():
		f.sought = time.Now()
	case time.Since(f.sought) >= elsewherePatience:
		return false, nil
	}
	return false, fmt.Errorf("look for the log of another host: %w", err)
}

func (f *follower) joinElsewhere(ctx context.Context, log Log) (bool, error) {
	repo, err := f.s.cfg.Repository()
	if err != nil {
		return false, err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	runs, _, err := f.s.foreigners(call, repo, f.inst.id)
	if err != nil || len(runs) == 0 {
		return false, err
	}
	newest := runs[len(runs)-1]
	server, marks, err := newest.newestMarks(call, repo, f.inst.id, jointTries)
	if isDamage(err) {
		return false, errNoMark
	}
	if err != nil {
		return false, err
	}
	f.s.mu.Lock()
	own := f.inst.counting()
	older := len(marks) == 0 || own != nil && !marks[0].At.After(own.last().At)
	f.s.mu.Unlock()
	if older {
		return false, nil
	}
	at, joins, before, err := firstJoint(ctx, log, newest.folder, server, marks[:min(len(marks), jointTries)])
	if err != nil {
		return false, err
	}
	return true, f.beginAt(at, joins, before)
}

// chooseElsewhere is choose with what other hosts have pushed of the runs that go on from
// those here, and of which those here go on.
func (s *Store) chooseElsewhere(ctx context.Context, id kurabe.InstanceID, from kurabe.LogPosition, takenAt, at time.Time) ([]*plan, error) {
	x := point{from, takenAt, at}
	repo, err := s.cfg.Repository()
	if err != nil {
		return nil, err
	}
	inst, ok := s.find(id)
	if !ok {
		return nil, &RangeError{Instance: id, At: at}
	}
	runs, seen, err := s.foreigners(ctx, repo, id)
	if err != nil {
		return nil, err
	}
	all := &instance{id: id}
	for _, f := range runs {
		var unknown []place
		for _, x := range f.spans {
			unknown = append(unknown, place{f.folder, x})
		}
		learned, err := s.learn(ctx, repo, inst, unknown, seen)
		if err != nil {
			return nil, err
		}
		pieces := learned[f.folder]
		slices.SortFunc(pieces, byPlace)
		whole, _ := chains(pieces)
		for _, chain := range whole {
			all.runs = append(all.runs, &run{folder: f.folder, pieces: chain, ended: noWord, server: chain[0].Server, joins: chain[0].Joins})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all.runs = append(all.runs, inst.runs...)
	slices.SortStableFunc(all.runs, func(a, b *run) int { return cmp.Compare(a.folder, b.folder) })
	return all.choose(x, repo, nil)
}
