package logstream

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/blob"
)

// childVar makes the test binary follow a growing log, in the folder that it names,
// until it is killed.
const childVar = "KURABE_TEST_LOGSTREAM_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVar); dir != "" {
		followUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// impatient is a clock by which each moment is a full second, nearly.
func impatient() time.Time { return time.Now().Truncate(time.Second).Add(998 * time.Millisecond) }

// childServer is one whose log is as long as the time is late, whoever asks.
func childServer(began time.Time) *server {
	s := newServer()
	const fileBytes = 64 << 10
	total := time.Since(began).Microseconds() / 4
	s.ends = nil
	for ; total >= fileBytes; total -= fileBytes {
		s.ends = append(s.ends, fileBytes)
	}
	s.ends = append(s.ends, total)
	return s
}

// childLog grows with the clock.
type childLog struct {
	*session
	began time.Time
}

func (c *childLog) Mark(ctx context.Context) (kurabe.LogMark, error) {
	at := time.Now()
	c.session.server = childServer(c.began)
	m, err := c.session.Mark(ctx)
	m.At, m.Until = at, time.Now()
	return m, err
}

// followUntilKilled says each newest mark that a report has claimed.
func followUntilKilled(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "began"))
	began := time.Time{}
	if err == nil {
		began, err = time.Parse(time.RFC3339Nano, string(text))
	}
	var store *Store
	if err == nil {
		store, err = crashStore(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	go func() { _ = store.Run(context.Background()) }()
	go func() {
		_ = store.Follow(context.Background(), db, db, func(context.Context) (Log, error) {
			return &childLog{&session{childServer(began)}, began}, nil
		})
	}()
	for last := (kurabe.LogMark{}); ; {
		if l, _ := store.Log(db); l.Last() != last {
			last = l.Last()
			fmt.Println(strings.TrimSpace(string(appendMark(nil, last))), "end")
		}
		time.Sleep(time.Millisecond)
	}
}

func crashStore(dir string) (*Store, error) {
	repo, err := blob.Init(context.Background(), filepath.Join(dir, "repository"), blob.Options{})
	if err != nil {
		return nil, err
	}
	return New(Config{Spool: filepath.Join(dir, "spool"), PieceBytes: 8 << 10, PieceAge: 40 * time.Millisecond, Now: impatient,
		Repository: func() (*blob.Repository, error) { return repo, nil }, Gone: func(err error) bool { return err == errGone }})
}

// TestKilled: a process that follows is killed again and again; all that it had ever
// claimed is there afterwards, in one run, and comes back byte for byte.
func TestKilled(t *testing.T) {
	dir := quickDir(t)
	began := time.Now()
	if err := os.WriteFile(filepath.Join(dir, "began"), []byte(began.Format(time.RFC3339Nano)), 0o600); err != nil {
		t.Fatal(err)
	}
	var claimed kurabe.LogMark
	claims := 0
	const rounds = 8
	for round := range rounds {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childVar+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		n := 0
		for lines.Scan() {
			text, whole := strings.CutSuffix(lines.Text(), " end")
			m, err := parseMark(text)
			if !whole || err != nil {
				continue // torn by the kill, or no mark yet
			}
			if claimed, n = m, n+1; n == 2 {
				timer := time.AfterFunc(time.Duration(round)*9*time.Millisecond, func() { _ = child.Process.Kill() })
				defer timer.Stop()
			}
		}
		claims += n
		if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != -1 {
			t.Fatalf("the child ended by itself: %v", err)
		}
	}
	store, err := crashStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, store: store, server: childServer(began)}
	l := b.log()
	if len(l.Runs) != 1 || l.Last().At.Before(claimed.At) || claims < rounds {
		t.Fatalf("%d claims up to %+v, then %+v", claims, claimed, l)
	}
	got := b.want(l.Runs[0].First.At, l.Runs[0].First.Position, claimed.At)
	t.Logf("%d kills, %d claims, %d bytes in %d files, %d of them in the spool", rounds, claims, got.Bytes, len(got.Files), l.SpoolBytes)
}
