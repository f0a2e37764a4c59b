package bed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// The records of a raw file that begin and end a piece of it.
const (
	RecordRun = "run"
	RecordEnd = "end"
)

// Row is one line of the table.
type Row struct {
	Bench   string `json:"bench"`
	What    string `json:"what"`
	Value   string `json:"value"`
	Bar     string `json:"bar,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Report collects rows and writes raw samples as they come, one JSON object a
// line, so that an interrupted run keeps what it measured.
type Report struct {
	Raw    *os.File // nil: nothing is measured
	Path   string
	Rows   []Row
	Host   Machine
	Began  time.Time
	Pieces []Piece // this one, and those before it in the same file
}

// OpenReport begins a raw file, or a further piece of one.
func OpenReport(ctx context.Context, s Settings, before []Piece) (*Report, error) {
	o := &Report{Path: s.Out, Began: time.Now(), Host: DescribeMachine(ctx, s)}
	o.Pieces = append(slices.Clone(before), Piece{Machine: o.Host, Started: o.Began.UTC()})
	if err := SameSetting(before, o.Host, s); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o755); err != nil {
		return nil, err
	}
	var err error
	if s.Resume != "" {
		o.Path = s.Resume
		o.Raw, err = OpenWhole(o.Path)
	} else {
		o.Raw, err = CreateNew(o.Path)
	}
	if err != nil {
		return nil, err
	}
	o.Sample(RecordRun, map[string]any{"machine": o.Host, "settings": s, "started": o.Began.UTC()})
	for _, line := range o.Host.lines() {
		o.Say("%s", line)
	}
	if o.Host.BusyShare > busyMost {
		o.Say("WARNING: %.0f %% of the processors are busy before anything was started; the figures will say so too", 100*o.Host.BusyShare)
	}
	return o, nil
}

// CreateNew begins a file. One that is there has hours of rounds, perhaps.
func CreateNew(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there: --resume goes on with it, and --out can name another file", path)
	}
	if err != nil {
		return nil, err
	}
	return f, alone(f)
}

// OpenWhole opens a file of lines to append to, without a last one that was cut off.
func OpenWhole(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	if err := alone(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	raw, err := io.ReadAll(f)
	if err == nil {
		err = f.Truncate(int64(bytes.LastIndexByte(raw, '\n') + 1))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// alone keeps another run from going on with the same file meanwhile: each would measure what
// the other one does. The end of this process gives it back.
func alone(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%s: another run writes it: %w", f.Name(), err)
	}
	return nil
}

// Keep has what was measured outlive the machine.
func (o *Report) Keep() {
	if o.Raw == nil {
		return
	}
	if err := o.Raw.Sync(); err != nil {
		o.Say("raw samples may not be on disk: %v", err)
	}
}

// Say shows progress; the table itself goes to standard output.
func (o *Report) Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// Sample writes one raw record.
func (o *Report) Sample(kind string, fields map[string]any) {
	if o.Raw == nil {
		return
	}
	fields["t"], fields["at"] = kind, time.Now().UTC()
	line, err := json.Marshal(fields)
	if err == nil {
		_, err = o.Raw.Write(append(line, '\n'))
	}
	if err != nil {
		o.Say("raw sample not written: %v", err)
	}
}

// Row adds a line to the table.
func (o *Report) Row(r Row) {
	o.Rows = append(o.Rows, r)
	if o.Raw == nil {
		return // it is printed with the table
	}
	o.Sample("row", map[string]any{"row": r})
	o.Say("  %s: %s", r.What, strings.TrimSpace(r.Value+"  "+r.Verdict))
}

// Close ends the raw file and prints the table.
func (o *Report) Close() error {
	o.Sample(RecordEnd, map[string]any{"seconds": time.Since(o.Began).Seconds(), "load": loadAverage()})
	o.Pieces[len(o.Pieces)-1].Seconds = time.Since(o.Began).Seconds()
	return errors.Join(o.Raw.Close(), o.Print())
}

// Print prints the table and writes it beside the raw file.
func (o *Report) Print() error {
	markdown := strings.TrimSuffix(o.Path, filepath.Ext(o.Path)) + ".md"
	err := os.WriteFile(markdown, []byte(o.markdown()), 0o644)
	fmt.Println()
	printTable(os.Stdout, o.Rows)
	fmt.Printf("\n%s\nraw samples %s, table %s, %s\n", totals(o.Rows), o.Path, markdown, o.took())
	return err
}

// took is the time of all pieces that came to their end.
func (o *Report) took() string {
	seconds, cut := 0.0, 0
	for _, p := range o.Pieces {
		if seconds += p.Seconds; p.Seconds == 0 {
			cut++
		}
	}
	text := fmt.Sprintf("%.1f minutes", seconds/60)
	if len(o.Pieces) > 1 {
		text += fmt.Sprintf(" in %d pieces", len(o.Pieces))
	}
	if cut > 0 {
		text += fmt.Sprintf(", without those of %d that were cut off", cut)
	}
	return text
}

// lines are the machine in words, and what there is to say of pieces.
func (o *Report) lines() []string {
	lines := o.Host.lines()
	if len(o.Pieces) < 2 {
		return lines
	}
	var versions, loads []string
	for _, p := range o.Pieces {
		if v := p.Machine.Versions["kurabe"]; !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
		loads = append(loads, fmt.Sprintf("%s, %.0f %%", p.Started.UTC().Format("2 January 15:04"), 100*p.Machine.BusyShare))
	}
	lines = append(lines, fmt.Sprintf("%d pieces, with the share of the processors that was busy before each: %s", len(o.Pieces), strings.Join(loads, "; ")))
	if len(versions) > 1 {
		lines = append(lines, "WARNING: they are of different versions: "+strings.Join(versions, "; "))
	}
	return lines
}

func (o *Report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured by `make bench` on %s, %s:\n\n", o.Pieces[0].Started.UTC().Format("2 January 2006"), o.took())
	for _, line := range o.lines() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- raw samples: `%s`\n\n", filepath.Base(o.Path))
	b.WriteString("| What | Measured | Bar | | Note |\n|---|---|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, r := range o.Rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell.Replace(r.What), cell.Replace(r.Value), cell.Replace(r.Bar), r.Verdict, cell.Replace(r.Note))
	}
	fmt.Fprintf(&b, "\n%s.\n", totals(o.Rows))
	return b.String()
}

func printTable(w io.Writer, rows []Row) {
	cells := [][]string{{"what", "measured", "bar", "verdict"}}
	for _, r := range rows {
		cells = append(cells, []string{r.What, r.Value, r.Bar, r.Verdict})
	}
	var widths [4]int
	for _, line := range cells {
		for n, c := range line {
			widths[n] = max(widths[n], utf8.RuneCountInString(c))
		}
	}
	for n, line := range cells {
		var b strings.Builder
		for m, c := range line {
			b.WriteString(c + strings.Repeat(" ", widths[m]-utf8.RuneCountInString(c)+2))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
		if n > 0 && rows[n-1].Note != "" {
			fmt.Fprintln(w, "    "+rows[n-1].Note)
		}
	}
}
