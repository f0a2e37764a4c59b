package binlog

import (
	"kurabe/internal/volume"
)

// ForgetPlace removes the file that took a number, once the server has begun its own log: it
// does not know it, and would never purge it.
func ForgetPlace(dataDir string) error {
	names, err := List(dataDir)
	if err != nil || len(names) < 2 {
		return err
	}
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Lstat(names[0]); err != nil || info.Size() > 0 {
		return err
	}
	return root.Remove(names[0])
}
