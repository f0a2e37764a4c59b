package harness

import (
	"regexp"
	"strings"
	"sync"
)

// Log collects what a service prints, over all its lives.
type Log struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is everything so far.
func (l *Log) String() string { return l.Since(0) }

// Mark is a place in the log, for Since.
func (l *Log) Mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Len()
}

// Since is what came after a mark.
func (l *Log) Since(mark int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()[mark:]
}

var stepDone = regexp.MustCompile(`msg="step done".* instance=(\S+) step=(\S+)`)

// Steps are the steps that were done for an instance since a mark, in order.
func (l *Log) Steps(mark int, id string) []string {
	return l.steps(mark, func(of string) bool { return of == id })
}

// GroupSteps are those that were done for any server of an instance.
func (l *Log) GroupSteps(mark int, owner string) []string {
	return l.steps(mark, func(of string) bool { return Owners([]string{of})[0] == owner })
}

func (l *Log) steps(mark int, wanted func(id string) bool) []string {
	var steps []string
	for _, m := range stepDone.FindAllStringSubmatch(l.Since(mark), -1) {
		if wanted(m[1]) {
			steps = append(steps, m[2])
		}
	}
	return steps
}

// tail is the end of the log, for the message of a failed test.
func (l *Log) tail() string {
	const linesShown = 40
	lines := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-linesShown):], "\n")
}
