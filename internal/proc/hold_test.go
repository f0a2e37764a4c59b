package proc

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestHold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "engine.lock")
	release, err := Hold(file)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := LockHeld(file); err != nil || !held {
		t.Errorf("held %v, %v", held, err)
	}
	if _, err := Hold(file); !errors.Is(err, ErrLockHeld) {
		t.Errorf("a second holder: %v", err)
	}
	release()
	if held, err := LockHeld(file); err != nil || held {
		t.Errorf("released, and held %v, %v", held, err)
	}
}
