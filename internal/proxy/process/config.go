package process

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"kurabe"
	"kurabe/internal/logkey"
	"kurabe/internal/proxy"
	"kurabe/internal/proxy/pool"
	"kurabe/internal/volume"
)

// The files of a proxy's folder.
const (
	configName  = "config.json"
	routeName   = "route.json"
	runName     = "run"
	controlName = "control"
	logName     = "proxy.log"
)

// Config is the content of config.json.
type Config struct {
	Name      string            `json:"name"`
	Engine    kurabe.EngineName `json:"engine"`
	Endpoints []Endpoint        `json:"endpoints"`
	Users     []User            `json:"users"`
	// CertificatePEM is shown to clients at every endpoint; KeyPEM is its key.
	CertificatePEM string `json:"certificate"`
	KeyPEM         string `json:"key"`
	// AuthorityPEM has signed it, and the certificates of the database servers, which the proxy
	// speaks TLS with if ServerTLS.
	AuthorityPEM string `json:"authority"`
	ServerTLS    bool   `json:"serverTLS,omitempty"`
	// Secrets are those that Users are of, for whoever writes the file.
	Secrets           []kurabe.ProxySecret `json:"secrets,omitempty"`
	RequireTLS        bool                 `json:"requireTLS,omitempty"`
	MaxServers        int                  `json:"maxServers"`
	MaxIdle           int                  `json:"maxIdle"`
	BorrowTimeout     time.Duration        `json:"borrowTimeout"`
	IdleClientTimeout time.Duration        `json:"idleClientTimeout"`
	ClientsMax        int                  `json:"clientsMax"`
	InitQuery         string               `json:"initQuery,omitempty"`
	// ExcludeVariableSets see proxy.Settings.
	ExcludeVariableSets bool `json:"excludeVariableSets,omitempty"`
	DebugLogging        bool `json:"debugLogging,omitempty"`
}

// Endpoint is an address of the proxy.
type Endpoint struct {
	Name    string         `json:"name"`
	Address netip.AddrPort `json:"address"`
	Reads   bool           `json:"reads,omitempty"`
}

// User may log in at the proxy, which logs in at the servers with the same password.
type User struct {
	Name     string        `json:"name"`
	Password logkey.Secret `json:"password"`
}

// MarshalJSON reveals the password: config.json is the one place that holds it.
func (u User) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"name": u.Name, "password": u.Password.Reveal()})
}

// Sum identifies a configuration without telling it: the agent compares it with the one that
// the process has in force.
func (c Config) Sum() (string, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Write puts a configuration into the folder of a proxy. As root it is given to the user that
// the process runs as.
func (c Config) Write(dir string, owner *volume.Owner) error {
	return writeJSON(filepath.Join(dir, configName), c, owner)
}

// WriteRoute puts a route into the folder of a proxy.
func WriteRoute(dir string, r pool.Route, owner *volume.Owner) error {
	return writeJSON(filepath.Join(dir, routeName), r, owner)
}

func writeJSON(path string, v any, owner *volume.Owner) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if owner == nil {
		return volume.AtomicWrite(path, raw, 0o600)
	}
	return volume.AtomicWriteOwned(path, raw, 0o600, *owner)
}

// ReadRoute reads the route of a proxy's folder.
func ReadRoute(dir string) (r pool.Route, err error) {
	return r, readJSON(filepath.Join(dir, routeName), &r)
}

// ReadConfig reads the configuration of a proxy's folder.
func ReadConfig(dir string) (c Config, err error) {
	err = readJSON(filepath.Join(dir, configName), &c)
	if err == nil {
		err = c.check()
	}
	return c, err
}

func readJSON(path string, v any) error {
	raw, err := volume.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}

func (c Config) check() error {
	if len(c.Endpoints) == 0 {
		return errors.New(configName + ": no endpoint")
	}
	seen := map[netip.AddrPort]bool{}
	for _, e := range c.Endpoints {
		if !e.Address.IsValid() || seen[e.Address] {
			return fmt.Errorf("%s: endpoint %s has no address of its own", configName, e.Name)
		}
		seen[e.Address] = true
	}
	return nil
}

func (c Config) limits() pool.Limits {
	return pool.Limits{MaxServers: c.MaxServers, MaxIdle: c.MaxIdle, BorrowTimeout: c.BorrowTimeout}
}

// settings are those of each endpoint, in the order of Endpoints.
func (c Config) settings(log *slog.Logger) ([]*proxy.Settings, error) {
	users := map[string]proxy.User{}
	for _, u := range c.Users {
		users[u.Name] = proxy.User{Name: u.Name, Password: u.Password}
	}
	var servers *tls.Config
	if c.ServerTLS {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(c.AuthorityPEM)) {
			return nil, fmt.Errorf("%s: the authority is no certificate", configName)
		}
		servers = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	mine, err := tls.X509KeyPair([]byte(c.CertificatePEM), []byte(c.KeyPEM))
	if err != nil {
		return nil, fmt.Errorf("%s: certificate: %w", configName, err)
	}
	var all []*proxy.Settings
	for _, e := range c.Endpoints {
		all = append(all, &proxy.Settings{
			Endpoint: e.Name, Reads: e.Reads, RequireTLS: c.RequireTLS, Users: users,
			ClientTLS: &tls.Config{Certificates: []tls.Certificate{mine}, MinVersion: tls.VersionTLS12}, ServerTLS: servers,
			InitQuery: c.InitQuery, ExcludeVariableSets: c.ExcludeVariableSets, IdleClientTimeout: c.IdleClientTimeout,
			ClientsMax: c.ClientsMax, DebugLogging: c.DebugLogging, Log: log,
		})
	}
	return all, nil
}

// RunDir is the part of a proxy's folder that the process writes in.
func RunDir(dir string) string { return filepath.Join(dir, runName) }

// Remove removes what the process reads and writes. It does not run any more.
func Remove(dir string) error {
	for _, name := range []string{configName, routeName} {
		if err := volume.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return volume.RemoveTree(dir, RunDir(dir))
}
