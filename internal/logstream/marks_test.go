package logstream

import (
	"bytes"
	"testing"
	"time"

	"kurabe"
)

func sampleMarks() (head, []kurabe.LogMark) {
	at := time.Unix(1790000000, 123).UTC()
	mark := func(s int, file string, offset int64) kurabe.LogMark {
		t := at.Add(time.Duration(s) * time.Second)
		return kurabe.LogMark{At: t, Until: t.Add(5), Position: kurabe.LogPosition{File: file, Offset: offset}}
	}
	h := head{Server: "db-X~2", Joins: &joint{"20260101T000000Z-ab", kurabe.LogPosition{Server: "db-X", File: "bin.000003", Offset: 44}}, span: span{"bin.000007", 0, 99}, Sum: 77, Next: kurabe.LogPosition{File: "bin.000008"}, After: &span{"bin.000006", 5, 9}, From: mark(-1, "bin.000006", 9)}
	last := mark(2, "bin.000007", 99)
	last.State = "0-1-77"
	return h, []kurabe.LogMark{mark(0, "bin.000006", 9), mark(1, "bin.000007", 40), last}
}

func TestMarks(t *testing.T) {
	h, marks := sampleMarks()
	text := formatMarks(h, marks)
	back, list, err := parseMarks(text)
	if err != nil || !bytes.Equal(formatMarks(back, list), text) || *back.After != *h.After || *back.Joins != *h.Joins || back.Server != h.Server || list[2] != marks[2] {
		t.Fatalf("%s\n%+v %+v %v", text, back, list, err)
	}
	for n := range text {
		wrong := bytes.Clone(text)
		wrong[n] ^= 1
		if _, _, err := parseMarks(wrong); err == nil {
			t.Fatalf("byte %d is wrong and nobody saw it", n)
		}
		if _, _, err := parseMarks(text[:n]); err == nil {
			t.Fatalf("cut at %d and nobody saw it", n)
		}
	}
	marks[2].At = marks[0].At.Add(-1)
	if _, _, err := parseMarks(formatMarks(h, marks)); err == nil {
		t.Error("marks that go back are taken")
	}
}

// TestIdleMarks: of a stretch without writing two marks are left.
func TestIdleMarks(t *testing.T) {
	_, marks := sampleMarks()
	var kept []kurabe.LogMark
	for n := range 100 {
		m := marks[1+n/70]
		m.At = m.At.Add(time.Duration(n) * time.Second)
		kept = addMark(kept, m)
	}
	if len(kept) != 4 || kept[1].At.Sub(kept[0].At) != 69*time.Second || kept[3].At.Sub(kept[2].At) != 29*time.Second {
		t.Errorf("%+v", kept)
	}
}

func TestObjectNames(t *testing.T) {
	name := objectName("db-X", "20260101T000000Z-ab", span{"bin.000007", 5, 1 << 40})
	o, ok := parseObject(name)
	if !ok || o.id != "db-X" || o.span != (span{"bin.000007", 5, 1 << 40}) || o.marks {
		t.Errorf("%s is %+v, %v", name, o, ok)
	}
	if o, ok = parseObject(name + marksSuffix); !ok || !o.marks {
		t.Errorf("%+v, %v", o, ok)
	}
	for _, bad := range []string{"", "logs/", "snapshots/x", name + "/x", name[:len(name)-1], "logs/a/b/c/00000000000000000002-00000000000000000001"} {
		if o, ok := parseObject(bad); ok {
			t.Errorf("%q is %+v", bad, o)
		}
	}
}

func FuzzParseMarks(f *testing.F) {
	h, marks := sampleMarks()
	f.Add(formatMarks(h, marks))
	f.Add(formatMarks(head{span: span{"a", 0, 0}, Next: kurabe.LogPosition{File: "a"}}, nil))
	f.Add([]byte("kurabe-log 1\nsum 00000000\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, marks, err := parseMarks(text)
		if err == nil && !bytes.Equal(formatMarks(h, marks), text) {
			t.Errorf("%q is not what it means", text)
		}
	})
}
