package engine

import "testing"

func TestNeedRoom(t *testing.T) {
	if err := NeedRoom(t.TempDir(), 1<<60); err == nil {
		t.Error("a copy of an exabyte is begun")
	}
	if err := NeedRoom(t.TempDir()+"/absent", 1); err == nil {
		t.Error("a disk that is not there has room")
	}
}
