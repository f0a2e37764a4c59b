package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/conf"
	"kurabe/internal/volume"
)

// streamFilesMax bounds what is open at a time: the tool has a file for each of its
// threads, and the log.
const streamFilesMax = 64

// streamFiles writes a stream into a folder of ours, into which nobody else can put a
// link.
type streamFiles struct {
	ctx    context.Context
	root   *volume.Root
	open   map[string]*volume.Trickle
	pace   *volume.Pace
	report func(done int64)
	done   int64
}

func NewStreamFiles(ctx context.Context, dir string, r engine.CopyRequest, total int64) (*streamFiles, error) {
	root, err := volume.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &streamFiles{
		ctx: ctx, root: root, open: map[string]*volume.Trickle{}, pace: volume.NewPace(r.BytesPerSecondMax),
		report: func(done int64) { r.Report(min(done, total), total) },
	}, nil
}

// Close ends what a stream left open.
func (s *streamFiles) Close() error {
	var err error
	for _, f := range s.open {
		err = errors.Join(err, f.Close())
	}
	return errors.Join(err, s.root.Close())
}

// write implements streamSink. Only InnoDB's files are paced: they are what is large,
// and all others come while the server holds back commits.
func (s *streamFiles) write(name string, at int64, part []byte) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	f, err := s.file(name)
	if err != nil {
		return err
	}
	if conf.IsInnoDBFile(name) {
		if err := s.pace.Wait(s.ctx, int64(len(part))); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(part, at); err != nil {
		return err
	}
	s.done += int64(len(part))
	s.report(s.done)
	return nil
}

func (s *streamFiles) file(name string) (*volume.Trickle, error) {
	if f := s.open[name]; f != nil {
		return f, nil
	}
	if len(s.open) >= streamFilesMax {
		return nil, fmt.Errorf("%w: more than %d files at a time", errStream, streamFilesMax)
	}
	if dir := path.Dir(name); dir != "." {
		if err := s.root.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	f, err := s.root.Create(name)
	if err != nil {
		return nil, err
	}
	s.open[name] = &volume.Trickle{File: f}
	return s.open[name], nil
}

// end implements streamSink. An empty file has an end only.
func (s *streamFiles) end(name string) error {
	f, err := s.file(name)
	if err != nil {
		return err
	}
	delete(s.open, name)
	return f.Close()
}

// streaming reads a stream in the background.
type streaming struct {
	Pipe *io.PipeWriter
	done chan error
}

// StartStreaming returns where the tool's output goes.
func StartStreaming(files *streamFiles) *streaming {
	in, out := io.Pipe()
	s := &streaming{Pipe: out, done: make(chan error, 1)}
	go func() {
		err := readStream(in, files)
		in.CloseWithError(err) // whatever else is written fails, and the tool ends
		s.done <- err
	}()
	return s
}

// End says that nothing more comes, and waits for what did.
func (s *streaming) End() error {
	s.Pipe.Close() // never fails
	return <-s.done
}
