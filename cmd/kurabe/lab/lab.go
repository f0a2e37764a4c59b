package lab

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kurabe/lab/report"
	"kurabe/lab/result"
	"kurabe/lab/run"
	"kurabe/lab/study"
)

// Command is kurabe lab; version is recorded with each run.
func Command(version string) *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Measure what a feature costs, with confidence intervals",
		Long: `A study compares variants of a server under the same load, in blocks of random order, with
each trial starting from the same data. Its result is the cost of each variant with a 95 %
confidence interval, and the difference between two equal servers on this machine.

  kurabe lab ls                        the studies that are built in
  kurabe lab run general-log --quick   one of them, in under three minutes
  kurabe lab report FILE               the answer, as a table or as a page (--html)
  kurabe lab init mine.yaml            a study of your own, to be edited`,
	}
	c.AddCommand(lsCommand(), runCommand(version), reportCommand(), recomputeCommand(), compareCommand(), exportCommand(), initCommand(), cleanCommand())
	return c
}

func lsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the built-in studies with the question of each", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, name := range study.Builtins() {
				s, err := study.Builtin(name)
				if err != nil {
					return err
				}
				fmt.Printf("%-12s %s\n%-12s %s; variants: %s\n", s.Name, s.Question, "", strings.Join(s.Engines, ", "), strings.Join(variantNames(s), ", "))
			}
			return nil
		},
	}
}

func variantNames(s *study.Study) []string {
	var names []string
	for _, v := range s.Variants {
		names = append(names, v.Name)
	}
	return names
}

// loadStudy finds a built-in study, or reads a file.
func loadStudy(name string) (*study.Study, error) {
	s, err := study.Builtin(name)
	if err == nil {
		return s, nil
	}
	data, readErr := readBounded(name, study.SizeMax)
	if errors.Is(readErr, fs.ErrNotExist) {
		return nil, fmt.Errorf("%q is neither a built-in study (%s) nor a file", name, strings.Join(study.Builtins(), ", "))
	}
	if readErr != nil {
		return nil, readErr
	}
	return study.Parse(name, data, study.Options{CheckMetric: result.CheckMetric})
}

// readBounded reads a file that may be anything.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return data, err
}

func reportCommand() *cobra.Command {
	var html string
	c := &cobra.Command{
		Use: "report FILE", Short: "Show what a study found", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := result.Read(args[0])
			if err != nil {
				return err
			}
			if html == "" {
				return report.Terminal(os.Stdout, f, terminalWidth())
			}
			return writePage(html, args[0], f)
		},
	}
	c.Flags().StringVar(&html, "html", "", "write a page to this file instead: one file, no network, readable without JavaScript")
	return c
}

// writePage writes the page of a file, whole or not at all.
func writePage(path, source string, f *result.File) (failure error) {
	out, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if failure != nil {
			_ = os.Remove(out.Name()) // the other error is the one to be told
		}
	}()
	w := bufio.NewWriter(out)
	err = report.HTML(w, f, report.Options{File: filepath.Base(source), SHA256: fileSum(source)})
	if err = errors.Join(err, w.Flush(), out.Chmod(0o644), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

func recomputeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "recompute FILE", Short: "Compute every figure of a study again from its trials", Args: cobra.ExactArgs(1),
		Long: `Check the file from its first line to its last (format, chain of hashes, every trial) and
compute all estimates again from the trials: one line for each, tab-separated.`,
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := result.Read(args[0])
			if err != nil {
				return err
			}
			all, err := result.Estimates(f, run.Level)
			if err != nil {
				return err
			}
			w := bufio.NewWriter(os.Stdout)
			fmt.Fprintln(w, "workload\tvariant\tmetric\tratio\tlow\thigh\tlevel\tpairs\tmethod\tbaseline_median\tvariant_median\tsd\tp\tholm\tverdict\twhy")
			for _, e := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%.6g\t%.6g\t%.6g\t%.6g\t%d\t%s\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%s\t%s\n", e.Workload, e.Variant, e.Metric,
					e.Ratio.Estimate, e.Ratio.Interval.Low, e.Ratio.Interval.High, e.Ratio.Interval.Level, e.Ratio.Pairs, e.Ratio.Method,
					e.A, e.B, e.SD, e.P, e.Holm, e.Verdict, e.Why)
			}
			return w.Flush()
		},
	}
}

func exportCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "export FILE", Short: "Write the trials for other programs", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			write := map[string]func(io.Writer, *result.File) error{"go": result.WriteBenchfmt, "csv": result.WriteCSV, "estimates": func(w io.Writer, f *result.File) error { return result.WriteEstimatesCSV(w, f, run.Level) }}[format]
			if write == nil {
				return fmt.Errorf("--format %q is none of go (for benchstat), csv (one line a trial), estimates (one line a ratio)", format)
			}
			f, err := result.Read(args[0])
			if err != nil {
				return err
			}
			w := bufio.NewWriter(os.Stdout)
			return errors.Join(write(w, f), w.Flush())
		},
	}
	c.Flags().StringVar(&format, "format", "go", "go, csv or estimates")
	return c
}

func initCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init [FILE]", Short: "Write a commented study to start from", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := "study.yaml"
			if len(args) == 1 {
				path = args[0]
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if err != nil {
				return err // it names the file, and is never overwritten
			}
			_, err = f.Write(study.Template())
			if err = errors.Join(err, f.Close()); err == nil {
				fmt.Printf("%s is written; edit it, then: kurabe lab run %s\n", path, path)
			}
			return err
		},
	}
}

// fileSum is the SHA-256 of a file, "" when it cannot be read.
func fileSum(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
