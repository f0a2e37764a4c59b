package account

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func etc(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, path string, o Options) *Book {
	t.Helper()
	if o.Etc == "" {
		o.Etc = t.TempDir()
	}
	b, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	b.busy = func(int) (bool, error) { return false, nil }
	return b
}

func take(t *testing.T, b *Book, name string) int {
	t.Helper()
	e, err := b.Take(name, false)
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}

func TestBookLastsAndGivesNoIDTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accounts.json")
	o := Options{Span: Span{700_000, 700_015}, Etc: t.TempDir()}
	b := open(t, path, o)
	seen := map[int]string{}
	for _, name := range strings.Split("abcdefghijklmnop", "") {
		id := take(t, b, name)
		if seen[id] != "" || !o.Span.holds(id) {
			t.Fatalf("%s has id %d, as %q has", name, id, seen[id])
		}
		seen[id] = name
	}
	if _, err := b.Take("one more", false); err == nil || !strings.Contains(err.Error(), "larger range") {
		t.Fatalf("a full range gave an id: %v", err)
	}
	again := open(t, path, o)
	for id, name := range seen {
		if got := take(t, again, name); got != id {
			t.Errorf("after a restart %s has id %d, and had %d", name, got, id)
		}
	}
	first := take(t, again, "c")
	if err := again.Release("c"); err != nil {
		t.Fatal(err)
	}
	if got := take(t, again, "new"); got != first {
		t.Errorf("the only free id is %d, got %d", first, got)
	}
}

func TestBookPassesWhatIsBusy(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "accounts.json"), Options{Span: Span{700_000, 700_015}})
	b.busy = func(id int) (bool, error) { return id != 700_007, nil }
	if got := take(t, b, "a"); got != 700_007 {
		t.Errorf("id %d is busy and was given", got)
	}
}

func TestBookKeepsWhatIsMoving(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accounts.json")
	b := open(t, path, Options{})
	first, err := b.Take("a", true)
	if err != nil || !first.Moving {
		t.Fatal(first, err)
	}
	b = open(t, path, Options{})
	if e, ok := b.Find("a"); !ok || e != first {
		t.Fatalf("found %v, want %v", e, first)
	}
	if err := b.Settle("a"); err != nil {
		t.Fatal(err)
	}
	if e, _ := open(t, path, Options{Off: true}).Find("a"); e.Moving || e.ID != first.ID {
		t.Errorf("after it settled: %v", e)
	}
}

func TestBookThatIsOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accounts.json")
	b := open(t, path, Options{Off: true})
	if _, err := b.Take("a", false); err == nil {
		t.Error("it gave an id")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it wrote a book")
	}
}

func TestSpanMeetsNobodys(t *testing.T) {
	dir := etc(t, map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\nannette:x:750000:100::/home:/bin/sh\n",
		"subuid": "annette:800000:65536\nbroken\nx:y:z\n",
	})
	for text, want := range map[string]string{
		"740000-760000": "passwd", "850000-900000": "subuid", "865536-900000": "", "751000-799999": "",
	} {
		s, err := ParseSpan(text)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Check(dir)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if s, err := FreeSpan(dir); err != nil || s.First != 900_000 {
		t.Errorf("the first free span is %v, %v", s, err)
	}
	for _, bad := range []string{"", "5", "1-9", "700000-600000", "x-y", "0-100000", "700000-99999999999"} {
		if s, err := ParseSpan(bad); err == nil {
			t.Errorf("%q was read as %v", bad, s)
		}
	}
}

// TestBusy: of a process, of a file where everybody may make one, and of nothing.
func TestBusy(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	const id = 654_321
	look := func(want bool, of string) {
		t.Helper()
		if got, err := Busy(id); err != nil || got != want {
			t.Errorf("%s: busy %v, %v", of, got, err)
		}
	}
	look(false, "nothing")
	c := exec.Command("sleep", "60")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	look(true, "a process")
	_ = c.Process.Kill()
	_ = c.Wait()
	look(false, "an ended process")
	file, err := os.CreateTemp("/dev/shm", "kurabe-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := file.Chown(id, id); err != nil {
		t.Fatal(err)
	}
	look(true, "shared memory")
}
