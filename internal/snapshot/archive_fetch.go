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
	"io/fs"
	"os"
	"slices"
	"sync/atomic"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/volume"
)

const (
	// fetchSyncBytes is how much of a file is written before it is synced: without
	// that gigabytes pile up, and a database beside waits for them at its next sync.
	fetchSyncBytes = 32 << 20
	// holeBytes is the smallest hole that is made in a file which had some.
	holeBytes = 64 << 10
)

// Fetch writes the data folder of an archived snapshot to dst, which must not exist.
// Every file is compared with its checksum; a DamagedError says that trying again is
// of no use. Of the options, Owner,
// BytesPerSecondMax and Progress count. Nothing is made durable and no final name is
// given: the caller does both, and removes dst after an error.
func (a *Archive) Fetch(ctx context.Context, id kurabe.SnapshotID, dst string, opts volume.TransferOptions) (Record, []volume.File, error) {
	r, files, err := a.fetch(ctx, id, dst, opts)
	if err != nil {
		return r, nil, fmt.Errorf("fetch snapshot %s from the repository of backups: %w", id, err)
	}
	return r, files, nil
}

func (a *Archive) fetch(ctx context.Context, id kurabe.SnapshotID, dst string, opts volume.TransferOptions) (Record, []volume.File, error) {
	store, err := a.repository()
	if err != nil {
		return Record{}, nil, err
	}
	r, state, err := findArchived(ctx, store, id)
	if err == nil && state != Complete {
		err = ErrNotArchived
	}
	if err != nil {
		return r, nil, err
	}
	files, l, err := archivedContent(ctx, store, r)
	if err == nil {
		f := &fetching{store: store, id: id, sums: sums(files), opts: opts, total: Size(files), pace: volume.NewPace(opts.BytesPerSecondMax)}
		err = f.run(ctx, dst, l)
	}
	return r, files, judge(id, err)
}

// archivedContent reads which files a snapshot has, and in which pack each is.
func archivedContent(ctx context.Context, store blob.Store, r Record) ([]volume.File, layout, error) {
	files, err := archivedList(ctx, store, r)
	if err != nil {
		return nil, layout{}, err
	}
	raw, err := readObject(ctx, store, objectOf(r.Snapshot, layoutName), listBytesMax)
	if err != nil {
		return nil, layout{}, err
	}
	l, err := parseLayout(raw, r.ListSum, files)
	switch {
	case errors.Is(err, errNewer):
		return nil, l, fmt.Errorf("%s: %w", layoutName, err)
	case err != nil:
		return nil, l, wrong("%s: %w", layoutName, err)
	}
	return files, l, checkSize(files, r.Facts.SizeBytes)
}

// checkSize demands that the files of a list are together as long as its record says: for that
// room was found, and a pack of a few KB can unpack to any length.
func checkSize(files []volume.File, recorded int64) error {
	left := recorded
	for _, f := range files { // a sum could run over
		if f.Size > left {
			return wrong("its files are longer than the %s of its record", kurabe.FormatBytes(recorded))
		}
		left -= f.Size
	}
	if left != 0 {
		return wrong("its files are shorter than the %s of its record", kurabe.FormatBytes(recorded))
	}
	return nil
}

// archivedList reads the list that a record names.
func archivedList(ctx context.Context, store blob.Store, r Record) ([]volume.File, error) {
	name := listName(r.ListSum)
	raw, err := readObject(ctx, store, objectOf(r.Snapshot, name), listBytesMax)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != r.ListSum {
		return nil, wrong("%s differs from the list that was written", name)
	}
	var files []volume.File
	if err := json.Unmarshal(raw, &files); err != nil {
		return nil, wrong("%s: %w", name, err)
	}
	return files, nil
}

// fetching is one Fetch under way.
type fetching struct {
	store blob.Store
	id    kurabe.SnapshotID
	sums  map[string]uint32
	opts  volume.TransferOptions
	pace  *volume.Pace
	root  *volume.Root // of the folder that is made: nothing is written outside
	total int64
	done  atomic.Int64
}

func (f *fetching) run(ctx context.Context, dst string, l layout) (err error) {
	if err := volume.Mkdir(dst, 0o700); err != nil {
		return err
	}
	if f.root, err = volume.OpenRoot(dst); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.root.Close()) }()
	if err := f.give("."); err != nil {
		return err
	}
	var dirs []member
	for _, m := range slices.Concat(l.Packs...) {
		if !m.Dir {
			continue
		}
		if err := errors.Join(f.root.Mkdir(m.Path, 0o700), f.give(m.Path)); err != nil {
			return err
		}
		dirs = append(dirs, m)
	}
	if err := eachPack(ctx, l, func(ctx context.Context, n int) error { return f.pack(ctx, n, l.Packs[n]) }); err != nil {
		return err
	}
	// Deepest first: the mode of a parent may forbid to enter.
	for _, m := range slices.Backward(dirs) {
		if err := f.root.Chmod(m.Path, fs.FileMode(m.Mode)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fetching) give(name string) error {
	if f.opts.Owner == nil {
		return nil
	}
	return f.root.Give(name, *f.opts.Owner)
}

// pack reads one pack to its end: only then has the repository checked all of it.
func (f *fetching) pack(ctx context.Context, n int, of pack) error {
	in, err := f.store.Get(ctx, objectOf(f.id, packName(n)))
	if err != nil {
		return err
	}
	defer in.Close()
	if err := f.unpack(ctx, in, of); err != nil {
		return fmt.Errorf("%s: %w", packName(n), err)
	}
	return nil
}

// unpack writes the files of a tar that must be exactly what the layout says, member
// for member: a link, another path, size, mode or count is refused before anything
// is made of it.
func (f *fetching) unpack(ctx context.Context, from io.Reader, of pack) error {
	r := &noted{r: from}
	in := tar.NewReader(r)
	buf := make([]byte, archiveReadBytes)
	for _, m := range of {
		h, err := in.Next()
		if err != nil {
			return fmt.Errorf("before %s: %w", m.Path, r.failed(err))
		}
		if want := m.header(); h.Name != want.Name || h.Typeflag != want.Typeflag || h.Size != want.Size || h.Mode != want.Mode || h.Linkname != "" {
			return wrong("it holds %.100q of type %q, mode %o, %d bytes where %q of type %q, mode %o, %d bytes should be",
				h.Name, h.Typeflag, h.Mode, h.Size, want.Name, want.Typeflag, want.Mode, want.Size)
		}
		if m.Dir {
			continue
		}
		if err := f.file(ctx, in, r, m, buf); err != nil {
			return fmt.Errorf("file %s: %w", m.Path, err)
		}
	}
	if h, err := in.Next(); err == nil {
		return wrong("%.100q comes after its last member", h.Name)
	} else if err != io.EOF {
		return r.failed(err)
	}
	if n, err := io.CopyN(io.Discard, r, 1); n > 0 {
		return wrong("it has data after its end")
	} else if err != io.EOF {
		return err
	}
	return nil
}

func unexpectedEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// file writes one file and compares it with its checksum; from is what in reads.
func (f *fetching) file(ctx context.Context, in io.Reader, from *noted, m member, buf []byte) (err error) {
	out, err := f.root.Create(m.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var sum uint32
	var at, synced int64
	for at < m.Size {
		part := buf[:min(m.Size-at, int64(len(buf)))]
		if err := f.pace.Wait(ctx, int64(len(part))); err != nil {
			return err
		}
		if _, err := io.ReadFull(in, part); err != nil {
			return from.failed(err)
		}
		sum = crc32.Update(sum, castagnoli, part)
		if err := writeAt(out, part, at, m.Sparse); err != nil {
			return err
		}
		at += int64(len(part))
		f.advance(int64(len(part)))
		if at-synced >= fetchSyncBytes {
			if err := out.Sync(); err != nil {
				return err
			}
			synced = at
		}
	}
	if sum != f.sums[m.Path] {
		return wrong("its content differs from the archive")
	}
	if err := out.Truncate(m.Size); err != nil {
		return err
	}
	// The owner first, as that clears bits of the mode.
	if f.opts.Owner != nil {
		if err := f.opts.Owner.Own(out); err != nil {
			return err
		}
	}
	return out.Chmod(fs.FileMode(m.Mode))
}

var zeros [holeBytes]byte

// writeAt writes a part, but for the zeros of a file that had holes.
func writeAt(out *os.File, part []byte, at int64, sparse bool) error {
	if !sparse {
		_, err := out.WriteAt(part, at)
		return err
	}
	for block := range slices.Chunk(part, holeBytes) {
		if !bytes.Equal(block, zeros[:len(block)]) {
			if _, err := out.WriteAt(block, at); err != nil {
				return err
			}
		}
		at += int64(len(block))
	}
	return nil
}

func (f *fetching) advance(n int64) {
	done := f.done.Add(n)
	if f.opts.Progress != nil {
		f.opts.Progress(min(done, f.total), f.total)
	}
}
