package pg

import (
	"slices"
	"testing"
)

func TestStartup(t *testing.T) {
	b := AppendStartup(nil, Setting{"user", "u"}, Setting{"database", "d"}, Setting{"_pq_.x", "1"})
	s, size, ok := ReadStartup(b)
	if !ok || size != len(b) || s.Get("user") != "u" || s.Get("database") != "d" || !slices.Equal(s.Unknown, []string{"_pq_.x"}) {
		t.Errorf("%+v %d %v", s, size, ok)
	}
	for n := range len(b) {
		if _, size, ok := ReadStartup(b[:n]); size != 0 || !ok {
			t.Errorf("%d bytes: size %d, ok %v", n, size, ok)
		}
	}
	for name, kind := range map[string]StartupKind{string(AppendSSLRequest(nil)): StartupSSL, string(AppendCancel(nil, 7)): StartupCancel} {
		if s, _, ok := ReadStartup([]byte(name)); !ok || s.Kind != kind || kind == StartupCancel && s.Cancel != 7 {
			t.Errorf("kind %d: %+v", kind, s)
		}
	}
}

func TestOptions(t *testing.T) {
	cases := map[string][]Setting{
		"-c search_path=a\\ b -cwork_mem=1MB --enable-seqscan=off": {{"search_path", "a b"}, {"work_mem", "1MB"}, {"enable_seqscan", "off"}},
		"":        nil,
		"  -c a=": {{"a", ""}},
	}
	for text, want := range cases {
		if got, ok := Options(text); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %v %v", text, got, ok)
		}
	}
	for _, text := range []string{"-f", "-c", "-c x", "x=1", "-d 5"} {
		if _, ok := Options(text); ok {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestFailure(t *testing.T) {
	f := &Failure{Severity: "FATAL", Code: "57P01", Message: "m", Detail: "d", Hint: "h"}
	b := AppendFailure(nil, f)
	kind, size, ok := Header(b)
	got := ReadFailure(b[HeaderBytes:])
	if kind != 'E' || size != len(b) || !ok || *got != *f || !got.Fatal() {
		t.Errorf("%c %d %+v", kind, size, got)
	}
}

// FuzzMessages: whatever arrives, nothing is read beyond it.
func FuzzMessages(f *testing.F) {
	f.Add(AppendStartup(nil, Setting{"user", "u"}))
	f.Add(AppendFailure(nil, &Failure{Code: "x"})[HeaderBytes:])
	f.Add(AppendChosen(nil, "SCRAM-SHA-256", []byte("n,,n=,r=x"))[HeaderBytes:])
	f.Add([]byte{0, 1, 0, 0, 0, 1, 'x'})
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, size, ok := ReadStartup(data); ok && size > len(data) {
			t.Errorf("%d of %d bytes: %+v", size, len(data), s)
		}
		ReadFailure(data)
		Chosen(data)
		var values [3][]byte
		Row(data, values[:])
		Options(string(data))
		if len(data) >= HeaderBytes {
			Header(data)
		}
	})
}
