package series

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"
)

// rehearsal is the first argument of a process that opens a store and closes it again.
const rehearsal = "metrics-rehearsal"

// RehearsalArgs are the arguments of a process of this program that opens the store in a folder
// before this process does, and repairs it: the database reads its log in goroutines of its own,
// and a panic there, as where it cannot write, ends the process. The process tells what was lost in
// lines of its output. That it ended by itself does not say that the store can be opened.
func RehearsalArgs(c Config) []string {
	return []string{rehearsal, c.Dir, strconv.FormatInt(c.BytesMax, 10)}
}

// IsRehearsal says whether this process was started with RehearsalArgs; main calls RehearsalMain
// then.
func IsRehearsal() bool { return len(os.Args) == 4 && os.Args[1] == rehearsal }

// RehearsalMain does not return.
func RehearsalMain() {
	bytesMax, _ := strconv.ParseInt(os.Args[3], 10, 64)
	s := New(Config{Dir: os.Args[2], BytesMax: bytesMax, Log: slog.New(slog.DiscardHandler), Now: time.Now, Free: func() int64 { return -1 },
		Tell: func(reason string) { fmt.Println(reason) }})
	_ = s.openParts(s.Now(), false) // the process that asks meets this error itself
	s.closeParts()
	os.Exit(0)
}

// rehearse has another process open the store first.
func (s *Store) rehearse() error {
	if s.Rehearse == nil {
		return nil
	}
	told, err := s.Rehearse(s.running)
	for _, one := range told {
		s.Tell(one)
	}
	if err != nil {
		return fmt.Errorf("the process that opened the metrics in %s first was ended by that: %w", s.Dir, err)
	}
	return nil
}
