package service

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

const (
	// sameLossTime is for how long what is noticed of one kind is the same incident: one is often
	// noticed in several files.
	sameLossTime = 10 * time.Minute
	lossKept     = 15 * 24 * time.Hour
)

// losses remember what this host has lost of its measurements, over restarts of the service: the
// planner may hear of them only later.
type losses struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex // guards the rest
	said string     // logged last
	list map[kurabe.InstanceID][]kurabe.LostMeasurements
}

func newLosses(path string, log *slog.Logger) *losses {
	l := &losses{path: path, log: log, list: map[kurabe.InstanceID][]kurabe.LostMeasurements{}}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &l.list)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("lost measurements not known", logkey.Error, err)
	}
	if l.list == nil {
		l.list = map[kurabe.InstanceID][]kurabe.LostMeasurements{}
	}
	return l
}

// note takes down a loss of instances.
func (l *losses) note(what, reason string, ids ...kurabe.InstanceID) {
	now := time.Now().UTC()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said != reason { // what cannot be read is tried each second
		l.said = reason
		l.log.Warn("lost "+what, logkey.Reason, reason)
	}
	changed := false
	for _, id := range ids {
		have := slices.IndexFunc(l.list[id], func(m kurabe.LostMeasurements) bool { return m.What == what })
		if have >= 0 && now.Sub(l.list[id][have].At).Abs() < sameLossTime {
			continue
		}
		changed = true
		// A new list: the one before is in a report.
		list := slices.DeleteFunc(slices.Clone(l.list[id]), func(m kurabe.LostMeasurements) bool { return m.What == what })
		l.list[id] = append(list, kurabe.LostMeasurements{What: what, At: now, Reason: reason})
	}
	if !changed {
		return
	}
	for id, list := range l.list {
		if !slices.ContainsFunc(list, func(m kurabe.LostMeasurements) bool { return now.Sub(m.At) < lossKept }) {
			delete(l.list, id)
		}
	}
	raw, err := json.Marshal(l.list)
	if err == nil {
		err = volume.AtomicWrite(l.path, raw, 0o600)
	}
	if err != nil {
		l.log.Warn("lost measurements not remembered", logkey.Error, err)
	}
}

func (l *losses) of(id kurabe.InstanceID) []kurabe.LostMeasurements {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list[id]
}

// instanceIDs are the instances that have a folder on this host.
func (n *node) instanceIDs() (list []kurabe.InstanceID) {
	entries, _ := os.ReadDir(placeIn(n.base, "instances")) // none before the first instance
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, kurabe.InstanceID(e.Name()))
		}
	}
	return list
}
