//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// attackWait bounds what the service may take to answer or to hang up.
const attackWait = 40 * time.Second

// Whoever has no key gets nothing from the port of the API but the health, the authority's
// certificate and refusals, and does not keep those with a key out.
func TestAttackWithoutAKey(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	at := s.URL()
	ended := silent(t, at) // meanwhile
	client := &http.Client{Timeout: attackWait, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path string, header http.Header, body io.Reader) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, at+path, body)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range header {
			q.Header[name] = values
		}
		a, err := client.Do(q)
		if err != nil {
			return 0, err.Error() // it hung up
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(a.Body, 1<<20))
		return a.StatusCode, string(text)
	}
	for _, path := range []string{
		"/", "/metrics", "/kurabe/state/backup", "/kurabe/hosts",
		"/console/", "/console/../credentials", "/%2e%2e/credentials", "//etc/passwd", "/ca.pem/../credentials", "/ca.pem%00",
		"/../../../etc/passwd", "/debug/pprof/", "/debug/vars", "/link/v1/assignments",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "TRACE", "CONNECT"} {
			if status, text := ask(method, path, nil, nil); status >= 200 && status < 300 || strings.Contains(text, "root:") {
				t.Errorf("%s %s: %d %.100s", method, path, status, text)
			}
		}
	}
	for _, token := range []string{"", "x", "Bearer", "Bearer ", "bearer x", "Basic eDp4", "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/rds/aws4_request, SignedHeaders=host, Signature="} {
		for _, path := range []string{"/metrics", "/?Action=DescribeDBInstances&Version=2014-10-31", "/kurabe/state/backup"} {
			if status, text := ask("GET", path, http.Header{"Authorization": {token}}, nil); status < 400 {
				t.Errorf("%s with %q: %d %.100s", path, token, status, text)
			}
		}
	}
	if status, text := ask("GET", "/ca.pem", nil, nil); status != 200 || strings.Contains(text, "PRIVATE") || strings.Count(text, "-----BEGIN ") != 1 {
		t.Errorf("the authority's certificate: %d %s", status, text)
	}
	for name, q := range map[string]struct {
		header http.Header
		body   io.Reader
	}{
		"a body without an end":   {nil, &endless{}},
		"a large form":            {nil, strings.NewReader("Action=DescribeDBInstances&" + strings.Repeat("a=b&", 300_000))},
		"a header that is large":  {http.Header{"X-Amz-Date": {strings.Repeat("x", 900<<10)}}, nil},
		"headers without number":  {manyHeaders(5000), nil},
		"a name that is deep":     {nil, strings.NewReader("Version=2014-10-31&Action=CreateDBInstance&" + strings.Repeat("Tags.member.", 50_000) + "=x")},
		"an index that is high":   {nil, strings.NewReader("Version=2014-10-31&Action=CreateDBInstance&Tags.Tag.999999999.Key=x")},
		"a form that is no UTF-8": {nil, strings.NewReader("Action=%ff%fe%00&Version=%c0%80")},
	} {
		if status, text := ask("POST", "/", q.header, q.body); status >= 200 && status < 400 || status >= 500 {
			t.Errorf("%s: %d %.200s", name, status, text)
		}
	}
	for range cap(ended) {
		if why := <-ended; why != "" {
			t.Error(why)
			break
		}
	}
	if _, err := s.DescribeDBInstances(t.Context(), nil); err != nil {
		t.Errorf("who has a key: %v", err)
	}
}

// endless is a body that never ends.
type endless struct{}

func (*endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	return len(b), nil
}

func manyHeaders(n int) http.Header {
	h := http.Header{}
	for i := range n {
		h.Set(fmt.Sprintf("X-Header-%d", i), "some value of a header")
	}
	return h
}

// silent opens connections that say nothing, or a little at a time, and tells how each ended.
func silent(t *testing.T, at string) <-chan string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 100)
	for n := range cap(ended) {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetReadDeadline(time.Now().Add(attackWait))
		switch n % 3 {
		case 1:
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		case 2:
			_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na=")
		}
		go func() {
			_, err := io.Copy(io.Discard, c)
			if e, ok := err.(net.Error); ok && e.Timeout() {
				ended <- "it waits for ever"
				return
			}
			ended <- ""
		}()
	}
	return ended
}

// othersMayRead says what below the data folder any user of the machine may read: what is
// public, and PostgreSQL's programs, which are the machine's own.
func othersMayRead(how, rel string) bool {
	top, _, _ := strings.Cut(rel, "/")
	return how == "r" && rel == "ca.pem" || how != "w" && top == "engines"
}

// Another user of the machine finds nothing to read or write in the data folder, no socket that
// lets it in, and no port but those of the API and of databases.
func TestAttackAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("being somebody else needs root")
	}
	s := harness.Start(t, harness.Options{})
	instances := one(t, s)
	// Folders above are the test's; what the data folder lets in is what is tried.
	for dir := filepath.Dir(s.Data); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(dir, info.Mode().Perm()|0o011); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out bytes.Buffer
	// It knows every path, as a user who has the same service elsewhere does.
	var list strings.Builder
	err := filepath.WalkDir(s.Data, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			list.WriteString(path + "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	somebody := exec.CommandContext(t.Context(), "/bin/sh", "-c", `while IFS= read -r f; do
		if [ -f "$f" ] && head -c 1 "$f" >/dev/null 2>&1; then echo "r $f"; fi
		if [ -d "$f" ] && ls "$f" >/dev/null 2>&1; then echo "l $f"; fi
		if [ -w "$f" ]; then echo "w $f"; fi
		if [ -S "$f" ]; then echo "s $f"; fi
	done`)
	somebody.Dir = "/"
	somebody.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: false}}
	somebody.Stdin, somebody.Stdout, somebody.Stderr = strings.NewReader(list.String()), &out, os.Stderr
	if err := somebody.Run(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(list.String(), "\n"); n < 100 {
		t.Errorf("only %d paths were tried", n)
	}
	for line := range strings.Lines(out.String()) {
		how, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		rel, _ := filepath.Rel(s.Data, path)
		if othersMayRead(how, rel) {
			continue
		}
		t.Errorf("another user may %s %s", map[string]string{"r": "read", "l": "list", "w": "write", "s": "reach the socket"}[how], rel)
	}
	listening(t, s, instances)
}

// listening finds every port and every abstract socket that somebody listens at here: in the
// test's own namespace all are the service's.
func listening(t *testing.T, s *harness.Service, instances []*harness.Instance) {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	_, apiPort, _ := net.SplitHostPort(u.Host)
	want := map[string]bool{apiPort: true}
	for _, i := range instances {
		want[strconv.Itoa(int(*i.Describe(t).Endpoint.Port))] = true
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile("/proc/net/" + table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[0] == "sl" || strings.HasPrefix(table, "tcp") && f[3] != "0A" {
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			if err != nil || !want[strconv.FormatUint(port, 10)] {
				t.Errorf("somebody listens at %s port %d of %s", table, port, f[1])
			}
		}
	}
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) > 7 && strings.HasPrefix(f[7], "@") {
			t.Errorf("somebody listens at the abstract socket %s", f[7])
		}
	}
}
