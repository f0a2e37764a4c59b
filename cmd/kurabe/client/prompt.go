package client

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"

	"kurabe/internal/logkey"
)

// Confirmed says what will be done and has the name typed of what it is done to.
func Confirmed(what, name string) bool {
	fmt.Fprintf(os.Stderr, "%s Type its name to go on: ", what)
	answer, err := readLine(os.Stdin)
	if err != nil || answer != name {
		fmt.Fprintln(os.Stderr)
		return false
	}
	return true
}

// lineBytesMax bounds an answer.
const lineBytesMax = 1024

// readLine takes no more than a line: what follows is the answer to another question.
func readLine(from io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < lineBytesMax; {
		n, err := from.Read(b)
		if n == 1 && b[0] == '\n' || err != nil && len(line) > 0 {
			return strings.TrimRight(string(line), "\r"), nil
		}
		if err != nil {
			return "", err
		}
		line = append(line, b[:n]...)
	}
	return "", errors.New("the line is too long")
}

// ErrNoTerminal: there is nobody to ask.
var ErrNoTerminal = errors.New("standard input is not a terminal")

// ReadPassword reads a password from the terminal without showing it.
func ReadPassword(question string) (logkey.Secret, error) {
	in := int(os.Stdin.Fd())
	was, err := unix.IoctlGetTermios(in, unix.TCGETS)
	if err != nil {
		return "", ErrNoTerminal
	}
	silent := *was
	silent.Lflag &^= unix.ECHO
	// Ctrl-C must not leave a terminal that shows nothing.
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, unix.SIGTERM)
	defer close(done)
	defer signal.Stop(signals)
	go func() {
		select {
		case <-signals:
			_ = unix.IoctlSetTermios(in, unix.TCSETSF, was) // nothing else can be done
			fmt.Fprintln(os.Stderr)
			os.Exit(InterruptedCode)
		case <-done:
		}
	}()
	if err := unix.IoctlSetTermios(in, unix.TCSETSF, &silent); err != nil {
		return "", err
	}
	fmt.Fprint(os.Stderr, question)
	line, err := readLine(os.Stdin)
	fmt.Fprintln(os.Stderr)
	return logkey.Secret(line), errors.Join(err, unix.IoctlSetTermios(in, unix.TCSETSF, was))
}

// InterruptedCode is the exit status of a command that Ctrl-C ended, as shells have it.
const InterruptedCode = 130
