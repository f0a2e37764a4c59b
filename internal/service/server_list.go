package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kurabe/internal/volume"
)

// serversFile, below DATA, is there when the service has, or has had, several servers.
const serversFile = "servers.json"

// servers is what a server keeps of the others. It is read before the state can be.
type servers struct {
	path string
	// Links are where all servers let hosts in, HOST:PORT.
	Links []string `json:"links"`
	// The rest is of a server that has joined: what it was told then, and its zones.
	Joined      bool     `json:"joined,omitempty"`
	Region      string   `json:"region,omitempty"`
	ScopeRegion string   `json:"scopeRegion,omitempty"`
	Account     string   `json:"account,omitempty"`
	Zones       []string `json:"zones,omitempty"`
	OwnZones    []string `json:"ownZones,omitempty"`
}

// loadServers reads the file; nil when there is none.
func loadServers(data string) (*servers, error) {
	s := &servers{path: filepath.Join(data, serversFile)}
	raw, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read (%w); restore it from a backup: it says where the other servers of the service are", s.path, err)
	}
	return s, nil
}

func (s *servers) save() error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return volume.AtomicWrite(s.path, raw, 0o600)
}

// hasState says that the member of the state store of this folder has started once.
func hasState(data string) bool {
	logs, err := filepath.Glob(filepath.Join(data, "etcd", "member", "wal", "*.wal"))
	return err == nil && len(logs) > 0
}
