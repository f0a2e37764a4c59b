package mariadb

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"kurabe"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/mariadbtest"
	"kurabe/internal/engine/mariadb/role"
)

// Two members, or one that was cloned again, have no file of the same name.
func TestLogOfAClone(t *testing.T) {
	dir, i := t.TempDir(), mariadbtest.Follower()
	if err := beginLog(dir, "0-1-5,1-2-7", firstLogNumber(i), nil); err != nil {
		t.Fatal(err)
	}
	names, err := binlog.List(dir)
	if err != nil || len(names) != 1 || binlog.FileNumber(names[0]) != firstLogNumber(i)-1 {
		t.Errorf("%v, %v", names, err)
	}
	if end, err := binlog.ReadTail(dir); err != nil || !end.Closed {
		t.Errorf("there is nothing to recover, and it says %+v, %v", end, err)
	}
	if err := errors.Join(binlog.ForgetPlace(dir), os.WriteFile(filepath.Join(dir, binlog.FileName(firstLogNumber(i))), []byte("begun"), 0o600), binlog.ForgetPlace(dir), binlog.ForgetPlace(dir)); err != nil {
		t.Error(err)
	}
	if left, err := binlog.List(dir); err != nil || len(left) != 1 || binlog.FileNumber(left[0]) != firstLogNumber(i) {
		t.Errorf("%v, %v", left, err)
	}
	if state, err := os.ReadFile(filepath.Join(dir, binlog.BaseName+".state")); err != nil || string(state) != "0-1-5\n1-2-7\n" {
		t.Errorf("%q, %v", state, err)
	}
	seen := map[int64]bool{}
	for number := range 3 {
		for epoch := range 3 {
			i.Instance, i.Role.Epoch = i.Instance.Owner().Member(number+2), kurabe.Epoch(epoch+1)
			if n := firstLogNumber(i); n < 2 || n > firstNumbers+1 || seen[n] {
				t.Errorf("member %d in epoch %d begins at %d", number+2, epoch+1, n)
			}
			seen[firstLogNumber(i)] = true
		}
	}
}

func TestLocalSource(t *testing.T) {
	i := mariadbtest.Follower()
	i.Role.Source.ID = i.Instance.Owner().Member(3)
	s := localSource(i)
	if s.Home.Dir != "/var/lib/kurabe/homes/"+string(i.Instance.Owner())+"~3" || s.SeenDir != "/run/kurabe/"+string(i.Instance.Owner())+"~3" {
		t.Errorf("%s, %s", s.Home.Dir, s.SeenDir)
	}
	if s.Instance != i.Role.Source.ID || s.Listens() != i.Role.Source.Address || !role.Writes(s) || i.Role.Duty != kurabe.DutyFollow {
		t.Errorf("%+v", s.Assignment)
	}
}
