package harness

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// autopsy is what the service and its servers were about when a test gave up waiting for
// them, for its message. It ends the service.
func (s *Service) autopsy() string {
	var b strings.Builder
	s.describeServers(&b, "")
	if !s.Running() {
		return b.String()
	}
	l, mark := s.now(), s.Log.Mark()
	if err := l.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return b.String()
	}
	select {
	case <-l.done:
	case <-time.After(endTime):
	}
	for _, g := range strings.Split(s.Log.Since(mark), "\n\n") {
		if short, ok := describeGoroutine(g); ok {
			b.WriteString(short)
		}
	}
	return b.String()
}

func (s *Service) describeServers(b *strings.Builder, ofInstance string) {
	for _, id := range s.Homes() {
		if !strings.HasPrefix(id, ofInstance) {
			continue
		}
		for _, pid := range s.Processes(id) {
			fmt.Fprintf(b, "%s %s\n", id, describeProcess(pid))
		}
	}
}

// About is what the servers of an instance are about at this moment, and the newest lines of
// the service's log that name it.
func (s *Service) About(instance string) string {
	const linesShown = 20
	var b strings.Builder
	s.describeServers(&b, instance)
	lines := slices.DeleteFunc(strings.Split(s.Log.String(), "\n"), func(line string) bool { return !strings.Contains(line, instance) })
	b.WriteString(strings.Join(lines[max(0, len(lines)-linesShown):], "\n"))
	return b.String()
}

// describeProcess is one line: pid, what it is called, its state, and where in the kernel it
// waits.
func describeProcess(pid int) string {
	read := func(name string) string {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name)) // it may be gone
		return strings.TrimSpace(strings.ReplaceAll(string(raw), "\x00", " "))
	}
	state := "?"
	for line := range strings.Lines(read("status")) {
		if rest, ok := strings.CutPrefix(line, "State:"); ok {
			state = strings.TrimSpace(rest)
		}
	}
	title := read("cmdline")
	return fmt.Sprintf("%d %s, %s, in %s", pid, title[:min(len(title), 100)], state, read("wchan"))
}

// framesShown bounds what is shown of one goroutine.
const framesShown = 12

// describeGoroutine is the head and the functions of a goroutine that works on instances.
func describeGoroutine(text string) (string, bool) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	ours := func(line string) bool {
		return strings.Contains(line, "internal/agent.(*worker)") || strings.Contains(line, "internal/engine.")
	}
	if !strings.HasPrefix(lines[0], "goroutine ") || !slices.ContainsFunc(lines, ours) {
		return "", false
	}
	shown := lines[:1]
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "runtime.") && len(shown) <= framesShown {
			name, _, _ := strings.Cut(line, "({")
			shown = append(shown, "  "+name[:min(len(name), 120)])
		}
	}
	return strings.Join(shown, "\n") + "\n", true
}
