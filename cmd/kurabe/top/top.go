package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"kurabe/cmd/kurabe/client"
)

const (
	askEvery = time.Second
	askTime  = 10 * time.Second
)

// Command is "kurabe top".
func Command() *cobra.Command {
	var f client.Flags
	var once bool
	c := &cobra.Command{
		Use:   "top NAME",
		Short: "Show the load of a DB instance: wait events, statements, who blocks whom",
		Long: `Show the load of a DB instance: active sessions by wait event in the last five minutes
against the vCPUs of its class, the largest statements with their waits, which statements wait
for which, and I/O against its limits. The left and right arrow keys slice by statement, wait,
user and host; q ends. NO_COLOR is kept to.

Load is kept for instances with EnablePerformanceInsights.`,
		Args:              client.OneName,
		ValidArgsFunction: f.InstanceNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.Client()
			if err != nil {
				return err
			}
			if !once {
				return live(cmd.Context(), c, args[0])
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), askTime)
			defer cancel()
			now := time.Now()
			p, err := look(ctx, c, args[0], slicings[0], now)
			if err != nil {
				return err
			}
			const columns, lines = 160, 60
			_, err = fmt.Print(p.render(columns, lines, now.UTC().Format(time.DateTime), false))
			return err
		},
	}
	f.Add(c)
	c.Flags().BoolVar(&once, "once", false, "print one picture as plain text and end")
	return c
}

type answer struct {
	picture
	err error
}

// ask looks again and again, one look at a time, until ctx ends. The channel by changes the slice.
func ask(ctx context.Context, c *client.Client, name string, by <-chan slice, answers chan<- answer) {
	at := slicings[0]
	for {
		one, cancel := context.WithTimeout(ctx, askTime)
		p, err := look(one, c, name, at, time.Now())
		cancel()
		select {
		case answers <- answer{p, err}:
		case <-ctx.Done():
			return
		}
		select {
		case at = <-by:
		case <-time.After(askEvery):
		case <-ctx.Done():
			return
		}
	}
}

// live shows pictures until q or a signal. The terminal is as before when it returns.
func live(parent context.Context, c *client.Client, name string) (err error) {
	in := int(os.Stdin.Fd())
	was, err := unix.IoctlGetTermios(in, unix.TCGETS)
	if err != nil {
		return errors.New("standard input is not a terminal: use --once")
	}
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	raw := *was
	raw.Lflag &^= unix.ECHO | unix.ICANON
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(in, unix.TCSETS, &raw); err != nil {
		return err
	}
	defer func() {
		fmt.Print("\x1b[?25h\x1b[?1049l")
		err = errors.Join(err, unix.IoctlSetTermios(in, unix.TCSETS, was))
	}()
	fmt.Print("\x1b[?1049h\x1b[?25l")
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	keys, answers, by := make(chan string), make(chan answer), make(chan slice, 1)
	go readKeys(ctx, keys)
	go ask(ctx, c, name, by, answers)
	ticker := time.NewTicker(time.Second) // the age grows
	defer ticker.Stop()
	shown, at := answer{picture: picture{name: name, at: time.Now()}, err: errors.New("asking the service")}, 0
	for {
		draw(shown)
		select {
		case a := <-answers:
			if a.err == nil {
				shown = a
			}
			shown.err = a.err
			if errors.Is(a.err, context.DeadlineExceeded) {
				shown.err = errors.New("the service does not answer")
			}
		case key := <-keys:
			switch key {
			case "q":
				return nil
			case "\x1b[C", "\x1bOC":
				at = (at + 1) % len(slicings)
			case "\x1b[D", "\x1bOD":
				at = (at + len(slicings) - 1) % len(slicings)
			}
			select {
			case <-by: // not yet taken: the newest counts
			default:
			}
			by <- slicings[at]
		case <-resized:
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// readKeys reads until the program ends: a read from a terminal cannot be broken off.
func readKeys(ctx context.Context, keys chan<- string) {
	for b := make([]byte, 16); ; {
		n, err := os.Stdin.Read(b)
		if err != nil {
			return
		}
		select {
		case keys <- string(b[:n]):
		case <-ctx.Done():
			return
		}
	}
}

func draw(a answer) {
	columns, lines := 80, 24
	if size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		columns, lines = int(size.Col), int(size.Row)
	}
	status := fmt.Sprintf("%.0f s old", time.Since(a.at).Seconds())
	if a.err != nil {
		status += ": " + a.err.Error()
	}
	text := a.render(columns, lines-1, status, os.Getenv("NO_COLOR") == "")
	if a.engine == "" { // nothing is known yet
		text = fit(a.name+": "+status, columns) + "\n"
	}
	fmt.Print("\x1b[H\x1b[2J" + text)
}
