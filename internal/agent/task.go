package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"kurabe"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

// Deed does a task for an instance once. It may be cut off and repeated, and is never called
// twice at a time.
type Deed func(ctx context.Context, id kurabe.InstanceID) (kurabe.TaskResult, error)

// taskUnit drives a task of one kind for one instance.
type taskUnit struct {
	unit[kurabe.InstanceID, kurabe.Task, kurabe.TaskReport]
	deed  Deed
	saved savedTask // guarded by saving
}

// savedTask is what is on disk of a task, so that it is not done again after a restart.
type savedTask struct {
	Order  kurabe.Task       `json:"order"`
	Report kurabe.TaskReport `json:"report"`
}

type taskUnits = units[kurabe.InstanceID, kurabe.Task, *taskUnit]

// newTasks makes the tables of the tasks that this host can do.
func (a *Agent) newTasks() (all []*taskUnits) {
	for kind, deed := range a.Deeds {
		all = append(all, newUnits[kurabe.InstanceID, kurabe.Task](kind, &a.wait, func(id kurabe.InstanceID) *taskUnit {
			u := &taskUnit{deed: deed}
			u.unit = newUnit[kurabe.InstanceID, kurabe.Task, kurabe.TaskReport](u, a, id, kurabe.Ref{Kind: kind, ID: string(id)}, logkey.Instance)
			// What cannot be read is ordered again.
			if data, err := os.ReadFile(u.file()); err == nil && json.Unmarshal(data, &u.saved) == nil && u.saved.Order.Instance == id {
				u.give(u.saved.Order)
			}
			return u
		}))
	}
	return all
}

func (u *taskUnit) file() string {
	return filepath.Join(filepath.Dir(u.agent.Homes), "tasks", string(u.ref.Kind), string(u.id)+savedExt)
}

func (u *taskUnit) save(a kurabe.Task) error { return u.put(savedTask{a, u.saved.Report}) }

func (u *taskUnit) put(s savedTask) error {
	data, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(u.file()), 0o700)
	}
	if err == nil {
		err = volume.WriteSpared(u.file(), data, 0o600)
	}
	if err == nil {
		u.saved = s
	}
	return err
}

func (u *taskUnit) forget() error                              { return volume.RemoveSpared(u.file()) }
func (u *taskUnit) obeys(kurabe.Task)                          {}
func (u *taskUnit) retires()                                   { u.cutStep(errCut) }
func (u *taskUnit) end()                                       {}
func (u *taskUnit) unknown(context.Context, kurabe.Task, bool) {}
func (u *taskUnit) sameNews(a, b kurabe.TaskReport) bool {
	b.Failure = asBefore(a.Failure, b.Failure)
	return reflect.DeepEqual(a, b)
}

// pass does the task if it was not done as often as it is ordered.
func (u *taskUnit) pass(ctx context.Context, a kurabe.Task) time.Duration {
	u.saving.Lock()
	done := u.saved.Report
	u.saving.Unlock()
	u.look() // what follows may take hours
	rest := u.rest()
	if done.Generation < a.Generation && rest <= 0 {
		err := u.do(ctx, a)
		switch {
		case ctx.Err() != nil, err == nil:
			return 0
		case errors.Is(err, errCut):
			return u.agent.Look // there is an order that wakes it, or none any more
		}
		u.log.Warn("task failed, retrying", "kind", u.ref.Kind, logkey.Error, err)
		rest = u.restFor(backoff(u.fails(kurabe.FailureOther, string(u.ref.Kind), err.Error()) + snapshotPatience))
	}
	if rest > 0 {
		u.tell(ctx, kurabe.TaskReport{Task: a, Failure: u.failure})
		return u.retryReport(rest)
	}
	u.tell(ctx, done)
	return u.retryReport(u.agent.Look)
}

// do does it when others of the kind have had their turn, and keeps what came of it before
// anybody hears of it.
func (u *taskUnit) do(ctx context.Context, a kurabe.Task) error {
	limited, end, err := u.cuttable(ctx, a)
	if err != nil {
		return err
	}
	defer end()
	leave, err := u.agent.snapshots.lines.enter(limited, string(u.ref.Kind))
	if err != nil {
		return err
	}
	defer leave()
	faultpoint.Reach("before", string(u.ref.Kind))
	result, err := u.deed(limited, u.id)
	if context.Cause(limited) == errCut {
		return errCut
	}
	if err != nil {
		return err
	}
	faultpoint.Reach("after", string(u.ref.Kind))
	u.saving.Lock()
	defer u.saving.Unlock()
	result.Problems = result.Problems[:min(len(result.Problems), kurabe.TaskProblemsMax)]
	return u.put(savedTask{a, kurabe.TaskReport{Task: a, Done: true, At: u.agent.Now().UTC(), TaskResult: result}})
}
