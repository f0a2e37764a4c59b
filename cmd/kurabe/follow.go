package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/aws/smithy-go"
	"golang.org/x/sys/unix"

	"kurabe/cmd/kurabe/client"
)

const (
	followEvery = time.Second
	askTime     = 20 * time.Second
)

// onTerminal says whether a person reads the output, and whether in colours.
func onTerminal() (person, colours bool) {
	_, err := unix.IoctlGetTermios(int(os.Stdout.Fd()), unix.TCGETS)
	return err == nil, err == nil && os.Getenv("NO_COLOR") == ""
}

const (
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
	plain  = "\x1b[0m"
)

// paint colours a text, with "" not at all.
func paint(colour, text string) string {
	if colour == "" {
		return text
	}
	return colour + text + plain
}

// timeText is a time as a person reads it here, or as a program does.
func timeText(t time.Time, person bool) string {
	if person {
		return t.Local().Format("Jan _2 15:04:05")
	}
	return t.UTC().Format(time.RFC3339)
}

// repeat looks once and, if it is to follow, again each second until a signal. A service that does
// not answer is said once, and asked again; what it refuses ends it.
func repeat(parent context.Context, follow bool, look func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	for first, away := true, false; ; first = false {
		one, cancel := context.WithTimeout(ctx, askTime)
		err := look(one)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (first || !follow || !temporary(err)):
			return client.Friendly(err)
		case err != nil && !away:
			fmt.Fprintf(os.Stderr, "kurabe: %v; asked again until there is an answer\n", client.Friendly(err))
			away = true
		case err == nil && away:
			fmt.Fprintln(os.Stderr, "kurabe: there are answers again")
			away = false
		}
		if !follow {
			return nil
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// temporary says whether an error may be gone by itself: nobody answered, or could.
func temporary(err error) bool {
	var refusal smithy.APIError
	return !errors.As(err, &refusal) || refusal.ErrorFault() != smithy.FaultClient || refusal.ErrorCode() == "Throttling"
}
