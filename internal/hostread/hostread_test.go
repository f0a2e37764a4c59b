package hostread

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"kurabe"
)

var (
	hang  = Kind[string, string]{"hang", Logs}
	echo  = Kind[string, string]{"echo", Failover}
	pages = Kind[int, page]{"pages", Query}
)

// page is the chunk at a cursor.
type page struct{ At, Next int }

// over carries frames to handlers of another host, as a link does.
func over(h *Handlers) Hosts {
	return Hosts{Here: NewHandlers("here"), Far: func(ctx context.Context, q Frame) (Frame, error) {
		q.ID = time.Now().String()
		back := make(chan Frame, 1)
		h.Take(ctx, q, func(_ context.Context, a Frame) { back <- a })
		select {
		case a := <-back:
			return a, nil
		case <-ctx.Done():
			return Frame{}, ctx.Err()
		}
	}}
}

// hanging are handlers, one of which waits for its end; it tells when it begins and when it ends.
func hanging(t *testing.T, heeds bool) (h *Handlers, began, ended chan struct{}) {
	h, began, ended = NewHandlers("h1"), make(chan struct{}, 100), make(chan struct{}, 100)
	leave := make(chan struct{})
	t.Cleanup(func() { close(leave) })
	Handle(h, hang, func(ctx context.Context, q string) (string, error) {
		began <- struct{}{}
		done := ctx.Done()
		if !heeds {
			done = nil
		}
		select {
		case <-done:
		case <-leave:
		}
		ended <- struct{}{}
		return "", ctx.Err()
	})
	Handle(h, echo, func(_ context.Context, q string) (string, error) { return q, nil })
	return h, began, ended
}

func wait(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal(what)
	}
}

// The question for which there is no slot is answered at once, and one of another class as ever.
func TestBusyAtOnce(t *testing.T) {
	for name, hosts := range map[string]func(*Handlers) Hosts{"here": func(h *Handlers) Hosts { return Hosts{Here: h} }, "far": over} {
		t.Run(name, func(t *testing.T) {
			h, began, _ := hanging(t, true)
			asker := hosts(h)
			for range slots[Logs] {
				go Ask(t.Context(), asker, "h1", hang, "") // ends with the test
				wait(t, "a question is not answered", began)
			}
			if _, err := Ask(t.Context(), asker, "h1", hang, ""); kurabe.CodeOf(err) != kurabe.CodeThrottled {
				t.Errorf("one too many: %v", err)
			}
			if a, err := Ask(t.Context(), asker, "h1", echo, "hello"); err != nil || a != "hello" {
				t.Errorf("another class: %q, %v", a, err)
			}
		})
	}
}

// Who goes away gives the slot back at once, also when the handler goes on; of those there are
// not more than a number.
func TestCancel(t *testing.T) {
	for name, heeds := range map[string]bool{"it heeds": true, "it never ends": false} {
		t.Run(name, func(t *testing.T) {
			h, began, ended := hanging(t, heeds)
			asker := over(h)
			for range slots[Logs] {
				ctx, cancel := context.WithCancel(t.Context())
				back := make(chan error)
				go func() { _, err := Ask(ctx, asker, "h1", hang, ""); back <- err }()
				wait(t, "it does not begin", began)
				cancel()
				if err := <-back; !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if heeds {
					wait(t, "the handler is not stopped", ended)
				}
			}
			for end := time.Now().Add(time.Minute); len(h.slots[Logs]) > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d slots are taken", len(h.slots[Logs]))
				}
			}
			go Ask(t.Context(), asker, "h1", hang, "") // ends with the test
			wait(t, "there is no slot", began)
		})
	}
	h, began, _ := hanging(t, false)
	gone, cancel := context.WithCancel(t.Context())
	for range cap(h.runs[Logs]) {
		ctx, cancel := context.WithCancel(gone)
		go Ask(ctx, Hosts{Here: h}, "h1", hang, "")
		wait(t, "it does not begin", began)
		cancel()
		for end := time.Now().Add(time.Minute); len(h.slots[Logs]) > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a slot is taken")
			}
		}
	}
	cancel()
	if _, err := Ask(t.Context(), Hosts{Here: h}, "h1", hang, ""); kurabe.CodeOf(err) != kurabe.CodeThrottled {
		t.Errorf("a handler too many that never ends: %v", err)
	}
}

// A cancelling frame ends the handler; nothing is replied.
func TestCancelFrame(t *testing.T) {
	h, began, ended := hanging(t, true)
	reply := func(context.Context, Frame) { t.Error("a cancelled question is answered") }
	h.Take(t.Context(), Frame{ID: "1", Kind: "hang", Body: json.RawMessage(`""`)}, reply)
	wait(t, "it does not begin", began)
	h.Take(t.Context(), Frame{ID: "2", Cancel: true}, reply)
	h.Take(t.Context(), Frame{ID: "1", Cancel: true}, reply)
	wait(t, "the handler is not stopped", ended)
}

// A stream goes on from its cursor after its host was not reached, and has each chunk once.
func TestStreamResumes(t *testing.T) {
	h := NewHandlers("h1")
	Handle(h, pages, func(_ context.Context, at int) (page, error) { return page{at, at + 1}, nil })
	asker := over(h)
	there, asked := asker.Far, 0
	asker.Far = func(ctx context.Context, f Frame) (Frame, error) {
		if asked++; asked%2 == 0 { // the chunk was read, and its answer lost
			_, _ = there(ctx, f)
			return Frame{}, errors.New("the link is lost")
		}
		return there(ctx, f)
	}
	var got []int
	for p, err := range Stream(t.Context(), asker, "h1", pages, 0, func(q *int, p page) bool { *q = p.Next; return p.Next < 5 }) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.At)
	}
	if !reflect.DeepEqual(got, []int{0, 1, 2, 3, 4}) {
		t.Errorf("%v", got)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for _, err := range Stream(gone, asker, "h1", pages, 0, func(*int, page) bool { return true }) {
		if n++; err == nil || n > 1 {
			t.Fatalf("chunk %d of a cancelled stream: %v", n, err)
		}
	}
}

// Whatever comes as a frame is answered, and an answer keeps to what was asked.
func FuzzFrame(f *testing.F) {
	f.Add([]byte(`{"ID":"a","Kind":"echo","Body":"\"hello\""}`))
	f.Add([]byte(`{"ID":"a","Kind":"other","Body":null}`))
	f.Add([]byte(`{"ID":"a","Host":"h","Error":{"Code":"throttled","Message":"m"},"Cancel":true}`))
	h := NewHandlers("h1")
	Handle(h, echo, func(_ context.Context, q string) (string, error) { return q, nil })
	f.Fuzz(func(t *testing.T, raw []byte) {
		var q Frame
		if json.Unmarshal(raw, &q) != nil {
			return
		}
		a := h.answer(t.Context(), q)
		encoded, err := json.Marshal(a)
		if err != nil || a.ID != q.ID || (a.Error == nil) == (a.Body == nil) {
			t.Fatalf("%s: %+v, %v", raw, a, err)
		}
		var again Frame
		if err := json.Unmarshal(encoded, &again); err != nil || again.ID != a.ID {
			t.Fatalf("%s: %v", encoded, err)
		}
	})
}
