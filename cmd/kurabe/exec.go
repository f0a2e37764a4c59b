package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"kurabe/cmd/kurabe/client"
	"kurabe/internal/control"
	"kurabe/internal/proc"
)

// hostsFile is where every resolver of this machine looks first.
const hostsFile = "/etc/hosts"

// namesEvery is how often the names that a command sees are brought up to date. What is made is
// listed before it is available, and takes longer than this until then: so a command that was
// told a name finds it. A resolver keeps a name that was not there for seconds (Java: ten).
const namesEvery = 200 * time.Millisecond

// insideVariable tells the process in the new namespace which file it is to see.
const insideVariable = "KURABE_EXEC_HOSTS"

func execCommand() *cobra.Command {
	var f client.Flags
	c := &cobra.Command{
		Use:   "exec -- COMMAND [ARGUMENTS]",
		Short: "Run a command that can resolve endpoint names",
		Long: `Run a command that can resolve endpoint names without DNS. The command and its children see
their own /etc/hosts with these names; nothing else on this machine does. New endpoints are
added before they are available. No root is needed where users may create namespaces.

Only a service with --endpoint-suffix has endpoint names.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if inside := os.Getenv(insideVariable); inside != "" {
				return becomeInside(inside, args)
			}
			c, err := f.Client()
			if err != nil {
				return err
			}
			return runNamed(cmd.Context(), c, args)
		},
	}
	f.Add(c)
	c.Flags().SetInterspersed(false)
	return c
}

// runNamed starts the command in a mount namespace of its own, and keeps its file up to date
// while it runs.
func runNamed(ctx context.Context, c *client.Client, args []string) error {
	list, err := c.NamedEndpoints(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kurabe-exec-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "hosts")
	text := hostsText(list)
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(file, text, 0o644)); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(self, append([]string{"exec", "--"}, args...)...)
	command.Env = append(os.Environ(), insideVariable+"="+file)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = ownNamespace()
	// The terminal sends its signals to both; the command decides what they mean.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := command.Start(); err != nil {
		return fmt.Errorf("make a namespace for the command: %w; as root it can be made, or where users may make namespaces (kernel.unprivileged_userns_clone)", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	tick := time.NewTicker(namesEvery)
	defer tick.Stop()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				_ = command.Process.Signal(s) // it has ended otherwise
			}
		case err := <-ended:
			var status *exec.ExitError
			if errors.As(err, &status) {
				return exitError{fmt.Errorf("%s: %s", args[0], status), max(status.ExitCode(), 1)}
			}
			return err
		case <-tick.C:
			// A service that is away for a moment changes no address.
			if list, err := c.NamedEndpoints(ctx); err == nil {
				if next := hostsText(list); !bytes.Equal(next, text) && rewrite(file, next) == nil {
					text = next
				}
			}
		}
	}
}

// ownNamespace is a mount namespace, within a user namespace where that is needed to make it.
func ownNamespace() *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}
	uid, gid := os.Getuid(), os.Getgid()
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
}

// becomeInside runs in the new namespace: it lays the file over the machine's and becomes the
// command.
func becomeInside(file string, args []string) error {
	// What is mounted here must not appear outside.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := syscall.Mount(file, hostsFile, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("lay the names over %s: %w", hostsFile, err)
	}
	if err := dropAmbient(); err != nil {
		return err
	}
	program, ok := lookPath(args[0])
	if strings.Contains(args[0], "/") {
		program, ok = args[0], true
	}
	if !ok {
		return exitError{fmt.Errorf("%s is not installed on this machine", args[0]), 127}
	}
	env := []string{}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, insideVariable+"=") {
			env = append(env, v)
		}
	}
	return proc.Become(program, args, env)
}

// dropAmbient takes away from the command what was needed to mount.
func dropAmbient() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up the right to mount: %w", err)
	}
	return nil
}

// hostsText is the machine's own file with the names behind it.
func hostsText(list []control.NamedEndpoint) []byte {
	own, _ := os.ReadFile(hostsFile) // a machine without one has no names of its own
	var b bytes.Buffer
	b.Write(own)
	if len(own) > 0 && !bytes.HasSuffix(own, []byte("\n")) {
		b.WriteByte('\n')
	}
	b.WriteString("# Endpoints of Kurabe.\n")
	for _, e := range list {
		fmt.Fprintf(&b, "%s %s\n", e.Address, e.Name)
	}
	return b.Bytes()
}

// rewrite keeps the file itself, since that is what is mounted.
func rewrite(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	return errors.Join(err, f.Truncate(int64(len(text))), f.Close())
}
