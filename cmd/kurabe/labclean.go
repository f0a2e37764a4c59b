package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kurabe/lab/result"
	"kurabe/lab/target"
)

func labCleanCommand() *cobra.Command {
	var f labTargetFlags
	c := &cobra.Command{
		Use: "clean", Short: "Remove what a run left behind that could not end", Args: cobra.NoArgs,
		Long: `Remove what studies made on a target and could not remove: private services of runs that
died, instances, snapshots and parameter groups with the tag kurabe:lab, databases whose
names begin with kurabe_lab_. What belongs to a run that goes on is left alone.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := f.options
			o.Region = f.client.region
			said, err := target.CleanPrivate(cmd.Context(), o)
			var more []string
			switch kind := f.kind(); {
			case err != nil || kind == targetPrivate:
			case strings.Contains(kind, "://"):
				more, err = target.CleanURL(cmd.Context(), kind, o)
			default:
				if kind == targetKurabe {
					o.Endpoint = f.client.endpoint
					if os.Getenv("AWS_ACCESS_KEY_ID") == "" {
						o.CredentialsFile = filepath.Join(f.client.data, credentialsFile)
					}
				}
				more, err = target.CleanRDS(cmd.Context(), o)
			}
			said = append(said, more...)
			for _, line := range said {
				fmt.Println(line)
			}
			if len(said) == 0 && err == nil {
				fmt.Println("nothing is left of any run")
			}
			return err
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.options.Others, "others", false, "also what runs of other machines made, of which this one cannot know if they go on")
	return c
}

func labCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use: "compare FILE FILE", Short: "Compare what two runs of a study found", Args: cobra.ExactArgs(2),
		Long: `Say of every cell whether two runs of a study agree: how much larger a variant's ratio to
its baseline is in the second run, with a 95 % interval of blocks that are not paired.
One in twenty of them excludes 1 by chance.`,
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := result.Read(args[0])
			if err != nil {
				return err
			}
			b, err := result.Read(args[1])
			if err != nil {
				return err
			}
			return printComparison(a, b)
		},
	}
}

func printComparison(a, b *result.File) error {
	differ, err := result.Differences(a, b)
	if err != nil {
		return err
	}
	all, err := result.Compare(a, b)
	if err != nil {
		return err
	}
	for _, d := range differ {
		fmt.Printf("differs: %s: %s, then %s\n", d.Name, d.Baseline, d.Value)
	}
	fmt.Printf("%-20s %-16s %-22s %9s %9s  %s\n", "workload", "variant", "metric", "first", "second", "second / first")
	for _, c := range all {
		verdict := "agree"
		switch {
		case c.Why != "":
			verdict = c.Why
		case !c.Compatible:
			verdict = "DIFFER"
		}
		i := c.Ratio.Interval
		fmt.Printf("%-20s %-16s %-22s %9.3f %9.3f  %.3f [%.3f, %.3f] %s\n", c.Workload, c.Variant, c.Metric, c.A.Ratio.Estimate, c.B.Ratio.Estimate, c.Ratio.Estimate, i.Low, i.High, verdict)
	}
	return nil
}
