package binlog

import (
	"errors"
	"io"
	"path/filepath"
	"syscall"

	"kurabe/internal/volume"
)

// HandTo makes a file of the server's of what is applied.
func (f ReplayFile) HandTo(to string) error {
	from := filepath.Join(f.Dir, f.Name)
	if f.skip > 0 {
		return f.splice(from, to)
	}
	err := volume.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		err = copyPlain(from, to)
	}
	if err == nil && f.Cut > 0 {
		err = volume.Truncate(to, f.Cut)
	}
	return err
}

// splice leaves a part out. Events of a log that came from elsewhere name their places there,
// so the server does not mind that theirs are others.
func (f ReplayFile) splice(from, to string) error {
	source, err := volume.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	cut := f.Cut
	if cut == 0 {
		info, err := source.Stat()
		if err != nil {
			return err
		}
		cut = info.Size()
	}
	target, err := volume.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, io.MultiReader(io.NewSectionReader(source, 0, f.head), io.NewSectionReader(source, f.skip, cut-f.skip)))
	return errors.Join(err, target.Close())
}

func copyPlain(from, to string) error {
	source, err := volume.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := volume.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// ReplayFile is what of a file is applied: all up to cut (0: to its end), without what lies
// between head, behind the events that describe the file, and skip (0: nothing).
type ReplayFile struct {
	Dir, Name       string
	head, skip, Cut int64
}

// Place is where something of a file is in what is handed to the server.
func (f ReplayFile) Place(offset int64) int64 {
	if f.skip == 0 {
		return offset
	}
	return offset - (f.skip - f.head)
}
