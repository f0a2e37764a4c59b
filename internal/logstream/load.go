package logstream

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kurabe"
	"kurabe/internal/logkey"
)

const (
	spoolSuffix = ".piece"
	// noWord is why a run has ended of which no reason is known.
	noWord = "its host stopped following it"
	// missing is the reason before a gap in what had been kept.
	missingWord = "the log is " + lostWord + " after "
	// lostWord marks, in the saved reason, a run that has ended because stored log is lost.
	lostWord = "missing or damaged"
)

func (s *Store) logger(inst *instance) *slog.Logger {
	return s.cfg.Log.With(logkey.Instance, string(inst.id))
}

// load learns what the spool holds of an instance. What a death left half-written is
// cut off, back to the newest mark that counts.
func (s *Store) load(id kurabe.InstanceID) error {
	inst := s.get(id)
	entries, err := os.ReadDir(s.dir(id))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, e := range entries {
		if !e.IsDir() || checkPart(e.Name()) != nil {
			continue
		}
		if err := s.loadRun(inst, e.Name(), n == len(entries)-1); err != nil {
			return fmt.Errorf("run %s: %w", e.Name(), err)
		}
	}
	return nil
}

// loadRun reads one folder; newest says that no other follows.
func (s *Store) loadRun(inst *instance, folder string, newest bool) error {
	dir := s.runDir(inst.id, folder)
	ended, err := readEnded(dir)
	if err != nil {
		return err
	}
	pieces, whole, err := readIndex(dir)
	if err != nil {
		return err
	}
	if !whole {
		if err := writeIndex(dir, pieces); err != nil {
			return err
		}
	}
	live := newest && ended == ""
	spooled, err := s.loadSpool(inst, dir, live)
	if err != nil {
		return err
	}
	for _, p := range spooled {
		// A death between the index and the removal of the spool file.
		if slices.ContainsFunc(pieces, func(o *piece) bool { return o.span == p.span }) {
			s.dropLocked(inst, []*piece{p})
			continue
		}
		pieces = append(pieces, p)
	}
	if len(pieces) == 0 && ended == "" {
		return os.RemoveAll(dir) // begun, and nothing came of it
	}
	if !live && ended == "" {
		ended = noWord
	}
	s.arrangeLocked(inst, folder, pieces, ended)
	return nil
}

// loadSpool gives the pieces of the spool files in their order. All but the last of a
// live run are closed: what was not is closed where it is good, and the break that
// leaves is found by chains.
func (s *Store) loadSpool(inst *instance, dir string, live bool) ([]*piece, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		number, ok := strings.CutSuffix(e.Name(), spoolSuffix)
		if strings.HasSuffix(e.Name(), ".tmp") {
			err = errors.Join(err, os.Remove(path))
		} else if n, bad := strconv.Atoi(number); ok && bad == nil {
			paths = append(paths, path)
			inst.next = max(inst.next, n+1)
		}
	}
	var pieces []*piece
	for n, path := range paths {
		p, scanErr := s.loadPiece(inst, path, live && n == len(paths)-1)
		err = errors.Join(err, scanErr)
		if p != nil {
			pieces = append(pieces, p)
		}
	}
	return pieces, err
}

func (s *Store) loadPiece(inst *instance, path string, mayGrow bool) (*piece, error) {
	got, err := scanSpoolFile(path, nil)
	if errors.Is(err, errTorn) {
		s.logger(inst).Warn("file of the log spool is damaged", logkey.Path, path)
		return nil, os.Remove(path)
	}
	if err != nil {
		return nil, err
	}
	empty := got.head.End == got.head.Start
	if empty && len(got.marks) == 0 {
		return nil, os.Remove(path)
	}
	p := &piece{head: got.head, path: path, spoolBytes: got.place, closed: got.closed, StoredBytes: got.head.End - got.head.Start}
	for _, m := range got.marks {
		p.note(m)
	}
	if !p.closed && !mayGrow && !empty {
		if err := s.closeFile(p, got.place); err != nil {
			return nil, err
		}
	}
	inst.spoolBytes += p.spoolBytes
	s.spoolBytes += p.spoolBytes
	return p, nil
}

// closeFile ends a spool file after its last good place. The caller owns the piece.
func (s *Store) closeFile(p *piece, place int64) error {
	file, err := openSpoolFile(p.path, place, s.toDisk)
	if err != nil {
		return err
	}
	text, err := json.Marshal(p.Next)
	if err == nil {
		err = file.write(frameEnd, text)
	}
	if err == nil {
		err = file.sync()
	}
	if err = errors.Join(err, file.file.Close()); err == nil {
		p.closed = true
	}
	return err
}

// arrangeLocked makes runs of all that is known of one folder. ended is the reason of
// the last run, "" if it is live. What lies after a gap without the beginning of a
// file is of no use.
func (s *Store) arrangeLocked(inst *instance, folder string, pieces []*piece, ended string) {
	if len(pieces) == 0 { // Trim has not removed all of it yet
		inst.runs = append(inst.runs, &run{folder: folder, ended: ended})
		return
	}
	slices.SortFunc(pieces, byPlace)
	newest := pieces[len(pieces)-1]
	whole, left := chains(pieces)
	s.dropLocked(inst, left)
	if newest.dropped && ended == "" {
		ended = missingWord + "its last complete piece"
	}
	var old *run
	inst.runs = slices.DeleteFunc(inst.runs, func(r *run) bool {
		if r.folder == folder {
			old = r // the last of them, the only one that anybody may follow
		}
		return r.folder == folder
	})
	var runs []*run
	for n, chain := range whole {
		r := &run{folder: folder, pieces: chain, ended: ended, server: chain[0].Server, joins: chain[0].Joins}
		last := chain[len(chain)-1]
		switch {
		case n < len(whole)-1 || last != newest:
			r.ended = missingWord + last.span.String()
		case old != nil:
			*old = *r // who follows it goes on
			r = old
		}
		runs = append(runs, r)
	}
	if old != nil && !slices.Contains(runs, old) {
		old.pieces, old.ended = nil, cmpReason(old.ended, ended)
	}
	inst.runs = append(inst.runs, runs...)
	slices.SortFunc(inst.runs, func(a, b *run) int {
		if c := cmp.Compare(a.folder, b.folder); c != 0 || len(a.pieces) == 0 || len(b.pieces) == 0 {
			return c
		}
		return byPlace(a.pieces[0], b.pieces[0])
	})
}

func cmpReason(reasons ...string) string {
	for _, r := range reasons {
		if r != "" {
			return r
		}
	}
	return noWord
}
