package probe

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseMachine(t *testing.T) {
	m, err := parseMachine([]byte("cpu  100 200 300 4000 500 60 70 80 90 90\ncpu0 1 1 1 1 1 1 1 1 1 1\nctxt 12345\nbtime 1\n"))
	if err != nil || m.busy != 7.3 || m.steal != 0.8 || m.total != 53.1 || m.switches != 12345 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, text := range []string{"", "cpu 1 2 3", "intr 5", "cpu  1 2 3 4 5 6 7 x\nctxt 1\n", "cpu  1 2 3 4 5 6 7 8\n"} {
		if _, err := parseMachine([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestParseStall(t *testing.T) {
	s, err := parseStall([]byte("some avg10=1.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"))
	if err != nil || s != 2.5 {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := parseStall([]byte("full total=7\n")); err == nil {
		t.Error("no error")
	}
}

func TestFileSystem(t *testing.T) {
	const info = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /tmp rw,nosuid - tmpfs tmpfs rw
31 22 7:0 / /srv/pool rw,noatime - xfs /dev/loop0 rw
`
	cases := map[string]string{"/usr/none": "ext4", "/tmp/none/x": "tmpfs", "/srv/pool/a": "xfs", "/srv/poolside": "ext4", "/": "ext4"}
	for folder, want := range cases {
		if got, _ := fileSystem(info, folder); got != want {
			t.Errorf("%s is on %s", folder, got)
		}
	}
}

func TestHost(t *testing.T) {
	h := Host(t.TempDir())
	for _, name := range []string{"cores", "memory_bytes", "kernel", "virtualization", "file_system"} {
		if h[name] == "" {
			t.Errorf("no %s in %v", name, h)
		}
	}
}

func TestDisturbed(t *testing.T) {
	calm := Canary{Ms: map[string]float64{"cpu": 5, "fsync": 1}, busy: 100, steal: 1}
	later := func(change func(*Canary)) Canary {
		c := Canary{Ms: map[string]float64{"cpu": 5.1, "fsync": 9}, busy: 197, steal: 1}
		change(&c)
		return c
	}
	cases := map[string]struct {
		before, after Canary
		why           string
	}{
		"calm":                          {calm, later(func(*Canary) {}), ""},
		"the hypervisor":                {calm, later(func(c *Canary) { c.steal = 4 }), "3.0 %"},
		"slower":                        {calm, later(func(c *Canary) { c.Ms["cpu"] = 6 }), "5.00 ms before and 6.00 ms after"},
		"faster":                        {calm, later(func(c *Canary) { c.Ms["cpu"] = 4 }), "4.00 ms after"},
		"the hypervisor of an idle one": {calm, later(func(c *Canary) { c.busy, c.steal = 101, 1.1 }), "9.1 %"},
		"busy before":                   {Canary{Ms: calm.Ms, Stall: 0.5, busy: 100, steal: 1}, later(func(*Canary) {}), "50 %"},
		"busy after is the load's":      {calm, later(func(c *Canary) { c.Stall = 1 }), ""},
		"a kernel that tells no stalls": {Canary{Ms: calm.Ms, Stall: -1, busy: 100, steal: 1}, later(func(*Canary) {}), ""},
		"nothing known":                 {Canary{}, Canary{}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, why := Disturbed(c.before, c.after)
			if got != (c.why != "") || !strings.Contains(why, c.why) {
				t.Errorf("%v: %q", got, why)
			}
		})
	}
}

func TestSing(t *testing.T) {
	dir := t.TempDir()
	c, err := Sing(t.Context(), dir)
	if err != nil || c.Ms["cpu"] <= 0 || c.Ms["fsync"] <= 0 || c.busy <= 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if _, err := Sing(t.Context(), dir+"/none"); err == nil {
		t.Error("a folder that is not there is accepted")
	}
	ended, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := Sing(ended, dir); err == nil {
		t.Error("it sang after its end")
	}
}

func TestSingUntil(t *testing.T) {
	songs := 0
	third := func(c Canary) bool {
		songs++
		if c.Ms["cpu"] <= 0 {
			t.Errorf("song %d: %+v", songs, c)
		}
		return songs == 3
	}
	c, err := SingUntil(t.Context(), t.TempDir(), time.Hour, third)
	if err != nil || songs != 3 || c.busy <= 0 {
		t.Errorf("%+v after %d songs, %v", c, songs, err)
	}
	songs = 0
	if _, err := SingUntil(t.Context(), t.TempDir(), 0, func(Canary) bool { songs++; return false }); err != nil || songs != 1 {
		t.Errorf("without time to wait: %d songs, %v", songs, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	if _, err := SingUntil(ended, t.TempDir(), time.Hour, func(Canary) bool { cancel(); return false }); err == nil {
		t.Error("it sang after its end")
	}
}

func BenchmarkSing(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		if _, err := Sing(b.Context(), dir); err != nil {
			b.Fatal(err)
		}
	}
}
