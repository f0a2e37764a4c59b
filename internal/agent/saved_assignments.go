package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kurabe"
	"kurabe/internal/volume"
)

// savedExt tells a saved assignment from one that was saved by half.
const savedExt = ".json"

// The folder of saved assignments lies beside the homes, so that an assignment
// can be saved before its instance's folder exists and outlives its removal
// until the planner knows of it.
func (a *Agent) savedDir() string { return filepath.Join(filepath.Dir(a.Homes), "assignments") }

func (a *Agent) savedFile(id kurabe.InstanceID) string {
	return filepath.Join(a.savedDir(), string(id)+savedExt)
}

// save puts an assignment on disk, a full one too: it may be the one that stops what
// fills it. The verifier in it lets nobody log in, but is nobody else's business.
func (a *Agent) save(assignment kurabe.Assignment) error {
	data, err := json.Marshal(assignment)
	if err != nil {
		return err
	}
	if err := volume.EnsureDir(a.savedDir(), 0o700, os.Getuid(), os.Getgid()); err != nil {
		return err
	}
	return volume.WriteSpared(a.savedFile(assignment.Instance), data, 0o600)
}

func (a *Agent) forget(id kurabe.InstanceID) error {
	return volume.RemoveSpared(a.savedFile(id))
}

// loadSaved reads every saved assignment. One that cannot be read stops the
// agent: running on without it would leave a database unwatched.
func (a *Agent) loadSaved() ([]kurabe.Assignment, error) {
	entries, err := os.ReadDir(a.savedDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read saved assignments: %w", err)
	}
	var list []kurabe.Assignment
	for _, e := range entries {
		if filepath.Ext(e.Name()) != savedExt {
			continue
		}
		data, err := os.ReadFile(filepath.Join(a.savedDir(), e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read saved assignment: %w", err)
		}
		var s kurabe.Assignment
		err = json.Unmarshal(data, &s)
		switch {
		case err == nil && s.Instance == "":
			err = errors.New("it names no instance")
		case err == nil && e.Name() != string(s.Instance)+savedExt:
			err = fmt.Errorf("it belongs to instance %s", s.Instance)
		}
		if err != nil {
			return nil, fmt.Errorf("saved assignment %s cannot be read (%w); restore it, or remove it if the instance no longer runs", filepath.Join(a.savedDir(), e.Name()), err)
		}
		list = append(list, s)
	}
	return list, nil
}
