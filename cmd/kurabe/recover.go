package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"kurabe"
	"kurabe/cmd/kurabe/client"
	"kurabe/cmd/kurabe/explain"
	ownapi "kurabe/internal/api/kurabe"
)

func recoverCommand() *cobra.Command {
	var f client.Flags
	var accept, yes bool
	c := &cobra.Command{
		Use:   "recover NAME",
		Short: "Promote a standby that lacks commits, with the loss of data",
		Long: `For a Multi-AZ instance whose primary does not come back and whose standby does not have
every commit. Kurabe never promotes such a standby by itself, because acknowledged commits
would be lost.

Without --accept-data-loss the command prints what would be lost and changes nothing. With
it, the command asks for the name of the instance first, unless --yes is given. The old
primary is stopped before the standby is promoted; it becomes the standby, and commits that
only it has are rolled back. If the old primary still has its data, wait for it or repair it
instead: the service keeps trying to start it.
A restore to the last moment (restore-db-instance-to-point-in-time) may lose less, since
the log in the backups is that of the primary.

The exit status is 0 when the loss was accepted, 1 otherwise.`,
		Example: "  kurabe recover shop\n  kurabe recover shop --accept-data-loss",
		Args:    client.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			return recover(cmd.Context(), c, args[0], accept, yes)
		},
	}
	f.Add(c)
	c.ValidArgsFunction = f.InstanceNames
	c.Flags().BoolVar(&accept, "accept-data-loss", false, "have the standby take over, with the loss that is shown")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// errNotAccepted ends a command that only looked.
var errNotAccepted = errors.New("nothing was changed; to go on, add --accept-data-loss")

func recover(ctx context.Context, c *client.Client, name string, accept, yes bool) error {
	e, _, err := explain.Ask(ctx, c, name)
	if err != nil {
		return err
	}
	if e.Group == nil {
		return fmt.Errorf("%s has one server: restore a backup instead", name)
	}
	to := other(e.Group)
	if to == nil {
		return fmt.Errorf("%s has no second server: restore a backup instead", name)
	}
	if len(e.Group.Sync) > 0 {
		return fmt.Errorf("nothing need be lost: %s has every commit, and takes over by itself when the serving server ends", explain.JoinIDs(e.Group.Sync))
	}
	printLoss(e.Group, os.Stdout, e.Spec.Engine, *to)
	if !accept {
		return errNotAccepted
	}
	if !yes && !client.Confirmed("This CANNOT BE TAKEN BACK.", name) {
		return errors.New("nothing was changed")
	}
	in := ownapi.AcceptDataLossInput{Name: name, Epoch: int64(e.Group.Epoch), To: to.ID}
	if _, err := client.Ask[ownapi.AcceptDataLossOutput](ctx, c, "AcceptDataLoss", in); err != nil {
		return err
	}
	fmt.Printf("The loss is accepted. %s takes over as soon as the old server has ended: see kurabe explain %s\n", to.ID, name)
	return nil
}

// other is the server that could take the writer's place, nil without one.
func other(g *explain.Group) *explain.Server {
	for n, s := range g.Servers {
		if s.ID != g.Writer {
			return &g.Servers[n]
		}
	}
	return nil
}

// printLoss says what would be lost, as exactly as it is known.
func printLoss(g *explain.Group, w io.Writer, engine kurabe.EngineName, to explain.Server) {
	var from *kurabe.InstanceReport
	for _, s := range g.Servers {
		if s.ID == g.Writer {
			from = s.Report
			fmt.Fprintf(w, "%s (zone %s) may write: %s.\n", s.ID, s.Zone, s.Seen())
		}
	}
	fmt.Fprintf(w, "%s (zone %s) could take over: %s.\n\n", to.ID, to.Zone, to.Seen())
	fmt.Fprintf(w, "Since %s no commit has waited for it. What clients were told is safe since then, and it has not got, WOULD BE LOST", g.Since.UTC().Format("2006-01-02 15:04:05.000 MST"))
	switch behind, known := lacks(from, to.Report); {
	case !known:
		fmt.Fprint(w, ".\nHow much that is, is not known: the log of one of them has not been seen.\n")
	case behind <= 0:
		fmt.Fprint(w, ".\nBy what was last seen of both it lacks nothing; what was written since then is not known.\n")
	default:
		fmt.Fprintf(w, ":\n%s, by what was last seen of both.\n", amount(engine, behind))
	}
}

// lacks is how much of the log one server has and another has not, as they were seen last,
// and whether both were.
func lacks(from, to *kurabe.InstanceReport) (int64, bool) {
	if from == nil || from.Role == nil || to == nil || to.Role == nil || from.Role.Position == 0 || to.Role.Position == 0 {
		return 0, false
	}
	return from.Role.Position - to.Role.Position, true
}

// amount is in the unit of the engine's log.
func amount(engine kurabe.EngineName, n int64) string {
	if engine == kurabe.MariaDB {
		return fmt.Sprintf("%d transactions", n)
	}
	return kurabe.FormatBytes(n) + " of log"
}
