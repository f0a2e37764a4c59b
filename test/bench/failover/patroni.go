package failover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"kurabe/internal/harness"
	"kurabe/internal/proc"
	"kurabe/test/bench/bed"
)

const (
	// patroniStart bounds the first start of a pair, patroniWhole how long it takes to be one
	// again: several of Patroni's loops of 10 s after a lease of 30 s.
	patroniStart = 3 * time.Minute
	patroniWhole = 4 * time.Minute
	patroniAsk   = 2 * time.Second
	// patroniOrder bounds a switchover, for which Patroni's answer waits up to 20 s.
	patroniOrder = time.Minute
)

// patroniCluster is a pair of PostgreSQL servers that Patroni keeps. Its folders lie as
// those of an instance do, so that the same code finds, kills and freezes the servers.
type patroniCluster struct {
	p        *peers
	name     string
	view     *harness.Service
	etcd     *daemon // its store, nil: not started
	etcdAt   string
	nodes    []*patroniNode
	password string
	pulse    *harness.Pulse
	sets     int // of the static parameter
}

// patroniNode is one server of the two and its Patroni.
type patroniNode struct {
	harness.Member
	address string
	patroni *daemon
	launch  func() (*daemon, error) // starts its Patroni
}

func (c *patroniCluster) client() writer { return c.pulse }

// start starts a pair and its client's table.
func (p *peers) start(ctx context.Context, b patroniBuild, pace patroniPace) (*patroniCluster, error) {
	c := p.cluster()
	for _, dir := range []string{c.view.Data, filepath.Join(c.view.Data, "instances")} {
		if err := os.Mkdir(dir, 0o711); err != nil {
			return c, err
		}
	}
	if err := c.startStore(); err != nil {
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, patroniStart)
	defer cancel()
	for _, name := range []string{"node-1", "node-2"} {
		if err := c.startNode(name, b, pace); err != nil {
			return c, err
		}
		// The second one copies the first.
		if err := c.await(ctx, "take writes", func() string { return c.noWriter(ctx) }); err != nil {
			return c, err
		}
	}
	if _, err := c.pair(ctx); err != nil {
		return c, err
	}
	var err error
	c.pulse, err = harness.NewPulse(ctx, c.login())
	return c, err
}

// cluster is one of which nothing has been started.
func (p *peers) cluster() *patroniCluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &patroniCluster{p: p, name: "peer-" + strconv.Itoa(len(p.clusters)), password: password()}
	c.view = &harness.Service{Data: filepath.Join(p.dir, c.name)}
	p.clusters = append(p.clusters, c)
	return c
}

func (c *patroniCluster) startStore() (err error) {
	data := filepath.Join(c.view.Data, "etcd")
	if err := c.p.own(data); err != nil {
		return err
	}
	if c.etcdAt, err = c.p.address(etcdPort, etcdPeerPort); err != nil {
		return err
	}
	c.etcd, err = c.p.daemon(c.name+"-etcd", data, []string{"PATH=/usr/bin:/bin"}, append([]string{c.p.etcdProgram()}, etcdArguments(c.etcdAt, data)...)...)
	return err
}

func (c *patroniCluster) startNode(name string, b patroniBuild, pace patroniPace) error {
	n := &patroniNode{Member: harness.Member{Service: c.view, ID: name}}
	var err error
	if n.address, err = c.p.address(peerPort, peerRestPort); err != nil {
		return err
	}
	if err := c.p.own(n.Home()); err != nil {
		return err
	}
	conf := patroniConf{scope: c.name, name: name, address: n.address, etcd: c.etcdAt, dir: n.Home(), binDir: c.p.binDir, password: c.password, pace: pace}
	path := filepath.Join(n.Home(), "patroni.yml")
	if err := os.WriteFile(path, []byte(conf.render()), 0o600); err != nil {
		return err
	}
	if u := c.p.user; u != nil {
		if err := os.Chown(path, int(u.Uid), int(u.Gid)); err != nil {
			return err
		}
	}
	n.launch = func() (*daemon, error) {
		return c.p.daemon(c.name+"-"+name, n.Home(), b.env(), b.python, "-m", "patroni", path)
	}
	if n.patroni, err = n.launch(); err != nil {
		return err
	}
	c.nodes = append(c.nodes, n)
	return nil
}

// login is that of a client which knows both servers and nothing else.
func (c *patroniCluster) login() harness.Login {
	l := harness.Login{Engine: bed.Postgres, User: "postgres", Password: c.password, Database: "postgres"}
	for _, n := range c.nodes {
		l.Hosts = append(l.Hosts, net.JoinHostPort(n.address, strconv.Itoa(peerPort)))
	}
	return l
}

// await asks until nothing is missing any more.
func (c *patroniCluster) await(ctx context.Context, what string, lacks func() string) error {
	for deadline := time.Now().Add(patroniWhole); ; _ = bed.Wait(ctx, 5*bed.PollPause) {
		lack := lacks()
		if lack == "" {
			return nil
		}
		for _, n := range c.nodes {
			select {
			case <-n.patroni.exited:
				return fmt.Errorf("%s has ended: %s", n.patroni.name, c.p.logTail(n.patroni.name))
			default:
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return errors.Join(ctx.Err(), fmt.Errorf("%s does not %s: %s", c.name, what, lack))
		}
	}
}

func (p *peers) logTail(name string) string {
	raw, _ := os.ReadFile(filepath.Join(p.dir, name+".log"))
	const most = 600
	return string(bytes.TrimSpace(raw[max(0, len(raw)-most):]))
}

// ask asks one server, whatever it is.
func (n *patroniNode) ask(ctx context.Context, password, statement string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patroniAsk)
	defer cancel()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=postgres password=%s dbname=postgres sslmode=disable", n.address, peerPort, password))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, statement).Scan(&answer)
	return answer, err
}

// noWriter says why nobody takes writes.
func (c *patroniCluster) noWriter(ctx context.Context) string {
	for _, n := range c.nodes {
		if answer, err := n.ask(ctx, c.password, "SELECT pg_is_in_recovery()::text"); err == nil && answer == "false" {
			return ""
		}
	}
	return "no server has left its recovery"
}

// pair waits until one server writes, the other follows it and each commit waits for it,
// by the servers and by Patroni.
func (c *patroniCluster) pair(ctx context.Context) (lostPair, error) {
	var p lostPair
	err := c.await(ctx, "become whole", func() (lacks string) {
		p, lacks = c.look(ctx)
		return lacks
	})
	return p, err
}

func (c *patroniCluster) look(ctx context.Context) (p lostPair, lacks string) {
	var writer *patroniNode
	followers := 0
	for _, n := range c.nodes {
		answer, err := n.ask(ctx, c.password, "SELECT pg_is_in_recovery()::text")
		switch {
		case err != nil:
			return p, bed.OneLine(err)
		case answer == "false" && writer != nil:
			return p, "both take writes"
		case answer == "false":
			writer, p.writer = n, n.Member
		default:
			p.standby = n.Member
			followers++
		}
	}
	if writer == nil || followers != 1 {
		return p, fmt.Sprintf("%d servers follow", followers)
	}
	waited, err := writer.ask(ctx, c.password, "SELECT count(*)::text FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')")
	if err != nil {
		return p, bed.OneLine(err)
	}
	if waited != "1" {
		return p, fmt.Sprintf("commits wait for %s servers that stream", waited)
	}
	roles, err := writer.roles(ctx)
	if err != nil {
		return p, bed.OneLine(err)
	}
	if roles[p.writer.ID] != "leader" || roles[p.standby.ID] != "sync_standby" {
		return p, fmt.Sprintf("Patroni has them as %v", roles)
	}
	return p, ""
}

// rest asks its Patroni, or orders with a body.
func (n *patroniNode) rest(ctx context.Context, timeout time.Duration, method, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	url := "http://" + net.JoinHostPort(n.address, strconv.Itoa(peerRestPort)) + path
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true // a frozen Patroni would be asked by a connection of before
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return answer, err
}

func (n *patroniNode) roles(ctx context.Context) (map[string]string, error) {
	answer, err := n.rest(ctx, patroniAsk, http.MethodGet, "/cluster", nil)
	if err != nil {
		return nil, err
	}
	return patroniRoles(answer)
}

// close ends both Patronis, which would start their servers again, and then the servers, in
// whatever state they are.
func (c *patroniCluster) close(ctx context.Context) error {
	if c.pulse != nil {
		c.pulse.Stop()
	}
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.patroni.kill(ctx))
	}
	for _, n := range c.nodes {
		for _, dir := range []string{n.Home(), n.DataDir()} {
			if err := proc.KillSurvivors(ctx, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	if c.etcd != nil {
		errs = append(errs, c.etcd.kill(ctx))
	}
	return errors.Join(append(errs, os.RemoveAll(c.view.Data))...)
}

// node is that of a server.
func (c *patroniCluster) node(m harness.Member) *patroniNode {
	for _, n := range c.nodes {
		if n.ID == m.ID {
			return n
		}
	}
	return nil
}

// freeze stops a server with its Patroni, which would end or replace it, as a machine that hangs.
func (n *patroniNode) freeze() error {
	if err := n.patroni.send(syscall.SIGSTOP); err != nil {
		return err
	}
	return n.Freeze()
}

func (n *patroniNode) thaw() error { return errors.Join(n.Thaw(), n.patroni.send(syscall.SIGCONT)) }
