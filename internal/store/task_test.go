package store

import (
	"testing"

	"kurabe"
)

// Tasks and what came of them are part of their instance, a host's each, and go with it.
func TestTasks(t *testing.T) {
	kv := NewMemory()
	v := mustView(t, kv)
	task := kurabe.Task{Kind: kurabe.KindLogCheck, Host: "h1", Instance: "db-1", Generation: 1}
	other := task
	other.Host = "h2"
	report := kurabe.TaskReport{Task: task, Done: true}
	mustSee(t, v, mustCommit(t, kv, NewChange().PutAssignment(task, 0).PutAssignment(other, 0).PutReport(report)))
	i, ok := v.Any("db-1")
	if !ok || len(i.Tasks) != 2 || i.Tasks[0].Value != task || i.Tasks[1].Value != other || len(i.TaskReports) != 1 || !i.TaskReports[0].Value.Done {
		t.Fatalf("%+v", i)
	}
	mustSee(t, v, mustCommit(t, kv, NewChange().DeleteInstance(i)))
	mustSee(t, v, mustCommit(t, kv, NewChange().DropReport("h1", task.Envelope().Ref)))
	if i, ok := v.Any("db-1"); ok {
		t.Errorf("left: %+v", i)
	}
}
