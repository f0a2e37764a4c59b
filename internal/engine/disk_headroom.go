package engine

import (
	"fmt"
	"path/filepath"

	"kurabe"
	"kurabe/internal/volume"
)

// spareBytes stay free beside a copy: databases on the same disk write on.
const spareBytes = 512 << 20

// NeedRoom refuses a copy of so many bytes into a folder whose disk would be full
// with it, before any of it is written.
func NeedRoom(dir string, bytes int64) error {
	free, err := volume.FreeBytes(dir)
	if err != nil {
		return err
	}
	if free < bytes+spareBytes {
		return fmt.Errorf("a copy of %s needs more than the %s that are free on the disk of %s",
			kurabe.FormatBytes(bytes), kurabe.FormatBytes(free), dir)
	}
	return nil
}

// roomToCopy is NeedRoom where nothing can be cloned to dst.
func roomToCopy(src, dst string) error {
	if volume.Reflink(filepath.Dir(dst)) {
		return nil
	}
	bytes, err := volume.UsedBytes(src)
	if err != nil {
		return err
	}
	return NeedRoom(filepath.Dir(dst), bytes)
}
