package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/service"
	"kurabe/internal/volume"
)

// poolCommand looks after the pool of a data folder on this machine. It is no client
// of the API: it works on files and mounts, as root.
func poolCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "pool",
		Short: "Show, grow, unmount or remove the pool of a data folder (kurabe server --pool loop)",
		Args:  cobra.NoArgs,
	}
	data := c.PersistentFlags().String("data", client.EnvOr("KURABE_DATA", client.DefaultData), "data folder of the service (KURABE_DATA)")
	at := func() (volume.Pool, string, error) {
		folder, err := filepath.Abs(*data)
		return service.PoolAt(folder, folder), folder, err
	}
	c.AddCommand(
		&cobra.Command{Use: "show", Short: "Say how full the pool and its disk are", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
			p, _, err := at()
			if err != nil {
				return err
			}
			return showPool(p)
		}},
		&cobra.Command{Use: "grow SIZE", Short: "Make the pool larger, while databases run: kurabe pool grow 200GiB", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
			p, _, err := at()
			if err != nil {
				return err
			}
			return growPool(p, args[0])
		}},
		&cobra.Command{Use: "unmount", Short: "Unmount the pool of a service that has ended with its databases", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
			p, folder, err := at()
			if err != nil {
				return err
			}
			return alone(folder, func() error { return unmountPool(p) })
		}},
		&cobra.Command{Use: "remove", Short: "Remove a pool that holds neither instances nor snapshots", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			p, folder, err := at()
			if err != nil {
				return err
			}
			return alone(folder, func() error { return removePool(cmd, p, folder) })
		}},
	)
	return c
}

// alone does something while no service runs on the data folder.
func alone(data string, do func() error) error {
	lock, err := volume.DirLock(data)
	if err != nil {
		return err
	}
	return errors.Join(do(), lock.Close())
}

func showPool(p volume.Pool) error {
	mounted, err := p.Mounted()
	if err != nil {
		return err
	}
	s, err := p.Space()
	if err != nil {
		return err
	}
	const gib = 1 << 30
	fmt.Printf("image     %s, %.1f GiB, %.1f of them given by the disk\n", p.Image, float64(s.SizeBytes)/gib, float64(s.ImageBytes)/gib)
	fmt.Printf("disk      %.1f GiB free\n", float64(s.HostFreeBytes)/gib)
	if mounted {
		fmt.Printf("mounted   at %s, %.1f GiB used, %.1f free, %.1f held back as the disk has no room for them\n",
			p.Dir, float64(s.UsedBytes)/gib, float64(s.FreeBytes)/gib, float64(s.HeldBytes)/gib)
	} else {
		fmt.Println("mounted   not here")
	}
	return nil
}

func growPool(p volume.Pool, text string) error {
	size, err := service.ParseSize(text)
	if err != nil {
		return err
	}
	if err := p.Extend(volume.PoolOptions{SizeBytes: size}); err != nil {
		return err
	}
	if mounted, err := p.Mounted(); err != nil {
		return err
	} else if !mounted {
		fmt.Println("The image has grown; the running service follows within seconds, or the next one when it starts.")
		return nil
	}
	return showPool(p)
}

func unmountPool(p volume.Pool) error {
	err := p.Unmount()
	if errors.Is(err, volume.ErrPoolBusy) {
		return fmt.Errorf("%w: databases run in it, or a shell stands there; start the service with --pool loop --stop-databases-on-exit and end it, which stops them", err)
	}
	return err
}

// removePool mounts the pool to see that it is empty.
func removePool(cmd *cobra.Command, p volume.Pool, data string) error {
	if !p.Exists() {
		return fmt.Errorf("there is no pool: %s does not exist", p.Image)
	}
	if err := p.Ensure(cmd.Context(), volume.PoolOptions{}); err != nil {
		return err
	}
	for _, name := range []string{"instances", "snapshots"} {
		entries, err := os.ReadDir(filepath.Join(p.Dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("look into the pool: %w", err)
		}
		if len(entries) != 0 {
			return fmt.Errorf("the pool still has %d %s: start the service with --pool loop and delete them", len(entries), name)
		}
	}
	if err := unmountPool(p); err != nil {
		return err
	}
	for _, name := range service.PoolFolders {
		path := filepath.Join(data, name)
		if _, err := os.Readlink(path); err == nil {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	// The image last: as long as it is there, no service starts without a pool.
	return errors.Join(os.Remove(p.Image), os.Remove(p.Dir), volume.SyncDir(data))
}
