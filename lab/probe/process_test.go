package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// proc is a folder like /proc.
type proc struct {
	t    *testing.T
	root string
}

func newProc(t *testing.T) proc { return proc{t, t.TempDir()} }

func (p proc) write(path, text string) {
	p.t.Helper()
	path = filepath.Join(p.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// process has ticks of its own, of its ended children, context switches and bytes.
func (p proc) process(pid, own, reaped, switches, bytes int, children string) {
	dir := strconv.Itoa(pid)
	p.write(dir+"/stat", fmt.Sprintf("%d (postgres: a) b) S 1 1 1 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 1 0 99 0 0", pid, own, reaped))
	p.write(dir+"/io", fmt.Sprintf("rchar: 1\nwchar: 1\nread_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: 0\n", bytes, 2*bytes))
	p.write(dir+"/task/"+dir+"/children", children)
	p.write(dir+"/task/"+dir+"/status", fmt.Sprintf("Name:\tpostgres\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t1\n", switches))
}

func (p proc) end(pid int) {
	if err := os.RemoveAll(filepath.Join(p.root, strconv.Itoa(pid))); err != nil {
		p.t.Fatal(err)
	}
}

func TestProcessesKeepWhatEndedChildrenUsed(t *testing.T) {
	p := newProc(t)
	p.process(10, 100, 0, 5, 1000, "11 12 ")
	p.process(11, 200, 0, 9, 10, "")
	p.process(12, 300, 0, 19, 20, "")
	server := newProcesses(p.root, []int{10})
	before := server.read()
	if before.processes != 3 || before.cpuSeconds != 6 || before.switches != 36 || !before.bytes || before.readBytes != 1030 || before.writeBytes != 2060 {
		t.Fatalf("%+v", before)
	}
	// A session ends after 50 more ticks; its parent has waited for it, and another began.
	p.end(11)
	p.process(10, 110, 250, 7, 1010, "12 13 ")
	p.process(13, 5, 0, 0, 0, "")
	after := server.read()
	if after.processes != 3 || after.cpuSeconds != 1.1+2.5+3+0.05 || after.readBytes != 1030 {
		t.Errorf("%+v", after)
	}
	// 8 + 20 + 1 of the living and 10 that were last seen of the ended one.
	if after.switches != 39 {
		t.Errorf("%v switches", after.switches)
	}
}

func TestProcessesOfAnEndedServer(t *testing.T) {
	p := newProc(t)
	if u := newProcesses(p.root, []int{10}).read(); u.processes != 0 || u.cpuSeconds != 0 {
		t.Errorf("%+v", u)
	}
}

func TestParseStat(t *testing.T) {
	cases := map[string]struct {
		text string
		want stat
		bad  bool
	}{
		"a name with all in it": {text: "7 (a) 1 2) (b) S 3 1 1 0 -1 0 0 0 0 0 10 20 30 40 20 0 1 0 99", want: stat{3, 30, 70}},
		"no name":               {text: "7 S 3", bad: true},
		"too short":             {text: "7 (a) S 3 1 1", bad: true},
		"no number":             {text: "7 (a) S 3 1 1 0 -1 0 0 0 0 0 x 20 30 40 20", bad: true},
		"empty":                 {bad: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat([]byte(c.text))
			if (err != nil) != c.bad || !c.bad && got != c.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("7 (a) S 3 1 1 0 -1 0 0 0 0 0 10 20 30 40 20"))
	f.Add([]byte("cpu  1 2 3 4 5 6 7 8 0 0\nctxt 9\n"))
	f.Add([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"))
	f.Add([]byte(" 0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 42 1\n"))
	f.Add([]byte("36 35 98:0 /a /mount rw - ext4 /dev/x rw\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = parseStat(data)
		if m, err := parseMachine(data); err == nil && (m.busy < 0 || m.steal < 0 || m.total < m.busy) {
			t.Errorf("%+v", m)
		}
		if s, err := parseStall(data); err == nil && s < 0 {
			t.Errorf("%v", s)
		}
		for _, l := range listeners(data) {
			if !l.at.Addr().IsValid() {
				t.Errorf("%+v", l)
			}
		}
		fileSystem(string(data), "/mount/x")
	})
}

func TestReadItself(t *testing.T) {
	u := newProcesses(procRoot, []int{os.Getpid()}).read()
	if u.processes < 1 || u.switches <= 0 {
		t.Errorf("%+v", u)
	}
}
