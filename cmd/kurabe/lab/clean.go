package lab

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"kurabe/lab/result"
)

func cleanCommand() *cobra.Command {
	var f targetFlags
	c := &cobra.Command{
		Use: "clean", Short: "Remove what an interrupted run left behind", Args: cobra.NoArgs,
		Long: `Remove what interrupted runs left on a target: private services, instances, snapshots and
parameter groups with the tag kurabe:lab, and databases whose names begin with kurabe_lab_.
What belongs to a run that still goes on is kept.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := f.place()
			if err != nil {
				return err
			}
			said, err := p.clean(cmd.Context())
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
	c.Flags().BoolVar(&f.options.Others, "others", false, "also remove what runs on other machines created; this machine cannot know whether they still go on")
	return c
}

func compareCommand() *cobra.Command {
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
		fmt.Printf("%-20s %-16s %-22s %9s %9s  %s\n", c.Workload, c.Variant, c.Metric, ratio(c.A), ratio(c.B), compared(c))
	}
	return nil
}

// compared is the end of a line: how much larger the second ratio is, and whether that is
// a difference. Runs that are too short for an interval have none, and say so.
func compared(c result.Comparison) string {
	i := c.Ratio.Interval
	switch {
	case c.Ratio.Pairs == 0:
		return "nothing to compare: no block has it and the baseline in both"
	case math.IsNaN(i.Low) && c.A.Ratio.Pairs == c.B.Ratio.Pairs:
		return fmt.Sprintf("%.3f no interval from %d blocks", c.Ratio.Estimate, c.A.Ratio.Pairs)
	case math.IsNaN(i.Low):
		return fmt.Sprintf("%.3f no interval from %d and %d blocks", c.Ratio.Estimate, c.A.Ratio.Pairs, c.B.Ratio.Pairs)
	case !c.Compatible:
		return fmt.Sprintf("%.3f [%.3f, %.3f] DIFFER", c.Ratio.Estimate, i.Low, i.High)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f] agree", c.Ratio.Estimate, i.Low, i.High)
}

// ratio is one to be read, "-" where no block has it.
func ratio(e result.Estimate) string {
	if e.Ratio.Pairs == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", e.Ratio.Estimate)
}
