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
	"kurabe/internal/agent/snapshot"
	"kurabe/internal/agent/unit"
	"kurabe/internal/faultpoint"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

// Deed does a task for an instance once. It may be cut off and repeated, and is never called
// twice at a time.
type Deed func(ctx context.Context, id kurabe.InstanceID) (kurabe.TaskResult, error)

// taskUnit drives a task of one kind for one instance.
type taskUnit struct {
	agent *Agent
	unit.Unit[kurabe.InstanceID, kurabe.Task, kurabe.TaskReport]
	deed  Deed
	saved savedTask // guarded by saving
}

// savedTask is what is on disk of a task, so that it is not done again after a restart.
type savedTask struct {
	Order  kurabe.Task       `json:"order"`
	Report kurabe.TaskReport `json:"report"`
}

type taskUnits = unit.Table[kurabe.InstanceID, kurabe.Task, *taskUnit]

// newTasks makes the tables of the tasks that this host can do.
func (a *Agent) newTasks() (all []*taskUnits) {
	for kind, deed := range a.Deeds {
		all = append(all, unit.NewTable[kurabe.InstanceID, kurabe.Task](kind, a.host, func(id kurabe.InstanceID) *taskUnit {
			u := &taskUnit{agent: a, deed: deed}
			u.Unit = unit.New[kurabe.InstanceID, kurabe.Task, kurabe.TaskReport](u, a.host, id, kurabe.Ref{Kind: kind, ID: string(id)}, logkey.Instance)
			// What cannot be read is ordered again.
			if data, err := os.ReadFile(u.file()); err == nil && json.Unmarshal(data, &u.saved) == nil && u.saved.Order.Instance == id {
				u.Give(u.saved.Order)
			}
			return u
		}))
	}
	return all
}

func (u *taskUnit) file() string {
	return filepath.Join(filepath.Dir(u.agent.Homes), "tasks", string(u.Ref.Kind), string(u.ID)+savedExt)
}

func (u *taskUnit) Save(a kurabe.Task) error { return u.put(savedTask{a, u.saved.Report}) }

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

func (u *taskUnit) Forget() error                              { return volume.RemoveSpared(u.file()) }
func (u *taskUnit) Obeys(kurabe.Task)                          {}
func (u *taskUnit) Retires()                                   { u.CutStep(unit.ErrCut) }
func (u *taskUnit) End()                                       {}
func (u *taskUnit) Unknown(context.Context, kurabe.Task, bool) {}
func (u *taskUnit) SameNews(a, b kurabe.TaskReport) bool {
	b.Failure = unit.AsBefore(a.Failure, b.Failure)
	return reflect.DeepEqual(a, b)
}

// Pass does the task if it was not done as often as it is ordered.
func (u *taskUnit) Pass(ctx context.Context, a kurabe.Task) time.Duration {
	u.Saving.Lock()
	done := u.saved.Report
	u.Saving.Unlock()
	u.Looked() // what follows may take hours
	rest := u.Rest()
	if done.Generation < a.Generation && rest <= 0 {
		err := u.do(ctx, a)
		switch {
		case ctx.Err() != nil, err == nil:
			return 0
		case errors.Is(err, unit.ErrCut):
			return u.agent.Look // there is an order that wakes it, or none any more
		}
		u.Log.Warn("task failed, retrying", "kind", u.Ref.Kind, logkey.Error, err)
		rest = u.RestFor(unit.Backoff(u.Fails(kurabe.FailureOther, string(u.Ref.Kind), err.Error()) + snapshot.Patience))
	}
	if rest > 0 {
		u.Tell(ctx, kurabe.TaskReport{Task: a, Failure: u.Failure})
		return u.RetryReport(rest)
	}
	u.Tell(ctx, done)
	return u.RetryReport(u.agent.Look)
}

// do does it when others of the kind have had their turn, and keeps what came of it before
// anybody hears of it.
func (u *taskUnit) do(ctx context.Context, a kurabe.Task) error {
	limited, end, err := u.Cuttable(ctx, a)
	if err != nil {
		return err
	}
	defer end()
	leave, err := u.agent.host.Lines.Enter(limited, string(u.Ref.Kind))
	if err != nil {
		return err
	}
	defer leave()
	faultpoint.Reach("before", string(u.Ref.Kind))
	result, err := u.deed(limited, u.ID)
	if context.Cause(limited) == unit.ErrCut {
		return unit.ErrCut
	}
	if err != nil {
		return err
	}
	faultpoint.Reach("after", string(u.Ref.Kind))
	u.Saving.Lock()
	defer u.Saving.Unlock()
	result.Problems = result.Problems[:min(len(result.Problems), kurabe.TaskProblemsMax)]
	return u.put(savedTask{a, kurabe.TaskReport{Task: a, Done: true, At: u.agent.Now().UTC(), TaskResult: result}})
}
