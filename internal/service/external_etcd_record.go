package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kurabe/internal/etcdnode"
	"kurabe/internal/volume"
)

// outsideFile, below DATA, is there when the state is kept in an etcd of others.
const externalEtcdFile = "etcd.json"

// outsideRecord is what a server keeps of that etcd.
type externalEtcdRecord struct {
	Prefix   string `json:"prefix"`
	Cluster  string `json:"cluster"` // etcd's own id of itself
	Revision int64  `json:"revision"`
}

// loadOutside reads the file; nil when there is none.
func loadExternalEtcd(data string) (*externalEtcdRecord, error) {
	path := filepath.Join(data, externalEtcdFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r externalEtcdRecord
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err == nil && r.Prefix == "" {
		err = errors.New("it names no prefix")
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read (%w); it says which etcd has the state of this service", path, err)
	}
	return &r, nil
}

// seen is how far etcd had come.
func (r *externalEtcdRecord) seen() (etcdnode.Seen, error) {
	if r == nil {
		return etcdnode.Seen{}, nil
	}
	s := etcdnode.Seen{Revision: r.Revision}
	_, err := fmt.Sscanf(r.Cluster, "%x", &s.Cluster)
	return s, err
}

// keepOutside writes the file.
func keepExternalEtcd(data, prefix string, s etcdnode.Seen) error {
	raw, err := json.Marshal(externalEtcdRecord{prefix, fmt.Sprintf("%x", s.Cluster), s.Revision})
	if err != nil {
		return err
	}
	return volume.AtomicWrite(filepath.Join(data, externalEtcdFile), raw, 0o600)
}

// checkOutside refuses a folder whose state is elsewhere than the flags say.
func checkExternalEtcd(data string, f *EtcdConfig, kept *externalEtcdRecord) error {
	_, err := os.Stat(filepath.Join(data, "etcd"))
	own := err == nil
	switch {
	case f.Given() && own:
		return fmt.Errorf("%s has a state of its own in %s, and --etcd-endpoints names another place: start without it; to move the state, back it up (kurabe state backup FILE), end the service, and restore it there (kurabe state restore FILE --data %s --etcd-endpoints …)", data, filepath.Join(data, "etcd"), data)
	case !f.Given() && kept != nil:
		return fmt.Errorf("the state of the service in %s is in etcd, with the prefix %s: start it with --etcd-endpoints as before; to have it in the folder, restore a backup there (kurabe state restore FILE --data %s)", data, kept.Prefix, data)
	case f.Given() && kept != nil && kept.Prefix != f.Prefix:
		return fmt.Errorf("the state of the service in %s is in etcd with the prefix %s, and --etcd-prefix says %s; if it was restored there, on another server, remove %s", data, kept.Prefix, f.Prefix, filepath.Join(data, externalEtcdFile))
	}
	return nil
}
