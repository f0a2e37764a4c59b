//go:build integration

package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// browserPatience bounds a whole test with a browser: loading one page takes a second.
const browserPatience = 2 * time.Minute

// chromium is a browser without a window, spoken to by its DevTools protocol over two
// pipes, so no port is open and nothing of the browser's own is taken for the page's.
type chromium struct {
	t       *testing.T
	to      io.WriteCloser
	from    *bufio.Reader
	session string
	last    int
	events  []devtools // that came while an answer was waited for
}

// devtools is a message in either direction.
type devtools struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// startChromium starts a browser with a new profile and opens a page in it; the test is
// skipped where there is none.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium to look at the pages with; it is in the package chromium")
	}
	profile, err0 := os.MkdirTemp("", "kurabe-chromium-")
	read, theirs, err1 := os.Pipe()
	ours, write, err2 := os.Pipe()
	if err := errors.Join(err0, err1, err2); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--window-size=1280,900",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir="+profile, "--remote-debugging-pipe")
	cmd.ExtraFiles = []*os.File{ours, theirs} // 3 is what it reads, 4 what it writes
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(browserPatience, func() { _ = cmd.Process.Kill() })
	err = errors.Join(ours.Close(), theirs.Close())
	c := &chromium{t: t, to: write, from: bufio.NewReaderSize(read, 1<<20)}
	t.Cleanup(func() {
		_ = c.send("Browser.close", nil) // it may be gone already
		_ = write.Close()
		_, _ = io.Copy(io.Discard, c.from)
		_ = cmd.Wait() // how it ended says nothing: what was asked of it was answered
		deadline.Stop()
		_ = read.Close()
		removeProfile(t, profile)
	})
	if err != nil {
		t.Fatal(err)
	}
	var target struct{ TargetID string }
	c.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Log", "Runtime"} {
		c.call(domain+".enable", nil, nil)
	}
	return c
}

// removeProfile waits for the browser's helpers: they end when they miss the browser, and
// may write to the profile until then.
func removeProfile(t *testing.T, folder string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(browserPatience); ; <-tick.C {
		err := os.RemoveAll(folder)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Error(err)
			return
		}
	}
}

func (c *chromium) send(method string, params any) error {
	c.last++
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	m := devtools{ID: c.last, Method: method, Session: c.session}
	if params != nil {
		m.Params = raw
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = c.to.Write(append(text, 0))
	return err
}

// next is what the browser says next.
func (c *chromium) next() devtools {
	c.t.Helper()
	text, err := c.from.ReadBytes(0)
	if err != nil {
		c.t.Fatalf("the browser is gone, or took longer than %v: %v", browserPatience, err)
	}
	var m devtools
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// call asks the browser and keeps what it tells meanwhile.
func (c *chromium) call(method string, params, into any) {
	c.t.Helper()
	if err := c.send(method, params); err != nil {
		c.t.Fatal(fmt.Errorf("%s: %w", method, err))
	}
	for {
		m := c.next()
		switch {
		case m.ID == 0:
			c.events = append(c.events, m)
			continue
		case m.ID != c.last:
			continue
		case m.Error != nil:
			c.t.Fatalf("%s: %s", method, m.Error.Message)
		case into != nil:
			if err := json.Unmarshal(m.Result, into); err != nil {
				c.t.Fatal(err)
			}
		}
		return
	}
}

// open loads a page and gives the events until all of it is there.
func (c *chromium) open(url string) []devtools {
	c.t.Helper()
	c.events = nil
	c.call("Page.navigate", map[string]any{"url": url}, nil)
	for n := 0; ; n++ {
		for ; n < len(c.events); n++ {
			if c.events[n].Method == "Page.loadEventFired" {
				return c.events
			}
		}
		c.events = append(c.events, c.next())
		n--
	}
}

// evaluate computes an expression in the page as it was laid out.
func (c *chromium) evaluate(expression string, into any) {
	c.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	c.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		c.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	if err := json.Unmarshal(answer.Result.Value, into); err != nil {
		c.t.Fatal(err)
	}
}
