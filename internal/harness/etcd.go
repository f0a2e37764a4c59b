package harness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"kurabe/internal/pki"
)

// Etcd is an etcd of others: processes beside the service's, which know nothing of it, and
// let in who shows a certificate.
type Etcd struct {
	Members                   []*EtcdMember
	CAFile, CertFile, KeyFile string
	dir                       string
}

// EtcdMember is one of its processes, through all its lives.
type EtcdMember struct {
	URL  string // for clients
	file string
	cmd  *exec.Cmd
	life io.Closer
	log  *Log
}

// etcdEnv names the file with the configuration of a member that this program is to be.
const etcdEnv = "KURABE_TEST_ETCD"

// etcdMember is such a file.
type etcdMember struct {
	Name, Dir, Client, Peer, Cluster string
	CertFile, KeyFile, TrustedCAFile string
}

// EtcdMain is a member of an etcd, if this program was started as one. It never returns then.
func EtcdMain() {
	file := os.Getenv(etcdEnv)
	if file == "" {
		return
	}
	raw, err := os.ReadFile(file)
	var m etcdMember
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err == nil {
		err = m.run()
	}
	fmt.Fprintln(os.Stderr, "etcd:", err)
	os.Exit(1)
}

func (m etcdMember) run() error {
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster, c.LogLevel = m.Name, m.Dir, m.Cluster, "error"
	client, err := url.Parse(m.Client)
	if err != nil {
		return err
	}
	peer, err := url.Parse(m.Peer)
	if err != nil {
		return err
	}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile, c.ClientTLSInfo.TrustedCAFile = m.CertFile, m.KeyFile, m.TrustedCAFile
	c.ClientTLSInfo.ClientCertAuth = true
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	go func() { // ends with the program
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return <-e.Err()
}

// StartEtcd starts an etcd of n members at an address; it ends with the test.
func StartEtcd(t testing.TB, n int, address string) *Etcd {
	t.Helper()
	e := &Etcd{dir: Folder(t, false)}
	ca, err := pki.Open(filepath.Join(e.dir, "ca"))
	try(t, err)
	e.CAFile, e.CertFile, e.KeyFile = filepath.Join(e.dir, "ca.pem"), filepath.Join(e.dir, "cert.pem"), filepath.Join(e.dir, "key.pem")
	keyPEM, csrPEM, err := pki.NewKeyAndCSR("etcd")
	try(t, err)
	certPEM, err := ca.Sign(csrPEM, []net.IP{net.ParseIP(address)}, nil, 24*time.Hour)
	try(t, err)
	for path, content := range map[string][]byte{e.CAFile: ca.PEM(), e.CertFile: certPEM, e.KeyFile: keyPEM} {
		try(t, os.WriteFile(path, content, 0o600))
	}
	var configs []etcdMember
	var cluster []string
	for i := range n {
		m := etcdMember{
			Name: fmt.Sprintf("m%d", i), Dir: filepath.Join(e.dir, fmt.Sprintf("m%d", i)), CertFile: e.CertFile, KeyFile: e.KeyFile, TrustedCAFile: e.CAFile,
			Client: "https://" + freePort(t, address), Peer: "http://" + freePort(t, address),
		}
		cluster, configs = append(cluster, m.Name+"="+m.Peer), append(configs, m)
	}
	for i, c := range configs {
		c.Cluster = strings.Join(cluster, ",")
		raw, err := json.Marshal(c)
		try(t, err)
		m := &EtcdMember{URL: c.Client, file: filepath.Join(e.dir, fmt.Sprintf("m%d.json", i)), log: &Log{}}
		try(t, os.WriteFile(m.file, raw, 0o600))
		e.Members = append(e.Members, m)
		m.Start(t)
		t.Cleanup(m.end)
	}
	e.WaitHealthy(t)
	return e
}

func freePort(t testing.TB, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	try(t, err)
	defer l.Close()
	return l.Addr().String()
}

// Start starts the member's process and does not wait for it.
func (m *EtcdMember) Start(t testing.TB) {
	t.Helper()
	m.cmd = exec.Command("/proc/self/exe")
	m.cmd.Env = append(environment(), etcdEnv+"="+m.file)
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	var err error
	m.life, err = m.cmd.StdinPipe() // closes with this program, whatever that dies of
	try(t, err)
	try(t, m.cmd.Start())
}

func (m *EtcdMember) end() {
	if m.cmd != nil {
		m.cmd.Process.Kill() // of a frozen one too
		m.cmd.Wait()
		m.cmd = nil
	}
}

// Kill ends the member as kill -9 does.
func (m *EtcdMember) Kill(t testing.TB) {
	t.Helper()
	m.end()
}

// Freeze stops the member's process where it is, or lets it go on.
func (m *EtcdMember) Freeze(t testing.TB, frozen bool) {
	t.Helper()
	signal := syscall.SIGCONT
	if frozen {
		signal = syscall.SIGSTOP
	}
	try(t, m.cmd.Process.Signal(signal))
}

// Endpoints are the URLs of all members.
func (e *Etcd) Endpoints() []string {
	var urls []string
	for _, m := range e.Members {
		urls = append(urls, m.URL)
	}
	return urls
}

// Args are the flags by which a service uses it.
func (e *Etcd) Args() []string {
	return []string{"--etcd-endpoints", strings.Join(e.Endpoints(), ","), "--etcd-cacert", e.CAFile, "--etcd-cert", e.CertFile, "--etcd-key", e.KeyFile}
}

// Client is a client of its owner.
func (e *Etcd) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	raw, err := os.ReadFile(e.CAFile)
	try(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(raw)
	cert, err := tls.LoadX509KeyPair(e.CertFile, e.KeyFile)
	try(t, err)
	c, err := clientv3.New(clientv3.Config{Endpoints: e.Endpoints(), TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}, DialTimeout: time.Second, Logger: zap.NewNop()})
	try(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// WaitHealthy waits until a majority answers.
func (e *Etcd) WaitHealthy(t testing.TB) {
	t.Helper()
	c := e.Client(t)
	Wait(t, readyTime, "etcd answers", func() string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Get(ctx, "x"); err != nil {
			return err.Error() + "\n" + e.Members[0].log.tail()
		}
		return ""
	})
}

// Leader is the member that leads.
func (e *Etcd) Leader(t testing.TB) *EtcdMember {
	t.Helper()
	c := e.Client(t)
	var leader *EtcdMember
	Wait(t, readyTime, "etcd has a leader", func() string {
		for _, m := range e.Members {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			s, err := c.Status(ctx, m.URL)
			cancel()
			if err == nil && s.Leader == s.Header.MemberId {
				leader = m
				return ""
			}
		}
		return "nobody leads"
	})
	return leader
}
