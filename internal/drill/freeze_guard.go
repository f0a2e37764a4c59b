package drill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"kurabe/internal/proc"
)

// A guard is a process that has a frozen server go on when the drill died: killed, nobody
// else would know of it. It is in a session of its own, so that no signal of the terminal
// reaches it.
type guard struct {
	cancel context.CancelFunc
	done   chan struct{}
}

const (
	// guardStart bounds the start of a guard: a fork and two execs.
	guardStart = 10 * time.Second
	// guardSlack is how much longer than the freeze a guard waits before it thinks that
	// the drill hangs.
	guardSlack = 5 * time.Second
)

// guardReady is what a guard says once it watches.
const guardReady = "ready\n"

// startGuard returns once the guard watches. What it is to watch is this very process.
func startGuard(command []string, dataDir string, most time.Duration) (*guard, error) {
	self, err := proc.Self()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &guard{cancel, make(chan struct{})}
	said := newSaying(guardReady)
	argv := append(command[:len(command):len(command)], strconv.Itoa(self.PID), strconv.FormatUint(self.StartTime, 10), (most + guardSlack).String(), dataDir)
	var failure error
	go func() {
		defer close(g.done)
		_, failure = proc.Run(ctx, proc.Tool{Name: "drill-guard", Argv: argv, Dir: "/", Stdout: said})
	}()
	late := time.NewTimer(guardStart)
	defer late.Stop()
	select {
	case <-said.heard:
		return g, nil
	case <-g.done:
		cancel()
		return nil, fmt.Errorf("start the guard: it ended: %w", failure)
	case <-late.C:
		g.end()
		return nil, fmt.Errorf("start the guard: no answer within %v", guardStart)
	}
}

func (g *guard) end() {
	g.cancel()
	<-g.done
}

// saying is a writer that waits for a word.
type saying struct {
	word  []byte
	buf   bytes.Buffer
	heard chan struct{}
}

func newSaying(word string) *saying { return &saying{word: []byte(word), heard: make(chan struct{})} }

func (s *saying) Write(p []byte) (int, error) {
	before := bytes.HasPrefix(s.buf.Bytes(), s.word)
	s.buf.Write(p[:min(len(p), 2*len(s.word))])
	if !before && bytes.HasPrefix(s.buf.Bytes(), s.word) {
		close(s.heard)
	}
	return len(p), nil
}

// GuardMain is the guard: it waits for the end of a drill, or for the time that is given,
// and has everything go on that works in a data folder. Arguments: pid and start time of
// the drill, the time, the folder.
func GuardMain(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 4 {
		return errors.New("the guard is started by kurabe drill only")
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	start, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	most, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	drill, found, err := proc.Adopt(pid, start)
	if err != nil {
		return err
	}
	if found {
		if _, err := io.WriteString(out, guardReady); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		_ = drill.Wait(ctx) // it has ended or hangs: the same to us
	}
	return proc.Resume(args[3])
}
