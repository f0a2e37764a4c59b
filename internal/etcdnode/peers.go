package etcdnode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
)

// Peers says how a node reaches others, and they it.
type Peers struct {
	// Address is where this node listens for the others, and what they are told.
	Address string
	// CertFile and KeyFile are what this node shows, CAFile is who signs those of all.
	// A peer that is dialled must have a certificate for ServerName.
	CertFile, KeyFile, CAFile, ServerName string
	// Verify judges who calls, by the certificates that are shown, the leaf first.
	Verify func(chain []*x509.Certificate) error
	// Cluster is what Invite answered to a node that joins, "" of any other.
	Cluster string
}

const (
	// peerWriteTime is how long a peer may not read until it is as good as cut off.
	peerWriteTime = 5 * time.Second
	// peerReadTime bounds a request of a peer: it may carry the whole state.
	peerReadTime = 5 * time.Minute
	// peerHeaderTime bounds what comes before: whoever has not shown a certificate is a stranger.
	peerHeaderTime = 10 * time.Second
)

// join sets what a node among others has in place of what a lone one has. Its calls
// are made by etcd, with these files; what it answers is its own, see OpenPeers.
func (p *Peers) join(c *embed.Config) {
	c.PeerTLSInfo.CertFile, c.PeerTLSInfo.KeyFile = p.CertFile, p.KeyFile
	c.PeerTLSInfo.TrustedCAFile, c.PeerTLSInfo.ServerName = p.CAFile, p.ServerName
	if p.Cluster != "" {
		c.Name, c.InitialCluster, c.ClusterState = invited, p.Cluster, embed.ClusterStateFlagExisting
	}
}

// OpenPeers listens for other nodes, and tells them where. Of a lone node it is the first
// step to a second one: until then nothing listens. It may be called again.
func (n *Node) OpenPeers(ctx context.Context) error {
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	if n.peers == nil {
		return errors.New("open the state store to other servers: it has no peer address")
	}
	if n.peerServer == nil {
		if err := n.listen(); err != nil {
			return err
		}
	}
	own := peerScheme + n.peers.Address
	r, err := n.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("list members: %w", err)
	}
	for _, m := range r.Members {
		if m.ID != uint64(n.etcd.Server.MemberID()) || len(m.PeerURLs) == 1 && m.PeerURLs[0] == own {
			continue
		}
		if _, err := n.client.MemberUpdate(ctx, m.ID, []string{own}); err != nil {
			return fmt.Errorf("publish this member's address: %w", unhealthy(err))
		}
	}
	return nil
}

// listen answers other nodes; it is etcd's own handler behind a door of ours, since etcd
// cannot look at the name in a certificate, nor begin to listen later on.
func (n *Node) listen() error {
	cert, err := tls.LoadX509KeyPair(n.peers.CertFile, n.peers.KeyFile)
	if err != nil {
		return fmt.Errorf("listen for other servers: %w", err)
	}
	l, err := net.Listen("tcp", n.peers.Address)
	if err != nil {
		return fmt.Errorf("listen for other servers: %w", err)
	}
	n.peerServer = &http.Server{
		Handler: etcdhttp.NewPeerHandler(n.etcd.GetLogger(), n.etcd.Server), ReadTimeout: peerReadTime, ReadHeaderTimeout: peerHeaderTime,
		ErrorLog:     log.New(io.Discard, "", 0), // a peer that went away
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert,
			VerifyConnection: func(s tls.ConnectionState) error { return n.peers.Verify(s.PeerCertificates) },
		},
	}
	go n.peerServer.ServeTLS(patient{l}, "", "") // ends with Close
	return nil
}

// patient is a listener whose connections end when they cannot be written to.
type patient struct{ net.Listener }

// Accept implements net.Listener.
func (p patient) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return patientConn{c}, nil
}

type patientConn struct{ net.Conn }

// Write implements net.Conn.
func (c patientConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(peerWriteTime)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
