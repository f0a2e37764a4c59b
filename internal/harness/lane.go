package harness

import (
	"container/heap"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// laneMost bounds the frames that are under way: 12 MiB of full ones, more than two
// connections have in flight at half a second. Whatever comes then is lost, as in any queue.
const (
	laneMost   = 8192
	frameBytes = 64 << 10 // of the largest that is read
)

// lane carries frames in one direction.
type lane struct {
	from io.Reader
	to   io.Writer
	more chan struct{} // capacity 1: the first that is due is another one

	mu     sync.Mutex // guards the rest
	way    Way
	queue  frames
	serial uint64
	ended  bool
}

// frame is one that is under way.
type frame struct {
	due    time.Time
	serial uint64 // of those that are due at once the first goes first
	bytes  []byte
}

// frames is a heap, the next one first.
type frames []frame

func (f frames) Len() int      { return len(f) }
func (f frames) Swap(a, b int) { f[a], f[b] = f[b], f[a] }
func (f frames) Less(a, b int) bool {
	return f[a].due.Before(f[b].due) || f[a].due.Equal(f[b].due) && f[a].serial < f[b].serial
}
func (f *frames) Push(x any) { *f = append(*f, x.(frame)) }
func (f *frames) Pop() any {
	old := *f
	last := old[len(old)-1]
	old[len(old)-1] = frame{}
	*f = old[:len(old)-1]
	return last
}

func newLane(from io.Reader, to io.Writer) *lane {
	return &lane{from: from, to: to, more: make(chan struct{}, 1)}
}

func (l *lane) set(w Way) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.way = w
}

// read takes frames in until its end is closed.
func (l *lane) read() {
	buffer := make([]byte, frameBytes)
	for {
		n, err := l.from.Read(buffer)
		if err != nil {
			if errors.Is(err, os.ErrClosed) || errors.Is(err, io.EOF) {
				break
			}
			continue // a device that is down has nothing
		}
		if l.take(time.Now(), buffer[:n]) {
			_, _ = l.to.Write(buffer[:n]) // a device that is down takes nothing
		}
	}
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.poke()
}

// take decides about a frame: it is put into the queue, twice perhaps, or lost, or goes now
// because nothing is before it.
func (l *lane) take(now time.Time, bytes []byte) (goes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.way == (Way{}) && len(l.queue) == 0 {
		return true
	}
	if rand.Float64() < l.way.Lost {
		return false
	}
	copies := 1
	if rand.Float64() < l.way.Twice {
		copies = 2
	}
	for range copies {
		if len(l.queue) >= laneMost {
			break
		}
		due := now.Add(l.way.Delay)
		if l.way.Jitter > 0 {
			due = due.Add(rand.N(l.way.Jitter))
		}
		l.serial++
		heap.Push(&l.queue, frame{due, l.serial, append([]byte(nil), bytes...)})
	}
	l.poke()
	return false
}

func (l *lane) poke() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// write lets frames out when they are due, until read has ended.
func (l *lane) write() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		out, wait, ended := l.due(time.Now())
		if ended {
			return
		}
		for _, f := range out {
			_, _ = l.to.Write(f.bytes) // as in read
		}
		if len(out) > 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-l.more:
		}
	}
}

// laneIdle is how long nobody looks at a queue that is empty, unless poked.
const laneIdle = time.Hour

// due takes out what is, and says how long the next one takes.
func (l *lane) due(now time.Time) (out []frame, wait time.Duration, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 && !l.queue[0].due.After(now) {
		out = append(out, heap.Pop(&l.queue).(frame))
	}
	wait = laneIdle
	if len(l.queue) > 0 {
		wait = l.queue[0].due.Sub(now)
	}
	return out, wait, l.ended
}
