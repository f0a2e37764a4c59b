package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"kurabe/internal/etcdnode"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
	"kurabe/internal/volume"
	"os"
	"path/filepath"
	"strings"
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

// Who we are to an etcd of others; as arguments everybody on the machine would see it.
const (
	EtcdUserVariable     = "KURABE_ETCD_USER"
	EtcdPasswordVariable = "KURABE_ETCD_PASSWORD"
)

// etcdFlags say that the state is kept in an etcd of others, and where.
type EtcdConfig struct {
	Endpoints, Prefix, CAFile, CertFile, KeyFile, LoginFile string
}

// given says that the state is in an etcd of others.
func (f *EtcdConfig) Given() bool { return f.Endpoints != "" }

// check refuses what cannot be meant, and completes the prefix.
func (f *EtcdConfig) Check() error {
	if !f.Given() {
		if f.CAFile+f.CertFile+f.KeyFile+f.LoginFile != "" || f.Prefix != store.Family {
			return errors.New("--etcd-… is for an etcd of yours: name its members with --etcd-endpoints")
		}
		return nil
	}
	prefix := strings.TrimSuffix(f.Prefix, "/") + "/"
	if !strings.HasPrefix(prefix, "/") || prefix == "/" || strings.Contains(prefix, "//") {
		return fmt.Errorf("invalid --etcd-prefix %q; examples: /kurabe/, /databases/paris/", f.Prefix)
	}
	f.Prefix = prefix
	access, err := f.access()
	if err == nil {
		err = access.Check()
	}
	if err != nil {
		return fmt.Errorf("--etcd-endpoints: %w", err)
	}
	return nil
}

// access is how that etcd is reached.
func (f *EtcdConfig) access() (etcdnode.Access, error) {
	a := etcdnode.Access{
		Endpoints: strings.Split(f.Endpoints, ","), CAFile: f.CAFile, CertFile: f.CertFile, KeyFile: f.KeyFile,
		User: os.Getenv(EtcdUserVariable), Password: logkey.Secret(os.Getenv(EtcdPasswordVariable)),
	}
	if f.LoginFile == "" {
		return a, nil
	}
	raw, err := os.ReadFile(f.LoginFile)
	if err != nil {
		return a, fmt.Errorf("--etcd-login-file: %w", err)
	}
	user, password, ok := strings.Cut(strings.TrimRight(string(raw), "\r\n"), ":")
	if !ok {
		return a, fmt.Errorf("--etcd-login-file %s: it is not USER:PASSWORD", f.LoginFile)
	}
	a.User, a.Password = user, logkey.Secret(password)
	return a, nil
}

// forget takes the password out of the environment: databases need not inherit it.
func (f *EtcdConfig) forget() {
	os.Unsetenv(EtcdUserVariable)
	os.Unsetenv(EtcdPasswordVariable)
}
