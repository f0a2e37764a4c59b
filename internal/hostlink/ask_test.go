package hostlink

import (
	"testing"

	"kurabe"
	"kurabe/internal/hostread"
)

// An answer that came before its stream ended is not lost.
func TestAnswerBeforeTheEnd(t *testing.T) {
	for range 2000 {
		st := &stream{make(chan hostread.Frame), make(chan struct{})}
		s := &Server{asked: map[string]asked{}, streams: map[kurabe.HostID][]*stream{"h1": {st}}}
		go func() {
			q := <-st.questions
			s.mu.Lock()
			s.asked[q.ID].back <- hostread.Frame{ID: q.ID}
			s.mu.Unlock()
			close(st.ended)
		}()
		if _, err := s.ask(t.Context(), hostread.Frame{Host: "h1"}); err != nil {
			t.Fatal(err)
		}
	}
}
