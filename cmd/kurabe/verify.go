package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/internal/control"
)

// defaultVerifyEvery is the schedule of verifications: a week is what restores from
// one daily snapshot in seven costs.
const defaultVerifyEvery = 7 * 24 * time.Hour

func verifyCommand() *cobra.Command {
	var f clientFlags
	var noWait bool
	c := &cobra.Command{
		Use:   "verify NAME",
		Short: "Restore a backup beside everything else, and look for damage",
		Long: `Have the service restore a snapshot into a folder of its own, recover it by a server
that nobody else can reach, replay the log that follows it, and look for damage: the
checksums of all files and pages, and the engine's own tools. Nothing of the copy stays,
and databases are kept from feeling it.

NAME is a DB instance, whose newest automated snapshot is taken (its newest manual one
if there is no other), or a snapshot. The command waits for the result; its exit status
is 1 when damage was found. It may be ended: the verification goes on.`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			wish, err := c.askVerify(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if noWait {
				fmt.Printf("verification %d of snapshot %s is asked for\n", wish.Seq, wish.Snapshot)
				return nil
			}
			v, err := c.waitVerified(cmd.Context(), wish)
			if err != nil {
				return err
			}
			return printVerified(os.Stdout, wish.Snapshot, v)
		},
	}
	f.add(c)
	c.ValidArgsFunction = f.instanceNames
	c.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the result")
	return c
}

func (c *client) askVerify(ctx context.Context, name string) (control.Verified, error) {
	var v control.Verified
	body, err := c.post(ctx, "/kurabe/verify", url.Values{"name": {name}})
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(body, &v)
}

// waitVerified shows how far a verification is until it has a result.
func (c *client) waitVerified(ctx context.Context, wish control.Verified) (kurabe.Verification, error) {
	p := newProgress(os.Stderr, wish.Snapshot)
	defer p.end()
	query := url.Values{"name": {wish.Snapshot}, "seq": {strconv.FormatInt(wish.Seq, 10)}}
	for {
		body, err := c.get(ctx, "/kurabe/verify", query)
		if err != nil {
			return kurabe.Verification{}, err
		}
		var v control.Verified
		if err := json.Unmarshal(body, &v); err != nil {
			return kurabe.Verification{}, err
		}
		switch {
		case v.Newest != nil && v.Newest.Seq >= wish.Seq:
			return *v.Newest, nil
		case v.State != kurabe.SnapshotAvailable:
			return kurabe.Verification{}, fmt.Errorf("snapshot %s cannot be verified any more: it is %s", v.Snapshot, v.State)
		case v.Verifying != "":
			p.show(v.Verifying)
		default:
			p.show("asked for")
		}
		select {
		case <-ctx.Done():
			return kurabe.Verification{}, ctx.Err()
		case <-time.After(pollEvery):
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

// verifier answers /kurabe/verify.
type verifier struct{ control *control.Control }

func (v verifier) wish(r *http.Request) (any, error) {
	name := r.URL.Query().Get("name")
	if name == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "name must be that of a DB instance or a snapshot")
	}
	return v.control.Verify(r.Context(), name)
}

func (v verifier) look(r *http.Request) (any, error) {
	query := r.URL.Query()
	seq, err := strconv.ParseInt(query.Get("seq"), 10, 64)
	if err != nil && query.Get("seq") != "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "seq %.40q is no number", query.Get("seq"))
	}
	return v.control.Verification(query.Get("name"), seq)
}
