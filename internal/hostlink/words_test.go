package hostlink

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"kurabe"
)

// An update has the bytes that hosts of the version before read and write.
func TestUpdateOnTheNetwork(t *testing.T) {
	type update struct { // as the version before has it
		Full               bool
		Assignments        []kurabe.Assignment
		Snapshots          []kurabe.SnapshotAssignment
		Withdrawn          []kurabe.InstanceID
		WithdrawnSnapshots []kurabe.SnapshotID
	}
	server := kurabe.Assignment{Host: "h", Instance: "db-1", Generation: 3, Goal: kurabe.GoalRunning}
	snapshot := kurabe.SnapshotAssignment{Host: "h", Snapshot: "snap-1", Generation: 4, Goal: kurabe.SnapshotPresent}
	for name, c := range map[string]struct {
		now    Update
		before update
	}{
		"nothing": {Update{Full: true}, update{Full: true}},
		"all": {
			Update{Full: true, Orders: []kurabe.Word{server, snapshot}, Withdrawn: []kurabe.Ref{kurabe.InstanceID("db-2").Ref(), kurabe.SnapshotID("snap-2").Ref()}},
			update{true, []kurabe.Assignment{server}, []kurabe.SnapshotAssignment{snapshot}, []kurabe.InstanceID{"db-2"}, []kurabe.SnapshotID{"snap-2"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			said, err := json.Marshal(c.now)
			old, _ := json.Marshal(c.before)
			if err != nil || string(said) != string(old) {
				t.Errorf("said %s (%v); the version before says %s", said, err, old)
			}
			var heard Update
			if err := json.Unmarshal(old, &heard); err != nil || !reflect.DeepEqual(heard, c.now) {
				t.Errorf("heard %+v (%v); want %+v", heard, err, c.now)
			}
		})
	}
}

// What the version before does not know is beside what it does.
func TestTasksOnTheNetwork(t *testing.T) {
	task := kurabe.Task{Kind: kurabe.KindLogCheck, Host: "h", Instance: "db-1", Generation: 2}
	server := kurabe.Assignment{Host: "h", Instance: "db-1", Generation: 3, Goal: kurabe.GoalRunning}
	now := Update{Orders: []kurabe.Word{server, task}, Withdrawn: []kurabe.Ref{{Kind: kurabe.KindLogCheck, ID: "db-2"}}}
	said, err := json.Marshal(now)
	var heard Update
	if err = errors.Join(err, json.Unmarshal(said, &heard)); err != nil || !reflect.DeepEqual(heard, now) {
		t.Errorf("%s is heard as %+v (%v)", said, heard, err)
	}
}
