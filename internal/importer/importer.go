package importer

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/logkey"
	"kurabe/internal/snapshot"
)

// Progress is how far an import is.
type Progress struct {
	Job     string
	Running bool
	// What was looked at so far, each snapshot once.
	Imported, Known, Refused int
	Waiting                  string `json:",omitempty"` // why it does not go on just now
	Failed                   string `json:",omitempty"` // why it ended early
	// Told is how many results there are, Results those from the one asked for on,
	// resultsAtOnce at most: what was imported, and what was refused.
	Told    int
	Results []control.ImportResult
}

const (
	resultsAtOnce = 1000
	resultsMax    = 100_000 // 20 MB; more are imported, and only counted
	// importTries is how often in a row an import may fail to get any further, with
	// pauses from importPause on: 30 s, after the store's own tries.
	importTries = 5
	importPause = 2 * time.Second
)

// archivedSnapshots is what an import reads; *snapshot.Archive is one.
type archivedSnapshots interface {
	Each(ctx context.Context, skip func(kurabe.SnapshotID) bool, found func(snapshot.Archived) error) error
}

// snapshotRecords is what an import writes; *control.Control is one.
type snapshotRecords interface {
	KnownSnapshot(id kurabe.SnapshotID) (control.ImportResult, bool)
	ImportSnapshot(ctx context.Context, f control.ImportedSnapshot) (control.ImportResult, error)
}

// Importer takes up snapshots that are not on record, one import at a time. It belongs
// to the service and not to a request: thousands of snapshots in a slow store take
// longer than anybody keeps a connection.
type Importer struct {
	archive archivedSnapshots // nil: snapshots are not archived
	local   snapshot.Store
	records snapshotRecords
	log     *slog.Logger

	wake chan struct{} // holds one entry when a job waits for Run

	mu   sync.Mutex // guards job and what is in it
	job  Progress
	seen map[kurabe.SnapshotID]bool // by the job
}

// New makes one that reads archive, which may be nil, and the folder of this host.
func New(archive *snapshot.Archive, local snapshot.Store, records snapshotRecords, log *slog.Logger) *Importer {
	i := &Importer{local: local, records: records, log: log, wake: make(chan struct{}, 1)}
	if archive != nil {
		i.archive = archive
	}
	return i
}

// Begin starts an import, or joins the one that is under way.
func (i *Importer) Begin() Progress {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.job.Running {
		i.job, i.seen = Progress{Job: rand.Text(), Running: true}, map[kurabe.SnapshotID]bool{}
		i.wake <- struct{}{} // has room: Run took the last one before that ended
	}
	return i.viewLocked(0)
}

// viewLocked is the progress with the results from one on.
func (i *Importer) viewLocked(from int) Progress {
	v := i.job
	v.Told = len(i.job.Results)
	from = min(max(from, 0), v.Told)
	v.Results = v.Results[from:min(from+resultsAtOnce, v.Told)]
	return v
}

// Run does what Begin asks for, until ctx ends.
func (i *Importer) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-i.wake:
		}
		began := time.Now()
		err := i.run(ctx)
		i.mu.Lock()
		i.job.Running, i.job.Waiting = false, ""
		if err != nil {
			i.job.Failed = err.Error()
		}
		v := i.job
		i.mu.Unlock()
		log := i.log.With("imported", v.Imported, "known", v.Known, "refused", v.Refused, logkey.DurationMS, time.Since(began).Milliseconds())
		if err != nil {
			log.Warn("import ended early", logkey.Error, err)
		} else {
			log.Info("snapshots imported")
		}
	}
}

// run walks until everything was looked at. A store that breaks off is asked again, as
// long as that brings anything new.
func (i *Importer) run(ctx context.Context) error {
	for try, had := 1, 0; ; try++ {
		err := i.walk(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		i.mu.Lock()
		if len(i.seen) > had {
			had, try = len(i.seen), 1
		}
		i.job.Waiting = err.Error()
		i.mu.Unlock()
		if try == importTries {
			return err
		}
		timer := time.NewTimer(importPause << (try - 1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		i.mu.Lock()
		i.job.Waiting = ""
		i.mu.Unlock()
	}
}

// walk looks at what is in the folder of this host, and then in the repository. Where
// one of two records cannot be read, the other counts.
func (i *Importer) walk(ctx context.Context) error {
	here, err := i.local.All()
	if err != nil {
		return err
	}
	var unread []snapshot.Archived
	for _, f := range here {
		if f.Err != nil {
			unread = append(unread, f)
		} else if err := i.take(ctx, f); err != nil {
			return err
		}
	}
	if i.archive != nil {
		if err := i.archive.Each(ctx, i.skip, func(f snapshot.Archived) error { return i.take(ctx, f) }); err != nil {
			return err
		}
	}
	for _, f := range unread {
		if err := i.take(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// skip says that a snapshot need not be read: it is on record.
func (i *Importer) skip(id kurabe.SnapshotID) bool {
	r, known := i.records.KnownSnapshot(id)
	if known {
		i.note(r)
	}
	return known
}

func (i *Importer) take(ctx context.Context, f snapshot.Archived) error {
	if i.skip(f.ID) {
		return nil
	}
	r, err := i.records.ImportSnapshot(ctx, importable(f))
	if err == nil {
		i.note(r)
	}
	return err
}

// importable is a found snapshot as its record says.
func importable(f snapshot.Archived) control.ImportedSnapshot {
	r := f.Record
	out := control.ImportedSnapshot{ID: f.ID, Name: r.Name, Kind: r.Kind, Tags: r.Tags, Source: r.Source, Facts: r.Facts, Err: f.Err}
	if out.Err == nil && r.Engine != r.Source.Engine {
		out.Err = fmt.Errorf("its files are of %.40q, its source is of %.40q", r.Engine, r.Source.Engine)
	}
	return out
}

// note counts a result, and keeps it for who follows.
func (i *Importer) note(r control.ImportResult) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen[r.ID] {
		return
	}
	i.seen[r.ID] = true
	switch r.Outcome {
	case control.ImportKnown:
		i.job.Known++
		return
	case control.ImportRefused:
		i.job.Refused++
	default:
		i.job.Imported++
	}
	if len(i.job.Results) < resultsMax {
		i.job.Results = append(i.job.Results, r)
	}
}

// Look is the progress of a job with the results from one on; false of a job that is not the
// newest, or was one of another process.
func (i *Importer) Look(job string, from int) (Progress, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if job == "" || job != i.job.Job {
		return Progress{}, false
	}
	return i.viewLocked(from), true
}
