package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"kurabe"
	"kurabe/internal/volume"
)

// Read returns whole lines of a file, at most lines of them: from marker on ("0"
// is the beginning), or the last ones when marker is "".
func (s *Source) Read(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName, name, marker string, lines int) (kurabe.LogPortion, error) {
	from, err := parseMarker(marker)
	if err != nil {
		return kurabe.LogPortion{}, err
	}
	file, err := s.open(ctx, id, engine, name)
	if err != nil {
		return kurabe.LogPortion{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return kurabe.LogPortion{}, fmt.Errorf("read log: %w", err)
	}
	size, inode := info.Size(), inodeOf(info)
	start := from.offset
	switch {
	case marker == "":
		start = max(size-maxPortion, 0)
	case from.inode != 0 && from.inode != inode || start > size:
		start = 0 // the file was rotated: go on with what has its name now
	}
	data := make([]byte, min(size-start, maxPortion))
	n, err := io.ReadFull(io.NewSectionReader(file, start, int64(len(data))), data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return kurabe.LogPortion{}, fmt.Errorf("read log: %w", err)
	}
	w := window{data: data[:n], atStart: start == 0, atEnd: start+int64(n) >= size, quiet: s.now().Sub(info.ModTime()) >= settled}
	var cut, end int
	var more bool
	if marker == "" {
		cut, end = w.last(lines)
	} else {
		end, more = w.first(lines)
	}
	return kurabe.LogPortion{Data: string(w.data[cut:end]), Marker: position{inode, start + int64(end)}.String(), More: more}, nil
}

// open opens a file that the listing has under that RDS name.
func (s *Source) open(ctx context.Context, id kurabe.InstanceID, engine kurabe.EngineName, name string) (*os.File, error) {
	local := ""
	err := s.each(ctx, id, engine, func(at, known string, _ fs.FileInfo) bool {
		if known == name {
			local = at
		}
		return local == ""
	})
	if err != nil {
		return nil, err
	}
	missing := kurabe.Errorf(kurabe.CodeLogFileNotFound, "DBLog File: %s, is not found on the DB instance", name)
	if local == "" {
		return nil, missing
	}
	dir, err := s.dir(id)
	if err != nil {
		return nil, err
	}
	// A link that took the file's place since the listing is refused, and a pipe
	// does not make us wait for its writer.
	file, err := volume.Open(filepath.Join(dir, local))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, volume.ErrLink) || errors.Is(err, volume.ErrNotFile) || errors.Is(err, volume.ErrSecondName) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return file, nil
}

func inodeOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

// settled is how long a last line without an end must have stayed so to count as
// whole. Engines write a line with one call; a younger one may be half there.
const settled = 2 * time.Second
