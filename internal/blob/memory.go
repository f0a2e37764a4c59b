package blob

import (
	"bytes"
	"context"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
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
	return &Error{Op: op, Name: name, Where: m.String(), Kind: kind, Err: err}
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
		return fault, m.fail(op, name, ErrBusy, fault.Err)
	}
	return fault, nil
}

// Put implements Store.
func (m *Memory) Put(ctx context.Context, name string, r io.Reader) error {
	if err := CheckName(name); err != nil {
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
		return taken(m, name)
	}
	return m.lostWord(fault, "put", name)
}

func (m *Memory) lostWord(fault Fault, op, name string) error {
	if fault.LoseWord {
		return m.fail(op, name, ErrBusy, io.ErrUnexpectedEOF)
	}
	return nil
}

func (m *Memory) find(op, name string) (memoryObject, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object, ok := m.objects[name]
	if !ok {
		return object, m.fail(op, name, ErrNotFound, nil)
	}
	return object, nil
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	return m.read(ctx, "get", name, 0, -1)
}

// GetRange implements Store.
func (m *Memory) GetRange(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := checkRange(offset, length); err != nil {
		return nil, m.fail("get", name, nil, err)
	}
	return m.read(ctx, "get", name, offset, length)
}

func (m *Memory) read(ctx context.Context, op, name string, offset, length int64) (io.ReadCloser, error) {
	if err := CheckName(name); err != nil {
		return nil, m.fail(op, name, nil, err)
	}
	fault, err := m.begin(ctx, op, name)
	if err != nil {
		return nil, err
	}
	object, err := m.find(op, name)
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
		broken := m.fail(op, name, ErrBusy, io.ErrUnexpectedEOF)
		r = io.MultiReader(io.LimitReader(r, fault.Truncate), &source{ctx: ctx, err: broken})
	}
	return io.NopCloser(&source{ctx: ctx, r: r}), nil
}

// Stat implements Store.
func (m *Memory) Stat(ctx context.Context, name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, m.fail("stat", name, nil, err)
	}
	if _, err := m.begin(ctx, "stat", name); err != nil {
		return Info{}, err
	}
	object, err := m.find("stat", name)
	return Info{name, int64(len(object.data)), object.modified}, err
}

// List implements Store.
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Info{}, m.fail("list", prefix, nil, err))
			return
		}
		if _, err := m.begin(ctx, "list", prefix); err != nil {
			yield(Info{}, err)
			return
		}
		m.mu.Lock()
		objects := maps.Clone(m.objects)
		m.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if ctx.Err() != nil {
				yield(Info{}, m.fail("list", prefix, nil, context.Cause(ctx)))
				return
			}
			object := objects[name]
			if strings.HasPrefix(name, prefix) && !yield(Info{name, int64(len(object.data)), object.modified}, nil) {
				return
			}
		}
	}
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
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

func (m *Memory) readMark(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mark == nil {
		return nil, m.fail("open", "", ErrNoRepository, nil)
	}
	return m.mark, nil
}

func (m *Memory) writeMark(_ context.Context, mark []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mark == nil {
		m.mark = bytes.Clone(mark)
	}
	return nil
}
