package explain

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"kurabe"
)

// Snapshot mirrors one of the snapshots in the answer of Explain.
type Snapshot struct {
	Name, CopyOfName, Reason string
	Kind                     kurabe.SnapshotKind
	State                    kurabe.SnapshotState
	Facts                    kurabe.SnapshotFacts
	Failure                  *kurabe.Failure
	Damage, Notes            []string
	VerifiedAt               time.Time
}

// printSnapshots shows the snapshots of an instance: how each was taken, how long
// its files are, and how much of that is on the disk for its sake alone.
func printSnapshots(w io.Writer, list []Snapshot) {
	if len(list) == 0 {
		return
	}
	var sum int64
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for n, s := range list {
		head := "            "
		if n == 0 {
			head = "snapshots   "
		}
		taken := "-"
		if !s.Facts.TakenAt.IsZero() {
			taken = s.Facts.TakenAt.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s%s\t%s\t%s\t%s\t%s\n", head, s.Name, s.Kind, s.State, taken, s.size())
		sum += s.Facts.OccupiedBytes
	}
	_ = table.Flush() // as with every line here: nobody is told that the terminal is gone
	for _, s := range list {
		if s.Reason != "" {
			fmt.Fprintf(w, "            %s: %s\n", s.Name, s.Reason)
		}
		if why := s.Facts.StandbySkipped; why != "" {
			fmt.Fprintf(w, "            %s was taken from the server that serves clients: %s\n", s.Name, why)
		}
		if !s.VerifiedAt.IsZero() {
			fmt.Fprintf(w, "            %s was restored and verified: %s\n", s.Name, When(s.VerifiedAt))
		}
		for _, d := range s.Damage {
			fmt.Fprintf(w, "            %s is DAMAGED: %s\n", s.Name, d)
		}
		for _, n := range s.Notes {
			fmt.Fprintf(w, "            %s: %s\n", s.Name, n)
		}
		if f := s.Failure; f != nil {
			fmt.Fprintf(w, "            %s: step %s failed %d times: %s\n", s.Name, f.Step, f.Attempts, f.Message)
		}
	}
	fmt.Fprintf(w, "            together they occupy %s\n", kurabe.FormatBytes(sum))
}

// size tells how a snapshot was taken and what it takes.
func (s Snapshot) size() string {
	f := s.Facts
	switch {
	case f.Percent < 100 && f.SizeBytes > 0:
		return fmt.Sprintf("%d %% of %s", f.Percent, kurabe.FormatBytes(f.SizeBytes))
	case f.Method == "":
		return "-"
	case f.Method == kurabe.SnapshotCloned:
		return fmt.Sprintf("clone of %s, occupies %s", kurabe.FormatBytes(f.SizeBytes), kurabe.FormatBytes(f.OccupiedBytes))
	}
	return fmt.Sprintf("copy of %s, occupies %s", kurabe.FormatBytes(f.SizeBytes), kurabe.FormatBytes(f.OccupiedBytes))
}
