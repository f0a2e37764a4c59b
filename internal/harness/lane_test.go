package harness

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heard is what came out of a lane, and when.
type heard struct {
	mu    sync.Mutex // guards the rest
	words []string
	at    []time.Time
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.words, h.at = append(h.words, string(b)), append(h.at, time.Now())
	return len(b), nil
}

// TestLane: each frame arrives when it is due, in order unless there is jitter, and the lane ends
// with its end, whatever is under way.
func TestLane(t *testing.T) {
	const delay = 250 * time.Millisecond
	for _, c := range []struct {
		name       string
		way        Way
		most, want int // frames
		from, to   time.Duration
	}{
		{"near", Way{}, 3, 3, 0, 0},
		{"far", Way{Delay: delay}, 3, 3, delay, delay},
		{"jitter", Way{Delay: delay, Jitter: delay}, 100, 100, delay, 2 * delay},
		{"twice", Way{Twice: 1}, 3, 6, 0, 0},
		{"lost", Way{Delay: delay, Lost: 1}, 3, 0, 0, 0},
		{"more than it holds", Way{Delay: delay}, laneMost + 10, laneMost, delay, delay},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, end := io.Pipe()
				out := &heard{}
				l := newLane(in, out)
				var both sync.WaitGroup
				both.Go(l.read)
				both.Go(l.write)
				l.set(c.way)
				began := time.Now()
				for range c.most {
					if _, err := end.Write([]byte("word")); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second)
				synctest.Wait()
				out.mu.Lock()
				if len(out.words) != c.want {
					t.Errorf("%d frames arrived, want %d", len(out.words), c.want)
				}
				for _, at := range out.at {
					if took := at.Sub(began); took < c.from || took > c.to {
						t.Errorf("one took %v", took)
					}
				}
				out.mu.Unlock()
				l.set(Way{Delay: time.Hour})
				if _, err := end.Write([]byte("never")); err != nil {
					t.Fatal(err)
				}
				end.Close()
				both.Wait()
			})
		})
	}
}

// TestLaneIsNearAgain: what is sent after a distance has ended goes at once, and what is
// under way comes when it is due.
func TestLaneIsNearAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, end := io.Pipe()
		out := &heard{}
		l := newLane(in, out)
		var both sync.WaitGroup
		both.Go(l.read)
		both.Go(l.write)
		l.set(Way{Delay: time.Second})
		_, _ = end.Write([]byte("late"))
		synctest.Wait() // the lane has it, and not only its reader
		l.set(Way{})
		_, _ = end.Write([]byte("soon"))
		time.Sleep(2 * time.Second)
		_, _ = end.Write([]byte("at once"))
		synctest.Wait()
		out.mu.Lock()
		if got := bytes.Join([][]byte{[]byte(out.words[0]), []byte(out.words[1]), []byte(out.words[2])}, []byte(" ")); string(got) != "soon late at once" {
			t.Errorf("%s", got)
		}
		out.mu.Unlock()
		end.Close()
		both.Wait()
	})
}
