//go:build integration

package mariadb

import (
	"fmt"
	"testing"
	"time"

	"kurabe/internal/engine/mariadb/guard"
	"kurabe/internal/engine/mariadb/replica"
)

// TestEaseStop: a server that is about to stop has few pages to write, while others write, and
// goes on as before if it does not stop.
func TestEaseStop(t *testing.T) {
	p := newPair(t)
	p.writer.MustQuery(t, "CREATE TABLE large (id bigint AUTO_INCREMENT PRIMARY KEY, text char(200) NOT NULL)")
	pages := func() (n int64) {
		err := guard.With(t.Context(), p.writer.Instance(), func(a *guard.Session) (err error) {
			n, err = replica.Unwritten(t.Context(), a)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// The server writes pages out by itself, and on a busy machine faster than it gets new ones.
	before := int64(0)
	for try := 0; before <= replica.EasyPages; try++ {
		if try == 10 {
			t.Fatalf("%d pages are unwritten: nothing is tried", before)
		}
		p.writer.MustQuery(t, "INSERT INTO large (text) SELECT repeat('x', 200) FROM seq_1_to_100000")
		before = pages()
	}
	done := make(chan error, 1)
	go func() { done <- p.writer.Driver.EaseStop(t.Context(), p.writer.Instance()) }()
	began := time.Now()
	for n := 0; ; n++ {
		p.writer.MustQuery(t, fmt.Sprintf("INSERT INTO large (text) VALUES ('meanwhile %d')", n))
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if after := pages(); after > replica.EasyPages {
				t.Errorf("%d pages were unwritten, and %d are", before, after)
			}
			t.Logf("%d pages, %v, %d commits meanwhile", before, time.Since(began).Round(time.Millisecond), n)
			return
		default:
		}
	}
}
