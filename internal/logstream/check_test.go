package logstream

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kurabe/internal/blob"
)

// TestCheck: a piece whose bytes are others, or that is gone, is found by a check, is told of
// with the moment before it, and nothing claims to reach over it, also after a restart.
func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(context.Context, blob.Store, string){
		"other bytes": func(ctx context.Context, repo blob.Store, name string) {
			_ = repo.Delete(ctx, name)
			_ = repo.Put(ctx, name, bytes.NewReader(bytes.Repeat([]byte{7}, 2500)))
		},
		"gone": func(ctx context.Context, repo blob.Store, name string) { _ = repo.Delete(ctx, name) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, b := context.Background(), newBed(t, quickDir(t), blob.NewMemory())
				t.Cleanup(b.stopAll)
				b.start()
				time.Sleep(1500 * time.Millisecond)
				takenAt, from := b.server.snapshot()
				b.server.write(2500)
				time.Sleep(2 * time.Minute)
				b.server.rotate()
				b.server.write(2500)
				time.Sleep(2 * time.Minute)
				end := b.log().Last().At
				if r, err := b.store.Check(ctx, db); err != nil || len(r.Problems) > 0 || !strings.Contains(r.Summary, "with 5000 bytes") {
					t.Fatalf("of a log that is whole: %+v, %v", r, err)
				}
				b.want(takenAt, from, end)
				for info := range b.repo.List(ctx, "") {
					if strings.HasSuffix(info.Name, ".marks") || !strings.Contains(info.Name, fileName(1)) {
						continue
					}
					spoil(ctx, b.repo, info.Name)
				}
				r, err := b.store.Check(ctx, db)
				if err != nil || len(r.Problems) == 0 || !strings.Contains(r.Problems[0].Text, "missing or damaged") ||
					r.Problems[0].From.Before(takenAt) || r.Problems[0].From.After(end) {
					t.Fatalf("of a log with a damaged piece: %+v, %v", r, err)
				}
				wanted := func() {
					t.Helper()
					b.refuse(takenAt, from, end)
					b.want(takenAt, from, r.Problems[0].From)
					if r, err := b.store.Check(ctx, db); err != nil || len(r.Problems) > 0 {
						t.Errorf("once more: %+v, %v", r, err)
					}
				}
				wanted()
				b.stop()
				b.start()
				time.Sleep(2 * surveyOther)
				wanted()
			})
		})
	}
}
