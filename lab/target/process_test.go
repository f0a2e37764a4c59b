package target

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kurabe/lab/owner"
)

// script writes a program for a test.
func script(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700))
	return path
}

func TestStop(t *testing.T) {
	cases := map[string]struct {
		text   string
		killed bool
	}{
		"one that ends":     {text: "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done"},
		"one that has":      {text: "echo ready"},
		"one that will not": {text: "trap '' TERM; echo ready; while :; do sleep 0.01; done", killed: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			output, writer, err := os.Pipe()
			must(t, err)
			defer output.Close()
			cmd := exec.Command(script(t, "program", c.text))
			cmd.Stdout = writer
			program, err := start(cmd)
			must(t, err)
			must(t, writer.Close())
			if _, err := output.Read(make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
			patience := time.Minute
			if c.killed {
				patience = time.Millisecond
			}
			if err := program.stop(patience); (err != nil) != c.killed {
				t.Errorf("error %v", err)
			}
			if !program.ended() {
				t.Error("it runs")
			}
		})
	}
}

func TestTail(t *testing.T) {
	var kept tail
	fmt.Fprint(&kept, strings.Repeat("x", tailBytes))
	fmt.Fprint(&kept, "end\n")
	if text := kept.String(); len(text) > tailBytes || !strings.HasSuffix(text, "xend") {
		t.Errorf("%d bytes", len(text))
	}
}

func TestServe(t *testing.T) {
	const loop = "trap 'exit 0' TERM; while :; do sleep 0.01; done"
	cases := map[string]struct {
		text string
		want string // of the error, "" for none
	}{
		"ready":               {text: "echo kurabe ready http://127.0.0.1:7; " + loop},
		"ends at once":        {text: "echo no engine is installed >&2; exit 1", want: "no engine is installed"},
		"says something else": {text: "echo hello; " + loop, want: "ended before it was ready"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program, url, err := serve(t.Context(), dir, script(t, "kurabe", c.text))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v", err)
				}
				return
			}
			must(t, err)
			if url != "http://127.0.0.1:7" {
				t.Errorf("it is at %q", url)
			}
			must(t, program.stop(time.Minute))
		})
	}
	t.Run("never ready", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, _, err := serve(ctx, t.TempDir(), script(t, "kurabe", loop)); err == nil {
			t.Error("no error")
		}
	})
}

func TestCleanPrivate(t *testing.T) {
	parent := t.TempDir()
	me, err := owner.This()
	must(t, err)
	gone := me
	gone.Start++
	folder := func(name, whose string) string {
		dir := filepath.Join(parent, name)
		must(t, os.MkdirAll(filepath.Join(dir, "locked"), 0o700))
		if whose != "" {
			must(t, os.WriteFile(filepath.Join(dir, owner.File), []byte(whose), 0o600))
		}
		must(t, os.Chmod(filepath.Join(dir, "locked"), 0o500))
		return dir
	}
	file := func(name, text string) string {
		path := filepath.Join(parent, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	nobody := fmt.Sprint(math.MaxInt32)
	goes := []string{folder(namePrefix+"7-dead", gone.String()), folder(namePrefix+nobody+"-unsigned", ""),
		file(namePrefix+"7-canary-1", gone.String()+"\n"+strings.Repeat("\x00", 8192)), file(namePrefix+nobody+"-canary-2", "")}
	stays := []string{
		folder(fmt.Sprintf("%s%d-mine", namePrefix, os.Getpid()), me.String()),
		folder(fmt.Sprintf("%s%d-new", namePrefix, os.Getpid()), ""),
		folder(namePrefix+"notes", ""), folder("kurabe-other", gone.String()),
		file(fmt.Sprintf("%s%d-canary-3", namePrefix, os.Getpid()), me.String()+"\n\x00"), file(namePrefix+"canary-4", ""), file(namePrefix+"7-canary-5.txt", "something else\n"),
	}
	said, err := CleanPrivate(t.Context(), Options{Folder: parent})
	must(t, err)
	for _, dir := range goes {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there: %q", dir, said)
		}
	}
	for _, dir := range stays {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s is gone: %q", dir, said)
		}
	}
	if len(said) != 10 {
		t.Errorf("it says %q", said)
	}
}

func TestMakeFolderIsPrivate(t *testing.T) {
	dir, err := owner.Folder(t.TempDir(), "")
	must(t, err)
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm() != 0o700 || !strings.HasPrefix(filepath.Base(dir), fmt.Sprintf("%s%d-", namePrefix, os.Getpid())) {
		t.Errorf("%s has mode %v", dir, info.Mode())
	}
	me, err := owner.This()
	must(t, err)
	if why := keepFolder(dir, me, false); !strings.Contains(why, "its lab runs") {
		t.Errorf("it would be removed: %q", why)
	}
}

func TestShortVersion(t *testing.T) {
	cases := map[string]string{
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64": "15.18", "10.11.19-MariaDB-0+deb12u1": "10.11.19", "8.0.40": "8.0.40", "PostgreSQL 19devel": "19", "none": "none",
	}
	for full, want := range cases {
		if got := shortVersion(full); got != want {
			t.Errorf("%q: %q", full, got)
		}
	}
}

func TestOwnName(t *testing.T) {
	cases := map[string]bool{
		"kurabe_lab_0123456789": true, "kurabe_lab_0123456789_golden": true, "kurabe_lab_0123456789_note": true,
		"kurabe_lab_0123456789_mine": false, "kurabe_lab_notes": false, "shop": false, "x_kurabe_lab_0123456789": false, "kurabe_lab_0123456789\n": false,
	}
	for name, want := range cases {
		if got := ownName.MatchString(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	if !ownName.MatchString(databasePrefix + newID()) {
		t.Error("an id of ours is not recognized")
	}
}
