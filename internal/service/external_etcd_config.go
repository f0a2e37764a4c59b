package service

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"kurabe/internal/etcdnode"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

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
