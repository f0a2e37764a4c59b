package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	ownapi "kurabe/internal/api/kurabe"
)

// Explanation mirrors the answer of the action Explain.
type Explanation struct {
	Spec       kurabe.InstanceSpec
	Status     *kurabe.InstanceStatus
	Assignment *kurabe.Assignment
	Report     *kurabe.InstanceReport
	Group      *Group
	Host       *kurabe.HostReport
	Backups    Backups
	Snapshots  []Snapshot
	// replica is how it follows its source, "" of what is no read replica.
	replica string
	Plan    struct {
		Reasons                                   []string
		LeftAlone, NewGeneration, NewStatus, Gone bool
		LookAgain                                 time.Time
	}
}

// Command is kurabe explain.
func Command() *cobra.Command {
	var f client.Flags
	var raw bool
	c := &cobra.Command{
		Use:   "explain NAME",
		Short: "Show the state of a DB instance or a DB cluster, and what the service does next",
		Long: `Show the records of a DB instance: its settings (spec), the orders to its host (assignment),
the state that the host reports (report), the status that the API shows (status), and the next
plan with its reasons. Also shown: the kernel's limits that the host can use (levers), the
moments that can be restored and the lag of the log, every snapshot, and the lag of standbys,
readers and replicas, which the hosts are asked for and --json does not have.

NAME can be a DB cluster. Where an instance has the same name, cluster:NAME is the cluster.`,
		Args: client.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			e, body, err := Ask(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if raw {
				fmt.Println(string(body))
				return nil
			}
			e.addFollowing(Following(cmd.Context(), c))
			e.print(os.Stdout)
			return nil
		},
	}
	f.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	c.Flags().BoolVar(&raw, "json", false, "print the records themselves")
	return c
}

// explain asks for what is known of an instance, or a cluster by its name or kurabe.NameKey. body
// is the answer's text.
func Ask(ctx context.Context, c *client.Client, name string) (e Explanation, body []byte, err error) {
	out, err := client.Ask[struct{ Explanation json.RawMessage }](ctx, c, "Explain", ownapi.ExplainInput{Name: name})
	if err != nil {
		return e, nil, err
	}
	if err := json.Unmarshal(out.Explanation, &e); err != nil {
		return e, nil, fmt.Errorf("read what the service tells of %s: %w", name, err)
	}
	var text bytes.Buffer
	err = json.Indent(&text, out.Explanation, "", "  ")
	return e, text.Bytes(), err
}

// addFollowing adds what hosts say now, which is in no record.
func (e *Explanation) addFollowing(all map[string]kurabe.Following) {
	f := all[kurabe.NameKey(e.Spec.Name, e.Spec.Cluster)]
	if e.Group != nil {
		e.Group.following = f
		if e.Status != nil {
			e.Group.waits = e.Status.Waits
		}
	}
	if f.Source != "" && len(f.Followers) > 0 {
		e.replica = "of " + f.Source + ", " + behindWords(f.Followers[0])
	}
}

func (e Explanation) print(w io.Writer) {
	s := e.Spec
	fmt.Fprintf(w, "%s  (%s)\n\n", s.Name, s.ID)
	fmt.Fprintf(w, "spec        revision %d: %s %s, %s, %d GiB of %s, port %d, group %s\n", s.Revision, s.Engine, s.Now.EngineVersion,
		s.Now.Class, s.Now.StorageGiB, s.Now.StorageType, s.Now.Port, s.ParameterGroup)
	if s.Next != nil {
		fmt.Fprintf(w, "            waits for the window %s: %s, %d GiB of %s, version %s\n", s.MaintenanceWindow, s.Next.Class, s.Next.StorageGiB, s.Next.StorageType, s.Next.EngineVersion)
	}
	if st := e.Status; st != nil {
		fmt.Fprintf(w, "status      %s since %s, answers revision %d", st.State, st.Since.Local().Format(time.DateTime), st.SpecRevision)
		if st.Reason != "" {
			fmt.Fprintf(w, "\n            %s", st.Reason)
		}
		fmt.Fprintf(w, "\n            endpoint %s:%d, zone %s, parameters %s\n", st.Address, st.Port, st.Zone, st.ParameterApply)
		if !st.BlockedAt.IsZero() {
			fmt.Fprintf(w, "            commits wait for another server since %s\n", When(st.BlockedAt))
		}
		if len(st.PendingParameters) > 0 {
			fmt.Fprintf(w, "            wait for a reboot: %s\n", strings.Join(st.PendingParameters, ", "))
		}
	}
	if a := e.Assignment; a != nil {
		fmt.Fprintf(w, "assignment  generation %d on %s: %s, boot %d, %s:%d\n", a.Generation, a.Host, a.Goal, a.Boot, a.Address, a.Port)
		fmt.Fprintf(w, "            limits: %s\n", limits(a.Limits))
		fmt.Fprintf(w, "            %d parameters: %s\n", len(a.Settings), strings.Join(firstSettings(a.Settings), ", "))
	}
	e.printStorage(w)
	e.printHost(w)
	if e.replica != "" {
		fmt.Fprintf(w, "replica     %s\n", e.replica)
	}
	e.Group.print(w)
	e.Backups.print(w)
	printSnapshots(w, e.Snapshots)
	fmt.Fprintf(w, "next plan   %s\n", nextPlan(e))
	for _, r := range e.Plan.Reasons {
		fmt.Fprintf(w, "            - %s\n", r)
	}
}

// Storage is what an instance occupies, may still take and may take at most, in
// bytes. What is free is never more than its host's disk has, as told last.
func (e Explanation) Storage() (used, free, limit int64, known bool) {
	if e.Report == nil || e.Assignment == nil || e.Report.UsedBytes == 0 {
		return 0, 0, 0, false
	}
	used, limit = e.Report.UsedBytes, e.Assignment.Limits.StorageBytes
	free = max(0, limit-used)
	if e.Host != nil && e.Host.StorageBytes > 0 {
		free = min(free, e.Host.FreeBytes)
	}
	return used, free, limit, true
}

func (e Explanation) printStorage(w io.Writer) {
	used, free, limit, known := e.Storage()
	if !known {
		return
	}
	fmt.Fprintf(w, "storage     %s used, %s free, cap %s", kurabe.FormatBytes(used), kurabe.FormatBytes(free), kurabe.FormatBytes(limit))
	if e.Spec.MaxStorageGiB > 0 {
		fmt.Fprintf(w, ", grows by itself up to %d GiB", e.Spec.MaxStorageGiB)
	}
	if st := e.Status; st != nil && st.Storage.ScaledGiB > 0 {
		fmt.Fprintf(w, "; %d GiB were asked for", e.Spec.Wanted(st.AppliedNext).StorageGiB)
	}
	if h := e.Host; h != nil && h.StorageBytes > 0 {
		fmt.Fprintf(w, "\n            the host's disk has %s of %s free", kurabe.FormatBytes(h.FreeBytes), kurabe.FormatBytes(h.StorageBytes))
	}
	fmt.Fprintln(w)
}

func (e Explanation) printHost(w io.Writer) {
	if r := e.Report; r != nil {
		done := "at work on " + r.Step
		if r.Done {
			done = "done"
		}
		fmt.Fprintf(w, "report      generation %d %s; process %d, %s used, %d crashes, %d out of memory\n", r.Generation, done, r.PID,
			kurabe.FormatBytes(r.UsedBytes), r.Crashes, r.OOMKills)
		if f := r.Failure; f != nil {
			fmt.Fprintf(w, "            step %s failed %d times: %s\n", f.Step, f.Attempts, f.Message)
		}
	}
	if h := e.Host; h != nil {
		for n, l := range h.Levers {
			head := "            "
			if n == 0 {
				head = "levers      "
			}
			have := "no"
			if l.Available {
				have = "yes"
			}
			fmt.Fprintf(w, "%s%-6s  %s: %s\n", head, l.Name, have, l.Detail)
		}
	}
}

func nextPlan(e Explanation) string {
	switch {
	case e.Plan.LeftAlone:
		return "none: the instance is not planned"
	case e.Plan.Gone:
		return "remove the last records"
	case e.Plan.NewGeneration:
		return "give the host a new assignment"
	case e.Plan.NewStatus:
		return "tell users of a new status"
	case !e.Plan.LookAgain.IsZero():
		return "nothing before " + e.Plan.LookAgain.Local().Format(time.DateTime)
	}
	return "nothing: what was asked for is true"
}

func limits(l kurabe.Limits) string {
	var parts []string
	if l.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%g CPUs", l.CPUs))
	}
	if l.MemoryBytes > 0 {
		parts = append(parts, kurabe.FormatBytes(l.MemoryBytes)+" of memory")
	}
	if l.WriteIOPS > 0 {
		parts = append(parts, fmt.Sprintf("%d IOPS, %s a second", l.WriteIOPS, kurabe.FormatBytes(l.WriteBytesPerSecond)))
	}
	parts = append(parts, kurabe.FormatBytes(l.StorageBytes)+" of storage")
	return strings.Join(parts, ", ")
}

// firstSettings shows a few parameters, sorted; --json has them all.
func firstSettings(settings map[string]string) []string {
	names := make([]string, 0, len(settings))
	for name := range settings {
		names = append(names, name)
	}
	sort.Strings(names)
	const most = 6
	var out []string
	for n, name := range names {
		if n == most {
			return append(out, "…")
		}
		out = append(out, name+"="+settings[name])
	}
	return out
}
