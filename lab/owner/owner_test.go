package owner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOwnerReadsItself(t *testing.T) {
	me, err := This()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse(me.String() + "\n"); err != nil || got != me {
		t.Errorf("%v, %v", got, err)
	}
	// What a tag may hold.
	if strings.Trim(me.String(), "abcdefghijklmnopqrstuvwxyz0123456789-/") != "" || len(me.String()) > 256 {
		t.Errorf("no value of a tag: %s", me)
	}
	if start, err := ProcessStart(os.Getpid()); err != nil || start != me.Start {
		t.Errorf("%d, %v", start, err)
	}
}

func FuzzParseOwner(f *testing.F) {
	f.Add("a1b2c3d4/deadbeef/4026531836/17/99")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(o.String()); err != nil || again != o {
			t.Errorf("%q reads as %v and then as %v", text, o, again)
		}
	})
}

func FuzzParseStart(f *testing.F) {
	f.Add("17 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parseStart(text) })
}

func TestParseStart(t *testing.T) {
	const line = "17 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	if start, err := parseStart(line); err != nil || start != 4711 {
		t.Errorf("%d, %v", start, err)
	}
	if _, err := parseStart(strings.Replace(line, " S ", " Z ", 1)); err == nil {
		t.Error("one that has ended is taken for alive")
	}
}

func TestTemporary(t *testing.T) {
	dir := t.TempDir()
	f, err := Temporary(dir, "canary")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	folder, err := Folder(dir, "pgbench")
	if err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{f.Name(): "canary", folder: "pgbench"} {
		if begin := fmt.Sprintf("kurabe-lab-%d-%s-", os.Getpid(), kind); !strings.HasPrefix(filepath.Base(path), begin) {
			t.Errorf("%s does not begin with %s", path, begin)
		}
	}
	line, err := Line()
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(folder, File))
	if err != nil || string(written) != line {
		t.Errorf("the folder says %q, we are %q; %v", written, line, err)
	}
	me, err := This()
	if err != nil {
		t.Fatal(err)
	}
	if o, err := Parse(line); err != nil || o.Life(me) != Alive {
		t.Errorf("%v, %v", o, err)
	}
}
