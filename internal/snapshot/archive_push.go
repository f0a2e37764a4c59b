package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/volume"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Push brings a complete, sealed snapshot of the folder into the repository. Every
// file is compared with its checksum while it is read: one that rotted here is an
// error, and never archived. It may be cut off anywhere and repeated. progress, which
// may be nil, is told of the bytes of content done, of how many, from any goroutine.
func (a *Archive) Push(ctx context.Context, id kurabe.SnapshotID, progress func(done, total int64)) error {
	r, err := a.push(ctx, id, progress)
	if err != nil {
		return fmt.Errorf("archive snapshot %s: %w", id, err)
	}
	a.remember(id, entry{record: &r})
	return nil
}

func (a *Archive) push(ctx context.Context, id kurabe.SnapshotID, progress func(done, total int64)) (Record, error) {
	r, err := a.local.Open(id)
	if err != nil {
		return r, err
	}
	if !r.Sealed {
		return r, ErrNotSealed
	}
	store, err := a.repository()
	if err != nil {
		return r, err
	}
	there, state, err := findArchived(ctx, store, id)
	if err != nil {
		return r, err
	}
	if state == Complete {
		if there.ListSum != r.ListSum {
			return r, errors.New("the repository holds other files under its id")
		}
		return there, nil
	}
	files, err := a.local.Check(r)
	if err != nil {
		return r, err
	}
	p := &pushing{store: store, id: id, dir: a.local.Data(id), sums: sums(files), total: Size(files), progress: progress, pace: volume.NewPace(a.BytesPerSecondMax)}
	l, err := a.layoutOf(ctx, store, r, files)
	if err == nil {
		err = p.packs(ctx, l)
	}
	if err != nil {
		return r, err
	}
	return r, finishArchived(ctx, store, r, files)
}

// layoutOf is the layout that an earlier try began with, or a new one.
func (a *Archive) layoutOf(ctx context.Context, store blob.Store, r Record, files []volume.File) (layout, error) {
	raw, err := readObject(ctx, store, objectOf(r.Snapshot, layoutName), listBytesMax)
	if err == nil {
		if l, err := parseLayout(raw, r.ListSum, files); err == nil {
			return l, nil
		}
	} else if !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrDamaged) {
		return layout{}, err
	}
	// Packs without a layout, or with one of other files, are of no use to anybody.
	if err := removeObjects(ctx, store, r.Snapshot); err != nil {
		return layout{}, err
	}
	size := a.PackBytes
	if size <= 0 {
		size = packBytes
	}
	l, err := divide(a.local.Data(r.Snapshot), r.ListSum, files, size)
	if err != nil {
		return l, err
	}
	if raw, err = json.Marshal(l); err != nil {
		return l, err
	}
	return l, store.Put(ctx, objectOf(r.Snapshot, layoutName), bytes.NewReader(raw))
}

// finishArchived makes what is there count.
func finishArchived(ctx context.Context, store blob.Store, r Record, files []volume.File) error {
	raw, err := json.Marshal(files)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != r.ListSum {
		return errors.New("the list of its files has a format that this program does not write")
	}
	if err := store.Put(ctx, objectOf(r.Snapshot, listName(r.ListSum)), bytes.NewReader(raw)); err != nil {
		return err
	}
	if raw, err = json.MarshalIndent(r, "", "  "); err != nil {
		return err
	}
	return store.Put(ctx, objectOf(r.Snapshot, recordName), bytes.NewReader(append(raw, '\n')))
}

// pushing is one Push under way.
type pushing struct {
	store    blob.Store
	id       kurabe.SnapshotID
	dir      string
	sums     map[string]uint32
	pace     *volume.Pace
	progress func(done, total int64)
	total    int64
	done     atomic.Int64
}

func (p *pushing) advance(n int64) {
	done := p.done.Add(n)
	if p.progress != nil {
		p.progress(min(done, p.total), p.total)
	}
}

// packs puts those that are missing.
func (p *pushing) packs(ctx context.Context, l layout) error {
	have := map[string]bool{}
	for info, err := range p.store.List(ctx, objectOf(p.id, "pack-")) {
		if err != nil {
			return err
		}
		have[info.Name] = true
	}
	return eachPack(ctx, l, func(ctx context.Context, n int) error {
		if name := objectOf(p.id, packName(n)); !have[name] {
			return p.put(ctx, name, l.Packs[n])
		}
		p.advance(l.Packs[n].bytes())
		return nil
	})
}

// eachPack does something with each pack, some at a time, and ends at the first
// failure.
func eachPack(ctx context.Context, l layout, do func(ctx context.Context, n int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range packsAtOnce {
		wait.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= len(l.Packs) {
					return
				}
				if err := do(ctx, n); err != nil {
					cancel(err)
				}
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// put streams one pack into the store.
func (p *pushing) put(ctx context.Context, name string, of pack) error {
	out, in := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in.CloseWithError(p.write(ctx, in, of))
	}()
	err := p.store.Put(ctx, name, out)
	out.Close() // the store may have had enough: the writer must not wait
	<-ended
	return err
}

// write makes the tar of a pack. It depends on the members alone.
func (p *pushing) write(ctx context.Context, w io.Writer, of pack) error {
	root, err := volume.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	out := tar.NewWriter(w)
	buf := make([]byte, archiveReadBytes)
	for _, m := range of {
		if err := out.WriteHeader(m.header()); err != nil {
			return err
		}
		if m.Dir {
			continue
		}
		if err := p.file(ctx, out, root, m, buf); err != nil {
			return fmt.Errorf("file %s: %w", m.Path, err)
		}
	}
	return out.Close()
}

func (m member) header() *tar.Header {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: m.Path, Mode: int64(m.Mode), Size: m.Size, ModTime: time.Unix(0, 0)}
	if m.Dir {
		h.Typeflag, h.Name = tar.TypeDir, m.Path+"/"
	}
	return h
}

// file writes the content of one file and compares it with its checksum before the
// pack can end.
func (p *pushing) file(ctx context.Context, w io.Writer, root *volume.Root, m member, buf []byte) error {
	in, err := root.Open(m.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	var sum uint32
	for left := m.Size; left > 0; {
		part := buf[:min(left, int64(len(buf)))]
		if err := p.pace.Wait(ctx, int64(len(part))); err != nil {
			return err
		}
		if _, err := io.ReadFull(in, part); err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, part)
		if _, err := w.Write(part); err != nil {
			return err
		}
		left -= int64(len(part))
		p.advance(int64(len(part)))
	}
	if sum != p.sums[m.Path] {
		return fmt.Errorf("its content differs from what was written: the disk has damaged it")
	}
	return nil
}
