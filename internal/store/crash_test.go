package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/harness"
	"kurabe/internal/store"
)

// crashDir in the environment makes this test binary a writer over a node in
// that folder, to be killed.
const crashDir = "KURABE_TEST_CRASH_DIR"

// crashRounds is how often the writer is killed.
const crashRounds = 5

func TestMain(m *testing.M) {
	harness.EtcdMain()
	if dir := os.Getenv(crashDir); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// Every transaction that was acknowledged before kill -9 is whole afterwards.
func TestKilledProcessLosesNothing(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string]bool{}
	for range crashRounds {
		killWriter(t, dir, acknowledged)
		n := startNode(t, dir)
		kv := store.Etcd(n.Client())
		if err := store.Open(context.Background(), kv); err != nil {
			t.Fatal(err)
		}
		entries, _, err := kv.List(context.Background(), store.Root)
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		for _, e := range entries {
			have[e.Key] = true
		}
		for id := range acknowledged {
			for _, key := range []string{"spec/instance/" + id, "name/instance/name-" + id} {
				if !have[store.Root+key] {
					t.Errorf("acknowledged %s is gone", key)
				}
			}
		}
		for key := range have { // all or nothing, acknowledged or not
			if id, ok := strings.CutPrefix(key, store.Root+"spec/instance/"); ok && !have[store.Root+"name/instance/name-"+id] {
				t.Errorf("half of %s is there", id)
			}
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d acknowledged transactions in %d rounds", len(acknowledged), crashRounds)
	if len(acknowledged) < 10*crashRounds {
		t.Errorf("only %d acknowledged transactions: the test shows nothing", len(acknowledged))
	}
}

// killWriter starts a writer, kills it at a random moment and notes what it
// acknowledged.
func killWriter(t *testing.T, dir string, acknowledged map[string]bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killAfter := 20 + rand.IntN(300)
	timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if len(lines.Text()) == len(kurabe.NewInstanceID()) { // whole lines only
			acknowledged[lines.Text()] = true
		}
		if n == killAfter {
			cmd.Process.Kill() // the scanner goes on to what was said before
		}
	}
	cmd.Wait() // killed: always an error
}

// writeUntilKilled creates instances and prints each id once it is committed.
func writeUntilKilled(dir string) {
	t := &testing.T{}
	kv := store.Etcd(startNode(t, dir).Client())
	if err := store.Open(context.Background(), kv); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for range 8 {
		go func() {
			for {
				s := kurabe.InstanceSpec{ID: kurabe.NewInstanceID()}
				s.Name = "name-" + string(s.ID)
				if _, err := store.NewChange().CreateInstance(s).Commit(context.Background(), kv); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Println(s.ID)
			}
		}()
	}
	time.Sleep(time.Minute) // the parent kills us long before
	os.Exit(1)
}
