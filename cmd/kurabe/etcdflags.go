package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"kurabe/internal/etcdnode"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// Who we are to an etcd of others; as arguments everybody on the machine would see it.
const (
	etcdUserVariable     = "KURABE_ETCD_USER"
	etcdPasswordVariable = "KURABE_ETCD_PASSWORD"
)

// etcdFlags say that the state is kept in an etcd of others, and where.
type etcdFlags struct {
	endpoints, prefix, caFile, certFile, keyFile, loginFile string
}

func (f *etcdFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.endpoints, "etcd-endpoints", "", "https://HOST:PORT of the members, separated by commas, of an etcd of yours that keeps the state (default: a store of the service's own in DATA/etcd)")
	fs.StringVar(&f.prefix, "etcd-prefix", store.Family, "what all keys of this service in that etcd begin with; nobody else may have keys there")
	fs.StringVar(&f.caFile, "etcd-cacert", "", "file with who signs the certificates of that etcd (default: whom this machine trusts)")
	fs.StringVar(&f.certFile, "etcd-cert", "", "file with the certificate to show it")
	fs.StringVar(&f.keyFile, "etcd-key", "", "file with the key of that certificate")
	fs.StringVar(&f.loginFile, "etcd-login-file", "", "file with USER:PASSWORD for that etcd (default: the environment's "+etcdUserVariable+" and "+etcdPasswordVariable+")")
}

// given says that the state is in an etcd of others.
func (f *etcdFlags) given() bool { return f.endpoints != "" }

// check refuses what cannot be meant, and completes the prefix.
func (f *etcdFlags) check() error {
	if !f.given() {
		if f.caFile+f.certFile+f.keyFile+f.loginFile != "" || f.prefix != store.Family {
			return errors.New("--etcd-… is for an etcd of yours: name its members with --etcd-endpoints")
		}
		return nil
	}
	prefix := strings.TrimSuffix(f.prefix, "/") + "/"
	if !strings.HasPrefix(prefix, "/") || prefix == "/" || strings.Contains(prefix, "//") {
		return fmt.Errorf("invalid --etcd-prefix %q; examples: /kurabe/, /databases/paris/", f.prefix)
	}
	f.prefix = prefix
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
func (f *etcdFlags) access() (etcdnode.Access, error) {
	a := etcdnode.Access{
		Endpoints: strings.Split(f.endpoints, ","), CAFile: f.caFile, CertFile: f.certFile, KeyFile: f.keyFile,
		User: os.Getenv(etcdUserVariable), Password: logkey.Secret(os.Getenv(etcdPasswordVariable)),
	}
	if f.loginFile == "" {
		return a, nil
	}
	raw, err := os.ReadFile(f.loginFile)
	if err != nil {
		return a, fmt.Errorf("--etcd-login-file: %w", err)
	}
	user, password, ok := strings.Cut(strings.TrimRight(string(raw), "\r\n"), ":")
	if !ok {
		return a, fmt.Errorf("--etcd-login-file %s: it is not USER:PASSWORD", f.loginFile)
	}
	a.User, a.Password = user, logkey.Secret(password)
	return a, nil
}

// forget takes the password out of the environment: databases need not inherit it.
func (f *etcdFlags) forget() {
	os.Unsetenv(etcdUserVariable)
	os.Unsetenv(etcdPasswordVariable)
}
