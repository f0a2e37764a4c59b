package alarm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"kurabe"
	evaluation "kurabe/internal/alarm"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
)

// Max is CloudWatch's quota of alarms.
const Max = 5000

// ErrQuota says that there are Max alarms.
var ErrQuota = errors.New("alarm: quota reached")

// batch is how many alarms one transaction changes.
const batch = 25

// Alarms are the use cases.
type Alarms struct {
	scope.Scope
	evaluation.Place
}

// New returns the use cases over a scope.
func New(s scope.Scope) Alarms {
	return Alarms{s, evaluation.Place{Region: s.Region, Account: s.Account}}
}

// ARN is that of an alarm.
func (c Alarms) ARN(name string) string { return c.Place.ARN(name) }

// Put writes an alarm that was checked. One of that name keeps its tags and its state. ErrQuota
// when it is one too many.
func (c Alarms) Put(ctx context.Context, wish kurabe.Alarm) error {
	return c.Create(ctx, func() (*store.Change, error) {
		have, exists := c.View.Alarm(wish.Name)
		if !exists && len(c.View.Alarms()) >= Max {
			return nil, ErrQuota
		}
		now, what := c.Now().UTC(), "created"
		wish.CreatedAt, wish.UpdatedAt = now, now
		if exists {
			what, wish.Tags, wish.CreatedAt = "updated", have.Value.Tags, have.Value.CreatedAt
		}
		return c.put(store.NewChange(), have, wish, what), nil
	})
}

// put writes an alarm in place of what was read, and tells of it.
func (c Alarms) put(change *store.Change, have store.Alarm, wish kurabe.Alarm, what string) *store.Change {
	have.Value = wish
	if have.Status.ModRevision == 0 {
		have.Status.Value = store.NewAlarmStatus(wish)
	}
	return change.PutAlarm(wish, have.ModRevision).AddAlarmEntry(c.Configured(what, have, wish.UpdatedAt))
}

// Filter narrows a list of alarms; zero fields match everything.
type Filter struct {
	Names        []string
	Prefix       string // of the name
	ActionPrefix string // of one of the actions
	State        kurabe.AlarmState
	Metric       func(kurabe.MetricQuery) bool // of alarms of one metric
}

// Alarm is an alarm with its state.
type Alarm struct {
	kurabe.Alarm
	Status kurabe.AlarmStatus
}

// List returns the alarms that match, by name.
func (c Alarms) List(f Filter) (list []Alarm) {
	for _, a := range c.View.Alarms() {
		acts := false
		for _, actions := range a.Value.Actions {
			acts = acts || slices.ContainsFunc(actions, func(arn string) bool { return strings.HasPrefix(arn, f.ActionPrefix) })
		}
		if (len(f.Names) == 0 || slices.Contains(f.Names, a.Value.Name)) && strings.HasPrefix(a.Value.Name, f.Prefix) &&
			(f.ActionPrefix == "" || acts) && (f.State == "" || f.State == a.Status.Value.State) &&
			(f.Metric == nil || !a.Value.Math() && f.Metric(a.Value.Queries[0])) {
			list = append(list, Alarm{a.Value, a.Status.Value})
		}
	}
	return list
}

// find returns an alarm; CodeResourceNotFound when there is none.
func (c Alarms) find(name string) (store.Alarm, error) {
	a, ok := c.View.Alarm(name)
	if !ok {
		return a, kurabe.Errorf(kurabe.CodeResourceNotFound, "Unknown alarm: %.300s", name)
	}
	return a, nil
}

// SetState brings an alarm into a state, as if it had been evaluated so; the next evaluation
// brings it into its own. CodeResourceNotFound when there is none.
func (c Alarms) SetState(ctx context.Context, name string, v evaluation.Verdict) error {
	return c.Update(ctx, func() (*store.Change, error) {
		a, err := c.find(name)
		if err != nil {
			return nil, err
		}
		return c.Enter(store.NewChange(), c.View, a, v, c.Now()), nil
	})
}

// Mute has alarms tell nobody of their states, or tell again. Names that no alarm has are no
// error.
func (c Alarms) Mute(ctx context.Context, names []string, muted bool) error {
	return c.each(ctx, names, func(change *store.Change, a store.Alarm) {
		if a.Value.Muted != muted {
			wish := a.Value
			wish.Muted, wish.UpdatedAt = muted, c.Now().UTC()
			c.put(change, a, wish, "updated")
		}
	})
}

// Delete removes alarms, or none and says CodeResourceNotFound when one of them is not there.
func (c Alarms) Delete(ctx context.Context, names []string) error {
	return c.each(ctx, names, func(change *store.Change, a store.Alarm) {
		change.DeleteAlarm(a.Value.Name, a.ModRevision).AddAlarmEntry(c.Configured("deleted", a, c.Now()))
	})
}

// each has an edit change the alarms that there are, each once, some in one transaction.
func (c Alarms) each(ctx context.Context, names []string, edit func(*store.Change, store.Alarm)) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for some := range slices.Chunk(names, batch) {
		err := c.Update(ctx, func() (*store.Change, error) {
			change := store.NewChange()
			for _, name := range some {
				if a, ok := c.View.Alarm(name); ok {
					edit(change, a)
				}
			}
			return change, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// HistoryFilter narrows the history; zero fields match everything.
type HistoryFilter struct {
	Alarm    string
	Kind     kurabe.AlarmHistoryKind
	From, To time.Time
}

// History returns the entries that match, oldest first, also those of alarms that are gone.
func (c Alarms) History(f HistoryFilter) []kurabe.AlarmEntry {
	// Another server's clock may be ahead. Nothing was before 1970.
	if last := c.Now().Add(time.Hour); f.To.IsZero() || f.To.After(last) {
		f.To = last
	}
	if f.From.Unix() < 0 {
		f.From = time.Unix(0, 0)
	}
	return slices.DeleteFunc(c.View.AlarmHistory(f.From, f.To), func(e kurabe.AlarmEntry) bool {
		return f.Alarm != "" && f.Alarm != e.Alarm || f.Kind != "" && f.Kind != e.Kind
	})
}

// named returns the alarm of an ARN. CodeInvalidParameterValue when it can be none's,
// CodeResourceNotFound when there is none.
func (c Alarms) named(arn string) (store.Alarm, error) {
	name, ok := strings.CutPrefix(arn, c.ARN(""))
	if !ok || name == "" {
		return store.Alarm{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The ARN %.400s is none of an alarm of this service: those begin with %s", arn, c.ARN(""))
	}
	return c.find(name)
}

// Tags returns the tags of an alarm, in the order in which they were given.
func (c Alarms) Tags(arn string) ([]kurabe.Tag, error) {
	a, err := c.named(arn)
	return a.Value.Tags, err
}

// EditTags changes the tags of an alarm.
func (c Alarms) EditTags(ctx context.Context, arn string, edit func([]kurabe.Tag) []kurabe.Tag) error {
	return c.Update(ctx, func() (*store.Change, error) {
		a, err := c.named(arn)
		if err != nil {
			return nil, err
		}
		a.Value.Tags = edit(slices.Clone(a.Value.Tags))
		return store.NewChange().PutAlarm(a.Value, a.ModRevision), kurabe.CheckTags(a.Value.Tags)
	})
}
