package store

import (
	"maps"
	"slices"
	"strings"
	"time"

	"kurabe"
)

// What is kept of the history of alarms: CloudWatch's thirty days, and not more entries than
// some 20 MB of memory hold.
const (
	alarmEntryAgeMax   = 30 * 24 * time.Hour
	alarmEntryCountMax = 10_000
)

// Alarm is an alarm with its state.
type Alarm struct {
	Record[kurabe.Alarm]
	Status Record[kurabe.AlarmStatus] // of one that nothing was written of, that of a new alarm
}

// PutAlarm writes an alarm that was read at mod, 0 for a new one.
func (c *Change) PutAlarm(a kurabe.Alarm, mod int64) *Change {
	key := alarmKey(a.Name)
	return c.Require(key, mod).put(key, a)
}

// RequireAlarm demands that an alarm is the one read at mod.
func (c *Change) RequireAlarm(name string, mod int64) *Change { return c.Require(alarmKey(name), mod) }

// DeleteAlarm removes an alarm, read at mod, and its state. Its history stays.
func (c *Change) DeleteAlarm(name string, mod int64) *Change {
	return c.RequireAlarm(name, mod).Delete(alarmKey(name)).Delete(alarmStatusKey(name))
}

// PutAlarmStatus writes the state of an alarm that was read at mod, 0 of one that has none.
func (c *Change) PutAlarmStatus(s kurabe.AlarmStatus, mod int64) *Change {
	key := alarmStatusKey(s.Name)
	return c.Require(key, mod).put(key, s)
}

// AddAlarmEntry appends an entry to the history and gives it its Seq.
func (c *Change) AddAlarmEntry(e kurabe.AlarmEntry) *Change {
	e.Seq = eventSeq(e.At, c.events)
	c.events++
	return c.put(alarmHistory+e.Seq, e, e.Seq)
}

func (s *state) putAlarm(p keyParts, e Entry) error {
	switch p.kind {
	case KindAlarm:
		return keep(s.alarms, p.name, e)
	case KindAlarmStatus:
		return keep(s.alarmStatus, p.name, e)
	}
	entry, err := decode[kurabe.AlarmEntry](e)
	if err == nil {
		s.alarmHistory.put(entry, p.name)
	}
	return err
}

func (s *state) removeAlarm(p keyParts) {
	switch p.kind {
	case KindAlarm:
		delete(s.alarms, p.name)
	case KindAlarmStatus:
		delete(s.alarmStatus, p.name)
	default:
		s.alarmHistory.remove(p.name)
	}
}

// NewAlarmStatus is the state of an alarm that nothing was written of.
func NewAlarmStatus(a kurabe.Alarm) kurabe.AlarmStatus {
	return kurabe.AlarmStatus{Name: a.Name, State: kurabe.AlarmInsufficientData, Reason: kurabe.AlarmCreated, UpdatedAt: a.CreatedAt, TransitionedAt: a.CreatedAt}
}

// alarm returns the alarm of a key.
func (s *state) alarm(key string) (Alarm, bool) {
	a, ok := s.alarms[key]
	status, has := s.alarmStatus[key]
	if !has {
		status.Value = NewAlarmStatus(a.Value)
	}
	return Alarm{a, status}, ok
}

// Alarm returns an alarm by its name.
func (v *View) Alarm(name string) (Alarm, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.alarm(kurabe.AlarmKey(name))
}

// Alarms returns every alarm, by name.
func (v *View) Alarms() []Alarm {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]Alarm, 0, len(v.state.alarms))
	for key := range maps.Keys(v.state.alarms) {
		a, _ := v.state.alarm(key)
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Alarm) int { return strings.Compare(a.Value.Name, b.Value.Name) })
	return out
}

// AlarmHistory returns the entries with from <= At < to, newest last.
func (v *View) AlarmHistory(from, to time.Time) []kurabe.AlarmEntry {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.alarmHistory.between(from, to)
}
