package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"kurabe/lab/report"
	"kurabe/lab/result"
	"kurabe/lab/run"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// labTargetFlags say where a study is run.
type labTargetFlags struct {
	client  clientFlags
	name    string
	options target.Options
}

func (f *labTargetFlags) add(c *cobra.Command) {
	f.client.add(c)
	fs := c.Flags()
	fs.StringVar(&f.name, "target", "", `where: "kurabe" (the service at --endpoint), "rds" (Amazon's, with its usual credentials), "private" (a service of its own for as long as it takes), or the URL of a server, as postgres://user@host/db (default: the service at --endpoint when it answers, else private)`)
	fs.StringVar(&f.options.PasswordFile, "password-file", "", "file with the password of a URL; else PGPASSWORD or MYSQL_PWD")
	fs.StringVar(&f.options.EngineVersion, "engine-version", "", "version of the engine (default: that of the service)")
	fs.StringVar(&f.options.Class, "class", "", "DB instance class of variants that name none (default: one that suits)")
	fs.StringVar(&f.options.SubnetGroup, "subnet-group", "", "DB subnet group, on Amazon's service")
	fs.StringSliceVar(&f.options.SecurityGroups, "security-groups", nil, "VPC security groups, on Amazon's service")
	fs.BoolVar(&f.options.Public, "public", false, "give instances a public address, on Amazon's service")
}

// Names of targets.
const (
	targetKurabe  = "kurabe"
	targetRDS     = "rds"
	targetPrivate = "private"
)

// aliveTime bounds asking whether a service answers.
const aliveTime = 2 * time.Second

// kind decides which target is meant.
func (f *labTargetFlags) kind() string {
	if f.name != "" {
		return f.name
	}
	if _, err := f.client.client(); err != nil {
		return targetPrivate // without credentials there is no asking
	}
	client := http.Client{Timeout: aliveTime}
	answer, err := client.Get(strings.TrimSuffix(f.client.endpoint, "/") + "/healthz")
	if err != nil {
		return targetPrivate
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // only to end it
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return targetPrivate
	}
	return targetKurabe
}

// open makes the target of a study for an engine.
func (f *labTargetFlags) open(ctx context.Context, engine string, step func(string)) (target.Target, error) {
	o := f.options
	o.Engine, o.Step, o.Region = engine, step, f.client.region
	switch kind := f.kind(); {
	case strings.Contains(kind, "://"):
		return target.URL(ctx, kind, o)
	case kind == targetKurabe:
		o.Endpoint = f.client.endpoint
		if os.Getenv("AWS_ACCESS_KEY_ID") == "" {
			o.CredentialsFile = filepath.Join(f.client.data, credentialsFile)
		}
		return target.RDS(ctx, o)
	case kind == targetRDS:
		return target.RDS(ctx, o)
	case kind == targetPrivate:
		return target.Private(ctx, o)
	default:
		return nil, fmt.Errorf("--target %q is none of kurabe, rds, private and the URL of a server", kind)
	}
}

// labRunFlags say what of a study is run.
type labRunFlags struct {
	target            labTargetFlags
	quick, published  bool
	dry               bool
	blocks            int
	scale             float64
	seed              uint64
	engine            string
	out, resume, html string
	variants          []string
}

func labRunCommand() *cobra.Command {
	var f labRunFlags
	c := &cobra.Command{
		Use:   "run STUDY",
		Short: "Run a study: a built-in one, or a file",
		Long: `Run a study and say what it found. Before it begins it says how long that takes and what
precision to expect. Every trial is in the result file as soon as it is over: Ctrl-C ends
the run in order, and --resume goes on. What the lab creates carries the tag kurabe:lab
or a name that begins with kurabe_lab_, and is removed however the run ends; after a
crash, kurabe lab clean removes it.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 != (f.resume == "") {
				return errors.New("name a study, or a result file with --resume, and not both")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return f.run(ctx, strings.Join(args, ""))
		},
	}
	f.target.add(c)
	fs := c.Flags()
	fs.BoolVar(&f.quick, "quick", false, "a first answer in minutes: less data, shorter trials, what the study's section quick says")
	fs.BoolVar(&f.published, "as-published", false, "the sizes and durations of the published measurement")
	fs.BoolVar(&f.dry, "dry-run", false, "only say what would be run, and how long that takes")
	fs.IntVar(&f.blocks, "blocks", 0, "measure exactly so many blocks")
	fs.Float64Var(&f.scale, "scale", 1, "times the data")
	fs.Uint64Var(&f.seed, "seed", 0, "of every random order (default: chosen, and recorded)")
	fs.StringVar(&f.engine, "engine", "", "postgres, mariadb or mysql (default: the first of the study that there is)")
	fs.StringSliceVar(&f.variants, "variants", nil, "only these variants and the baseline")
	fs.StringVar(&f.out, "out", "", "result file (default STUDY-TIME.jsonl); the page goes beside it")
	fs.StringVar(&f.resume, "resume", "", "go on with this result file")
	fs.StringVar(&f.html, "html", "", "file of the page (default: beside the result file)")
	fs.BoolVar(&f.target.options.WritesAllowed, "i-know-this-writes", false, "let the study write in the database that the URL names, which it did not create")
	return c
}

// run is the story of the command.
func (f *labRunFlags) run(ctx context.Context, name string) (failure error) {
	s, engine, err := f.study(ctx, name)
	if err != nil {
		return err
	}
	if f.dry {
		fmt.Print(study.Price(s, labResetTime, nil))
		return nil
	}
	step := func(text string) { fmt.Fprintln(os.Stderr, text) }
	t, err := f.target.open(ctx, engine, step)
	if err != nil {
		return err
	}
	path := f.resume
	if path == "" {
		fmt.Fprint(os.Stderr, study.Price(s, labResetTime, nil))
		if path = f.out; path == "" {
			path = fmt.Sprintf("%s-%s.jsonl", s.Name, time.Now().UTC().Format("20060102-150405"))
		}
	}
	err = run.Run(ctx, run.Options{
		Study: s, Target: t, Path: path, Resume: f.resume != "", Command: labCommandLine(), Lab: labVersions(),
		Folder: os.TempDir(), Say: run.Display(os.Stderr, isTerminal(os.Stderr)),
	})
	file, readErr := result.Read(path)
	if readErr != nil || len(file.Trials) == 0 {
		return err // nothing was measured, and err says why
	}
	fmt.Fprintf(os.Stderr, "results: %s\n", path)
	if f.html == "" {
		f.html = strings.TrimSuffix(path, ".jsonl") + ".html"
	}
	if pageErr := writePage(f.html, path, file); pageErr != nil {
		err = errors.Join(err, pageErr)
	} else {
		fmt.Fprintf(os.Stderr, "page: %s\n", f.html)
	}
	if errors.Is(err, run.ErrInterrupted) {
		fmt.Fprintf(os.Stderr, "to go on: kurabe lab run --resume %s, with the flags of the target as they were\n", path)
	}
	return errors.Join(report.Terminal(os.Stdout, file, terminalWidth()), err)
}

// labResetTime is what a reset is taken for before any was seen: a restore on a file
// system that clones, or of little data.
const labResetTime = 1500 * time.Millisecond

// study gives the study as the flags change it, and the engine to ask for.
func (f *labRunFlags) study(ctx context.Context, name string) (*study.Study, string, error) {
	if f.resume != "" {
		file, err := result.Read(f.resume)
		if err != nil {
			return nil, "", err
		}
		return &file.Study.Definition, file.Study.Engine, nil
	}
	s, err := loadStudy(name)
	if err != nil {
		return nil, "", err
	}
	engine := f.engine
	if engine == "" {
		engine = f.engineOf(ctx, s)
	}
	if s, err = study.ForEngine(s, engine); err != nil {
		return nil, "", err
	}
	if f.quick && f.published {
		return nil, "", errors.New("--quick and --as-published exclude each other")
	}
	if f.quick {
		s = study.Quick(s)
	}
	if f.published {
		if s, err = study.AsPublished(s); err != nil {
			return nil, "", err
		}
	}
	if f.scale != 1 {
		if s, err = study.Scaled(s, f.scale); err != nil {
			return nil, "", err
		}
	}
	if f.blocks != 0 {
		if s, err = study.WithBlocks(s, f.blocks); err != nil {
			return nil, "", err
		}
	}
	if s, err = f.only(s); err != nil {
		return nil, "", err
	}
	s = study.WithTwin(s)
	s.Plan.Seed = f.seed
	return s, engine, nil
}

// only leaves out the variants that were not named.
func (f *labRunFlags) only(s *study.Study) (*study.Study, error) {
	if len(f.variants) == 0 {
		return s, nil
	}
	all := variantNames(s)
	for _, name := range f.variants {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("--variants %s: the study %s has %s", name, s.Name, strings.Join(all, ", "))
		}
	}
	rest := slices.DeleteFunc(all, func(name string) bool { return name == s.Baseline || slices.Contains(f.variants, name) })
	return study.Without(s, rest...), nil
}

// engineOf is the engine of the server that a URL names, else the study's first. Many
// call a MariaDB mysql://, so the server is asked; of one that does not answer the URL's
// word is taken, and the run says why.
func (f *labRunFlags) engineOf(ctx context.Context, s *study.Study) string {
	scheme, _, isURL := strings.Cut(f.target.name, "://")
	if !isURL {
		return s.Engines[0]
	}
	if about, err := target.Ask(ctx, f.target.name, f.target.options); err == nil {
		return about.Engine
	}
	switch scheme {
	case "mariadb":
		return study.MariaDB
	case "mysql":
		return study.MySQL
	case "postgres", "postgresql":
		return study.Postgres
	}
	return s.Engines[0]
}

// labCommandLine is how the run was asked for. A URL may hold a password.
func labCommandLine() []string {
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

// labVersions are those of this program.
func labVersions() map[string]string {
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
