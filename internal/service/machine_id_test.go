package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kurabe/internal/hostlink"
)

// node is a start of an agent in a life of a machine.
func (i *identity) node(life string) *Agent {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	link := hostlink.NewRemote(hostlink.RemoteConfig{Server: i.saved.Server, Roots: i.roots, Identity: i.certificate, Life: life, Log: log})
	return &Agent{node: node{log: log}, link: link, self: i}
}

func TestTakePlace(t *testing.T) {
	d, data := newDoor(t), t.TempDir()
	t.Setenv(JoinTokenVariable, d.token(t))
	self, err := enter(t, data, AgentConfig{Join: d.address, Zone: "b"})
	if err != nil {
		t.Fatal(err)
	}
	take := func(life string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return self.node(life).takePlace(ctx, life, 100*time.Millisecond)
	}
	kept := func() string {
		text, err := os.ReadFile(filepath.Join(self.dir, machineIDFile))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(text)
	}
	server := self.saved.Server
	self.saved.Server = "127.0.0.1:1"
	if err := take("a"); err != nil || kept() != "" {
		t.Errorf("the service is not reached: %v, %q is kept", err, kept())
	}
	self.saved.Server = server
	if err := take("a"); err != nil || kept() != "a" {
		t.Errorf("the first one: %v, %q is kept", err, kept())
	}
	if err := take("b"); !errors.Is(err, hostlink.ErrDouble) || kept() != "a" {
		t.Errorf("a copy: %v, %q is kept", err, kept())
	}
	// A restart does not ask: it would be refused here.
	if err := os.WriteFile(filepath.Join(self.dir, machineIDFile), []byte("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := take("b"); err != nil {
		t.Errorf("a restart in one life: %v", err)
	}
}

// A copy of a folder is another life, and the folder itself is not.
func TestLifeOf(t *testing.T) {
	folder, copied := t.TempDir(), t.TempDir()
	lives := map[string]int{}
	for _, data := range []string{folder, copied, folder} {
		life, err := machineID(data)
		if err != nil {
			t.Fatal(err)
		}
		lives[life]++
	}
	if len(lives) != 2 {
		t.Errorf("%v", lives)
	}
}
