//go:build fault

package fault

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"golang.org/x/sys/unix"

	"kurabe/internal/harness"
)

// refuseTime is how soon a service says that it cannot start.
const refuseTime = 10 * time.Second

// refuses demands that the service does not start and says why.
func refuses(t *testing.T, s *harness.Service, words ...string) {
	t.Helper()
	mark := s.Log.Mark()
	s.Launch(t)
	err := s.WaitEnd(t, refuseTime)
	said := strings.TrimSpace(s.Log.Since(mark))
	last := said[strings.LastIndexByte(said, '\n')+1:]
	if err == nil {
		t.Errorf("it ended as if all were well: %s", said)
	}
	for _, w := range words {
		if !strings.Contains(last, w) {
			t.Errorf("its last line lacks %q: %s", w, last)
		}
	}
	if strings.Contains(said, "panic") || strings.Contains(said, "goroutine ") {
		t.Errorf("it broke down: %s", said)
	}
	t.Log(last)
}

// survivor is an instance with a session and a ledger that must not notice.
type survivor struct {
	i       *harness.Instance
	ledger  *harness.Ledger
	session harness.Session
}

func survive(t *testing.T, s *harness.Service) *survivor {
	t.Helper()
	i := s.MustCreate(t, harness.Request("survivor", "postgres"))
	v := &survivor{i: i, ledger: harness.NewLedger(t, i), session: i.Open(t)}
	v.ledger.Start(t)
	return v
}

func (v *survivor) check(t *testing.T) {
	t.Helper()
	if _, err := v.session.Rows(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("the session is gone: %v", err)
	}
	v.ledger.WaitMore(t, 3)
	if errs, newest := v.ledger.Errors(); errs > 0 {
		t.Errorf("%d errors, the newest: %v", errs, newest)
	}
}

func (v *survivor) end(t *testing.T) {
	t.Helper()
	v.i.WaitStatus(t, "available")
	v.check(t)
	v.ledger.Stop()
	v.ledger.Verify(t)
}

func TestDamagedState(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	v := survive(t, s)
	cases := []struct {
		name, pattern, words string
		damage               func(data []byte) []byte
	}{
		{"flipped bytes in the database", "etcd/member/snap/db", "damaged", func(d []byte) []byte {
			for n := 0; n < len(d); n += 97 {
				d[n] ^= 0x5a
			}
			return d
		}},
		{"flipped bytes in the log", "etcd/member/wal/*.wal", "damaged", func(d []byte) []byte {
			for n := 4096; n < 8192; n++ {
				d[n] ^= 0x5a
			}
			return d
		}},
		{"a database cut off", "etcd/member/snap/db", "damaged", func(d []byte) []byte { return d[:16<<10] }},
		{"no host file content", "host.json", "host.json", func([]byte) []byte { return []byte("{") }},
		{"credentials of another format", "credentials", "credentials", func([]byte) []byte { return []byte("nonsense\n") }},
		{"half an assignment", "assignments/*.json", "assignment", func(d []byte) []byte { d = bytes.TrimSpace(d); return d[:len(d)/2] }}, // it ends with line ends
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s.Kill(t)
			files, _ := filepath.Glob(filepath.Join(s.Data, c.pattern)) // the pattern is well formed
			if len(files) == 0 {
				t.Fatal("no such file")
			}
			whole, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(files[0])
			if err != nil {
				t.Fatal(err)
			}
			damaged := c.damage(append([]byte(nil), whole...))
			write(t, files[0], damaged, info.Mode())
			refuses(t, s, c.words)
			v.check(t)
			if now, err := os.ReadFile(files[0]); err != nil || string(now) != string(damaged) {
				t.Errorf("the damaged file was changed: %v", err)
			}
			write(t, files[0], whole, info.Mode())
			s.Start(t)
		})
	}
	v.end(t)
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

func TestSecondServerOnOneFolder(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	v := survive(t, s)
	second := harness.New(t, harness.Options{Data: s.Data})
	refuses(t, second, "another kurabe server", fmt.Sprint(s.PID()))
	v.end(t)
	// The cleanup of the second service must find nothing to do.
	s.Kill(t)
}

func TestUnusableFolder(t *testing.T) {
	file := filepath.Join(harness.Folder(t, false), "file")
	write(t, file, nil, 0o600)
	refuses(t, harness.New(t, harness.Options{Data: file}), "data folder", file)
	if !harness.Root() {
		closed := filepath.Join(harness.Folder(t, false), "closed")
		if err := os.Mkdir(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		refuses(t, harness.New(t, harness.Options{Data: filepath.Join(closed, "data")}), "permission denied")
		return
	}
	needRoot(t)
	dir := filepath.Join(harness.Folder(t, false), "read-only")
	mount(t, dir, "1m", unix.MS_RDONLY)
	refuses(t, harness.New(t, harness.Options{Data: filepath.Join(dir, "data")}), "read-only file system")
	refuses(t, harness.New(t, harness.Options{Data: dir}), "read-only file system")
}

// mount mounts a file system in memory; it goes with the test.
func mount(t *testing.T, dir, size string, flags uintptr) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, "mode=0755,size="+size); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// fill takes all the space of a file system and returns how to free it.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 512; size /= 2 {
		block := make([]byte, size)
		for {
			if _, err := f.Write(block); err != nil {
				break
			}
		}
	}
	return func() { os.Remove(path) }
}

func TestFullDiskOfTheState(t *testing.T) {
	needRoot(t)
	s := harness.New(t, harness.Options{})
	mount(t, filepath.Join(s.Data, "etcd"), "160m", 0)
	s.Start(t)
	v := survive(t, s)
	c := hire(t, s, "before")
	harness.Wait(t, settleTime, "some groups", func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.acked) < 20 {
			return fmt.Sprint(len(c.acked))
		}
		return ""
	})
	free := fill(t, filepath.Join(s.Data, "etcd"))
	mark := s.Log.Mark()
	// Writes go on until the store needs another block of its log.
	big := strings.Repeat("x", 200)
	harness.Wait(t, 2*time.Minute, "the service notices", func() string {
		if !s.Running() {
			return ""
		}
		for range 50 {
			if _, err := s.ModifyDBParameterGroup(t.Context(), &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String("no-such-group")}); err == nil {
				break
			}
			_, err := s.AddTagsToResource(t.Context(), tags(v.i, big))
			if err != nil {
				return err.Error()
			}
		}
		return "it takes writes"
	})
	c.stop()
	said := s.Log.Since(mark)
	if err := s.WaitEnd(t, refuseTime); err == nil || !strings.Contains(said, "no space left on device") {
		t.Errorf("%v: %s", err, said[max(0, len(said)-500):])
	}
	v.check(t)
	refuses(t, s, "disk is full")
	v.check(t)
	free()
	s.Start(t)
	c.verify(t)
	v.end(t)
}
