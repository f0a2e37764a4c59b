package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/control"
)

// defaultVerifyEvery is the schedule of verifications: a week is what restores from
// one daily snapshot in seven costs.
const defaultVerifyEvery = 7 * 24 * time.Hour

func verifyCommand() *cobra.Command {
	var f client.Flags
	var noWait bool
	c := &cobra.Command{
		Use:   "verify NAME",
		Short: "Restore a snapshot into a temporary folder and check it for damage",
		Long: `Restore a snapshot into a temporary folder, start a private server on it, replay the log
that follows it, and check for damage: the checksums of all files and pages, and the engine's
own tools. The copy is removed afterwards. The check runs at low priority.

NAME is a snapshot, or a DB instance: then its newest automated snapshot is checked, or its
newest manual one if there is no other. The command waits for the result; its exit status is
1 if damage was found. Ctrl-C ends the command and not the verification.`,
		Args: client.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			out, err := client.Ask[ownapi.VerificationOutput](cmd.Context(), c, "StartVerification", ownapi.StartVerificationInput{Name: args[0]})
			if err != nil {
				return err
			}
			wish := out.Verification
			if noWait {
				fmt.Printf("verification %d of snapshot %s is asked for\n", wish.Seq, wish.Snapshot)
				return nil
			}
			v, err := waitVerified(cmd.Context(), c, wish)
			if err != nil {
				return err
			}
			return printVerified(os.Stdout, wish.Snapshot, v)
		},
	}
	f.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	c.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the result")
	return c
}

// waitVerified shows how far a verification is until it has a result.
func waitVerified(ctx context.Context, c *client.Client, wish control.Verified) (kurabe.Verification, error) {
	p := client.NewProgress(os.Stderr, wish.Snapshot)
	defer p.End()
	for {
		out, err := client.Ask[ownapi.VerificationOutput](ctx, c, "DescribeVerification", ownapi.DescribeVerificationInput{SnapshotName: wish.Snapshot, Seq: wish.Seq})
		if err != nil {
			return kurabe.Verification{}, err
		}
		v := out.Verification
		switch {
		case v.Newest != nil && v.Newest.Seq >= wish.Seq:
			return *v.Newest, nil
		case v.State != kurabe.SnapshotAvailable:
			return kurabe.Verification{}, fmt.Errorf("snapshot %s cannot be verified any more: it is %s", v.Snapshot, v.State)
		case v.Verifying != "":
			p.Show(v.Verifying)
		default:
			p.Show("asked for")
		}
		select {
		case <-ctx.Done():
			return kurabe.Verification{}, ctx.Err()
		case <-time.After(client.PollEvery):
		}
	}
}

// printVerified shows a result; damage is an error.
func printVerified(w io.Writer, name string, v kurabe.Verification) error {
	if !v.OK {
		for _, p := range v.Problems {
			fmt.Fprintf(w, "  %s\n", p)
		}
		return fmt.Errorf("snapshot %s cannot be trusted: damage was found in %s", name, v.Duration.Round(time.Millisecond))
	}
	fmt.Fprintf(w, "snapshot %s was restored and verified in %s\n", name, v.Duration.Round(time.Millisecond))
	if !v.Marker.IsZero() {
		fmt.Fprintf(w, "  newest marker in it   %s\n", v.Marker.Local().Format(time.DateTime))
	}
	if !v.Until.IsZero() {
		fmt.Fprintf(w, "  log replayed to       %s\n", v.Until.Local().Format(time.DateTime))
	}
	for _, n := range v.Notes {
		fmt.Fprintf(w, "  %s\n", n)
	}
	return nil
}
