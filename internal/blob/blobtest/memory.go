package blobtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"kurabe/internal/blob"
)

// Memory is a Store for tests. Nothing in it outlives the process.
type Memory struct {
	// Faults, when set, is asked before every call what shall go wrong. It is set
	// before the store is used, and called without a lock held.
	Faults func(op, name string) Fault

	mu      sync.Mutex // guards what follows
	objects map[string]memoryObject
	mark    []byte
}

type memoryObject struct {
	data     []byte // never changed
	modified time.Time
}

// Fault is what one call on a Memory suffers.
type Fault struct {
	Gone     bool          // there is nothing, not even a mark: another bucket answers
	Err      error         // the call fails with it and does nothing
	Delay    time.Duration // the call begins so much later
	Lose     bool          // Put, Delete: says nil and does nothing: what a broken store does
	LoseWord bool          // Put, Delete: is done, and fails as if the answer got lost
	Truncate int64         // Get: the connection breaks after so many bytes; 0 is never
	Flip     int64         // Get: the byte at this place is wrong; 0 is none
}

// NewMemory is an empty store.
func NewMemory() *Memory { return &Memory{objects: map[string]memoryObject{}} }

func (m *Memory) String() string { return "memory" }

func (m *Memory) fail(op, name string, kind, err error) error {
	return &blob.Error{Op: op, Name: name, Where: m.String(), Kind: kind, Err: err}
}

// begin lets a call suffer its fault.
func (m *Memory) begin(ctx context.Context, op, name string) (Fault, error) {
	var fault Fault
	if m.Faults != nil {
		fault = m.Faults(op, name)
	}
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return fault, m.fail(op, name, nil, context.Cause(ctx))
	}
	if fault.Err != nil {
		return fault, m.fail(op, name, blob.ErrBusy, fault.Err)
	}
	return fault, nil
}

// Put implements Store.
func (m *Memory) Put(ctx context.Context, name string, r io.Reader) error {
	if err := blob.CheckName(name); err != nil {
		return m.fail("put", name, nil, err)
	}
	fault, err := m.begin(ctx, "put", name)
	if err != nil {
		return err
	}
	src := &source{ctx: ctx, r: r}
	data, err := io.ReadAll(src)
	if err != nil {
		return m.fail("put", name, nil, src.failed())
	}
	if fault.Lose {
		return nil
	}
	m.mu.Lock()
	there, ok := m.objects[name]
	if !ok {
		m.objects[name] = memoryObject{data, time.Now()}
	}
	m.mu.Unlock()
	if ok && !bytes.Equal(there.data, data) {
		return m.fail("put", name, blob.ErrExists, nil)
	}
	return m.lostWord(fault, "put", name)
}

func (m *Memory) lostWord(fault Fault, op, name string) error {
	if fault.LoseWord {
		return m.fail(op, name, blob.ErrBusy, io.ErrUnexpectedEOF)
	}
	return nil
}

func (m *Memory) find(fault Fault, op, name string) (memoryObject, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object, ok := m.objects[name]
	if !ok || fault.Gone {
		return object, m.fail(op, name, blob.ErrNotFound, nil)
	}
	return object, nil
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	return m.read(ctx, "get", name, 0, -1)
}

// GetRange implements Store.
func (m *Memory) GetRange(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 || length < 0 || offset > 1<<62 || length > 1<<62 {
		return nil, m.fail("get", name, blob.ErrUnsupported, fmt.Errorf("range of %d bytes from %d", length, offset))
	}
	return m.read(ctx, "get", name, offset, length)
}

func (m *Memory) read(ctx context.Context, op, name string, offset, length int64) (io.ReadCloser, error) {
	if err := blob.CheckName(name); err != nil {
		return nil, m.fail(op, name, nil, err)
	}
	fault, err := m.begin(ctx, op, name)
	if err != nil {
		return nil, err
	}
	object, err := m.find(fault, op, name)
	if err != nil {
		return nil, err
	}
	data := object.data
	if flip := fault.Flip; flip > 0 && flip < int64(len(data)) {
		data = bytes.Clone(data)
		data[flip] ^= 1
	}
	data = data[min(offset, int64(len(data))):]
	if length >= 0 && length < int64(len(data)) {
		data = data[:length]
	}
	var r io.Reader = bytes.NewReader(data)
	if fault.Truncate > 0 && fault.Truncate < int64(len(data)) {
		broken := m.fail(op, name, blob.ErrBusy, io.ErrUnexpectedEOF)
		r = io.MultiReader(io.LimitReader(r, fault.Truncate), &source{ctx: ctx, err: broken})
	}
	return io.NopCloser(&source{ctx: ctx, r: r}), nil
}

// Stat implements Store.
func (m *Memory) Stat(ctx context.Context, name string) (blob.Info, error) {
	if err := blob.CheckName(name); err != nil {
		return blob.Info{}, m.fail("stat", name, nil, err)
	}
	fault, err := m.begin(ctx, "stat", name)
	if err != nil {
		return blob.Info{}, err
	}
	object, err := m.find(fault, "stat", name)
	return blob.Info{Name: name, SizeBytes: int64(len(object.data)), Modified: object.modified}, err
}

// List implements Store.
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if err := blob.CheckName(prefix + "x"); err != nil {
			yield(blob.Info{}, m.fail("list", prefix, nil, err))
			return
		}
		fault, err := m.begin(ctx, "list", prefix)
		if err != nil {
			yield(blob.Info{}, err)
		}
		if err != nil || fault.Gone {
			return
		}
		m.mu.Lock()
		objects := maps.Clone(m.objects)
		m.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if ctx.Err() != nil {
				yield(blob.Info{}, m.fail("list", prefix, nil, context.Cause(ctx)))
				return
			}
			object := objects[name]
			if strings.HasPrefix(name, prefix) && !yield(blob.Info{Name: name, SizeBytes: int64(len(object.data)), Modified: object.modified}, nil) {
				return
			}
		}
	}
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := blob.CheckName(name); err != nil {
		return m.fail("delete", name, nil, err)
	}
	fault, err := m.begin(ctx, "delete", name)
	if err != nil || fault.Lose {
		return err
	}
	m.mu.Lock()
	delete(m.objects, name)
	m.mu.Unlock()
	return m.lostWord(fault, "delete", name)
}

// Clean implements Store; there is never anything.
func (m *Memory) Clean(ctx context.Context, _ time.Duration) (int, error) {
	_, err := m.begin(ctx, "clean", "")
	return 0, err
}

// ReadMark implements blob.Place.
func (m *Memory) ReadMark(ctx context.Context) ([]byte, error) {
	fault, err := m.begin(ctx, "open", "")
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mark == nil || fault.Gone {
		return nil, m.fail("open", "", blob.ErrNoRepository, nil)
	}
	return m.mark, nil
}

// WriteMark implements blob.Place.
func (m *Memory) WriteMark(_ context.Context, mark []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mark == nil {
		m.mark = bytes.Clone(mark)
	}
	return nil
}

// Repository makes a Memory a repository, without layers over it: its objects are as they
// are put.
func Repository(ctx context.Context, m *Memory) (*blob.Repository, error) {
	repo, err := blob.InitAt(ctx, m, blob.Options{})
	if err == nil {
		repo.Store = m
	}
	return repo, err
}

// source reads until its context or it itself ends, and remembers its failure.
type source struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err == nil && s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

func (s *source) failed() error {
	if s.err == nil || s.err == io.EOF {
		return nil
	}
	return fmt.Errorf("read the content: %w", s.err)
}
