//go:build fault

package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

func itoa(n int) string { return strconv.Itoa(n) }

// watcher looks all the time whether a data folder has two servers.
type watcher struct {
	mu    sync.Mutex // guards found
	found []string
}

// lookEvery: a second server that the lock did not stop would live for long.
const lookEvery = 50 * time.Millisecond

func watch(t *testing.T, s *harness.Service) *watcher {
	w := &watcher{}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				w.look(s)
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
	return w
}

// lookTwice is between two looks: two servers would be there for longer.
const lookTwice = 300 * time.Millisecond

// look looks twice: one look is not one moment, and may see the end of one
// server and the start of the next. What is stopped does not count: a child of a
// PostgreSQL that is frozen before it has its title outlives it until it goes on. Children of
// one that was killed when it had just begun have none either, until they are cleared away.
func (w *watcher) look(s *harness.Service) {
	for _, id := range s.Homes() {
		first := slices.DeleteFunc(s.Servers(id), harness.Stopped)
		if len(first) < 2 {
			continue
		}
		<-time.After(lookTwice)
		if second := slices.DeleteFunc(s.Servers(id), harness.Stopped); slices.Equal(first, second) {
			w.mu.Lock()
			w.found = append(w.found, fmt.Sprintf("servers %v work in the data folder of %s", first, id))
			w.mu.Unlock()
		}
	}
}

func (w *watcher) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.found {
		t.Error(f)
	}
	w.found = nil
}

// noOrphans demands that folders, saved assignments, control groups and
// processes are exactly those of the instances that the API lists.
func noOrphans(t *testing.T, s *harness.Service) {
	t.Helper()
	var ids []string
	harness.Wait(t, settleTime, "the list of instances", func() string {
		out, err := s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
		if err != nil {
			return err.Error()
		}
		ids = nil
		for _, i := range out.DBInstances {
			ids = append(ids, aws.ToString(i.DbiResourceId))
		}
		slices.Sort(ids)
		return ""
	})
	harness.Wait(t, settleTime, "no orphans", func() string {
		for what, have := range map[string][]string{"folders": s.Homes(), "assignments": s.Assignments(), "control groups": s.Groups()} {
			slices.Sort(have)
			if what == "control groups" && !harness.Root() {
				continue
			}
			if !slices.Equal(have, ids) {
				return fmt.Sprintf("%s %v of instances %v", what, have, ids)
			}
		}
		return strings.Join(strays(s, ids), ", ")
	})
}

// strays are processes that work somewhere below the data folder and belong to
// no instance. Linux marks the folder of one that was removed as deleted.
func strays(s *harness.Service, ids []string) []string {
	known := map[int]bool{}
	for _, id := range ids {
		for _, pid := range s.Processes(id) {
			known[pid] = true
		}
	}
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, dir := range dirs {
		cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if err == nil && strings.HasPrefix(cwd, s.Data) && !known[pid] {
			found = append(found, fmt.Sprintf("process %d in %s", pid, cwd))
		}
	}
	return found
}
