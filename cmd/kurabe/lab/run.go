package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"kurabe/lab/report"
	"kurabe/lab/result"
	"kurabe/lab/run"
	"kurabe/lab/study"
)

// runFlags say what of a study is run.
type runFlags struct {
	version           string // of this program
	target            targetFlags
	quick, published  bool
	dry               bool
	blocks            int
	scale             float64
	seed              uint64
	engine            string
	out, resume, html string
	variants          []string
}

func runCommand(version string) *cobra.Command {
	f := runFlags{version: version}
	c := &cobra.Command{
		Use:   "run STUDY",
		Short: "Run a study: a built-in one, or a file",
		Long: `Run a study and print its result. The command first prints how long the run takes and the
precision to expect. Every trial is written to the result file when it ends: Ctrl-C ends the
run cleanly, and --resume continues it. Whatever the lab creates has the tag kurabe:lab or a
name that begins with kurabe_lab_, and is removed at the end of the run; after a crash,
kurabe lab clean removes it.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 != (f.resume == "") {
				return errors.New("name a study, or a result file with --resume, and not both")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			ctx, stop := untilTold(context.Background())
			defer stop()
			return f.run(ctx, strings.Join(args, ""))
		},
	}
	f.target.add(c)
	fs := c.Flags()
	fs.BoolVar(&f.quick, "quick", false, "a first result in minutes: less data and shorter trials, as the study's section quick says")
	fs.BoolVar(&f.published, "as-published", false, "the sizes and durations of the published measurement")
	fs.BoolVar(&f.dry, "dry-run", false, "print the plan and its duration, and run nothing")
	fs.IntVar(&f.blocks, "blocks", 0, "measure exactly so many blocks")
	fs.Float64Var(&f.scale, "scale", 1, "times the data")
	fs.Uint64Var(&f.seed, "seed", 0, "of every random order (default: chosen, and recorded)")
	fs.StringVar(&f.engine, "engine", "", "postgres, mariadb or mysql (default: the first engine of the study that is available)")
	fs.StringSliceVar(&f.variants, "variants", nil, "only these variants and the baseline")
	fs.StringVar(&f.out, "out", "", "result file (default STUDY-TIME.jsonl); the page goes beside it")
	fs.StringVar(&f.resume, "resume", "", "continue this result file")
	fs.StringVar(&f.html, "html", "", "file of the page (default: beside the result file)")
	fs.BoolVar(&f.target.options.WritesAllowed, "i-know-this-writes", false, "allow the study to write to the existing database that the URL names")
	return c
}

// untilTold ends with the signals that mean the end, in order: a server behind a URL gets
// its settings back. SIGHUP is that of a session that was cut off, unless nohup has us
// ignore it. Who reads what we say may go with the session: Go ends a program that writes
// to nobody, so that signal is taken, and the run goes on.
func untilTold(parent context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // what it is told of is not read
	return signal.NotifyContext(parent, signals...)
}

// run is the story of the command.
func (f *runFlags) run(ctx context.Context, name string) error {
	p, err := f.target.place()
	if err != nil {
		return err
	}
	s, engine, err := f.study(ctx, p, name)
	if err != nil {
		return err
	}
	if f.dry {
		return f.tell(s, p, engine)
	}
	path, err := f.checkFiles(s)
	if err != nil {
		return err
	}
	if err := p.check(s); err != nil {
		return err
	}
	t, err := p.open(ctx, engine, func(text string) { fmt.Fprintln(os.Stderr, text) })
	if err != nil {
		return err
	}
	err = run.Run(ctx, run.Options{
		Study: s, Target: t, Path: path, Resume: f.resume != "", Command: commandLine(), Lab: versions(f.version),
		Folder: os.TempDir(), Say: showRun(),
	})
	return f.finish(path, err)
}

// tell says what would be run. No target is asked what of it cannot be had.
func (f *runFlags) tell(s *study.Study, p place, engine string) error {
	plan := run.NewPlan(s, p.kind, engine, nil)
	if f.resume != "" {
		file, err := result.Read(f.resume)
		if err != nil {
			return err
		}
		plan = run.PlanToResume(file)
	}
	fmt.Printf("%s, asked of %s\n%s", s.Name, engine, plan)
	return nil
}

// showRun is what a run is told to say.
func showRun() func(run.Progress) {
	display := run.Display(os.Stderr, isTerminal(os.Stderr))
	return func(p run.Progress) {
		if p.Stage == "plan" {
			fmt.Fprint(os.Stderr, p.Plan)
		}
		display(p)
	}
}

// checkFiles finds the place of the results before anything is started for them.
func (f *runFlags) checkFiles(s *study.Study) (path string, err error) {
	if path = f.resume; path == "" {
		if path = f.out; path == "" {
			path = fmt.Sprintf("%s-%s.jsonl", s.Name, time.Now().UTC().Format("20060102-150405"))
		}
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("%s exists: resume it, or choose another name with --out", path)
		}
	} else if err := unix.Access(path, unix.W_OK); err != nil {
		return "", fmt.Errorf("go on with %s: write to it: %w", path, err)
	}
	if f.html == "" {
		f.html = strings.TrimSuffix(path, ".jsonl") + ".html"
	}
	for _, file := range []string{path, f.html} {
		if err := unix.Access(filepath.Dir(file), unix.W_OK|unix.X_OK); err != nil {
			return "", fmt.Errorf("write %s: folder %s: %w", file, filepath.Dir(file), err)
		}
	}
	return path, nil
}

// finish shows what was measured, also when the run failed.
func (f *runFlags) finish(path string, failure error) error {
	file, err := result.Read(path)
	if err != nil || len(file.Trials) == 0 {
		return failure // nothing was measured, and failure says why
	}
	fmt.Fprintf(os.Stderr, "results: %s\n", path)
	pageErr := writePage(f.html, path, file)
	if pageErr == nil {
		fmt.Fprintf(os.Stderr, "page: %s\n", f.html)
	}
	if errors.Is(failure, run.ErrInterrupted) {
		fmt.Fprintf(os.Stderr, "to go on: kurabe lab run --resume %s, with the flags of the target as they were\n", path)
	}
	return errors.Join(report.Terminal(os.Stdout, file, terminalWidth()), failure, pageErr)
}

// commandLine is how the run was asked for. A URL may hold a password.
func commandLine() []string {
	words := append([]string{"kurabe"}, os.Args[1:]...)
	for n, w := range words {
		scheme, rest, ok := strings.Cut(w, "://")
		if at := strings.LastIndexByte(rest, '@'); ok && at >= 0 {
			user, _, _ := strings.Cut(rest[:at], ":")
			words[n] = scheme + "://" + user + rest[at:]
		}
	}
	return words
}

// versions are those of this program.
func versions(version string) map[string]string {
	v := map[string]string{"version": version, "go": runtime.Version()}
	if path, err := os.Executable(); err == nil {
		v["binary_sha256"] = fileSum(path)
	}
	return v
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// terminalWidth is that of standard output, 80 where it is none.
func terminalWidth() int {
	const usual, least = 80, 40
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usual
	}
	return max(int(size.Col), least)
}
