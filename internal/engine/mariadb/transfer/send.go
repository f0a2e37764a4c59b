package transfer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/door"
	"kurabe/internal/faultpoint"
	"kurabe/internal/ownconn"
	"kurabe/internal/volume"
)

// feedDial bounds coming to a follower that waits; it may have given up meanwhile.
const feedDial = 10 * time.Second

// MakeCopy makes what is sent, in the folder of the request, and says where in the source's history
// it is.
type MakeCopy func(ctx context.Context) (files []volume.File, position string, err error)

// Send brings a follower the copy that it asks for. bytes is about how large that will be; it is
// made when the follower has room for it.
func Send(ctx context.Context, r engine.FeedRequest, bytes int64, makeCopy MakeCopy) error {
	conn, err := dialFeed(ctx, r)
	if err != nil {
		return err
	}
	ctx, p := openFeed(ctx, conn)
	defer p.close()
	if err := p.sendJSON(feedHello, feedSize{Bytes: bytes}); err != nil {
		return err
	}
	answers := p.answers()
	err = answers.await(ctx, feedGo)
	if err == nil {
		err = p.sendCopy(ctx, r, makeCopy)
	}
	if err == nil {
		err = answers.await(ctx, feedTaken)
	}
	if err == nil {
		return nil
	}
	p.refuse(err)
	return errors.Join(context.Cause(ctx), err)
}

// dialFeed comes to the follower as the member that it follows, and sees to it that it is
// the one that asks.
func dialFeed(ctx context.Context, r engine.FeedRequest) (net.Conn, error) {
	config, err := feedTLS(r.At.Addr().String(), r.CAFile, r.ID)
	if err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(q *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		c, err := r.Certificate(q.Context())
		return &c, err
	}
	ctx, cancel := context.WithTimeout(ctx, feedDial)
	defer cancel()
	return (&tls.Dialer{NetDialer: ownconn.Dialer(), Config: config}).DialContext(ctx, "tcp", r.At.String())
}

// feedProtocol keeps a database server, whose port a follower's may be by then, from being
// taken for one that waits.
const feedProtocol = "kurabe-feed-1"

// feedTLS is what both ends demand of each other: the authority's signature, and the name
// of the member.
func feedTLS(address, caFile string, member kurabe.InstanceID) (*tls.Config, error) {
	config, err := door.TLSConfig(address, caFile)
	if err != nil {
		return nil, err
	}
	config.MinVersion, config.NextProtos = tls.VersionTLS13, []string{feedProtocol}
	config.VerifyConnection = func(s tls.ConnectionState) error {
		switch name := s.PeerCertificates[0].Subject.CommonName; { // one was demanded and verified
		case name != string(member):
			return fmt.Errorf("it is %.80q, and not %s", name, member)
		case s.NegotiatedProtocol != feedProtocol:
			return errors.New("it uses another protocol")
		}
		return nil
	}
	return config, nil
}

// sendCopy has the copy made and sends it.
func (p *feedPeer) sendCopy(ctx context.Context, r engine.FeedRequest, makeCopy MakeCopy) error {
	files, position, err := makeCopy(ctx)
	if err != nil {
		return err
	}
	faultpoint.Reach("before", "send-feed")
	size := feedSize{Files: len(files), Position: position}
	for _, f := range files {
		size.Bytes += f.Size
	}
	if err := p.sendJSON(feedCopy, size); err != nil {
		return err
	}
	sum, err := sendFiles(ctx, r, files, p)
	if err != nil {
		return err
	}
	return p.sendJSON(feedEnd, feedSum{sum})
}

// feedSize is what a copy is like; of one that is not made yet, its size as far as it is
// known.
type feedSize struct {
	Bytes    int64  `json:"bytes"`
	Files    int    `json:"files,omitempty"`
	Position string `json:"position,omitempty"`
}

// feedSum is the SHA-256 of all that was sent as data.
type feedSum struct {
	Sum []byte `json:"sum"`
}

func parseFeed(text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %w", errFeed, err)
	}
	return nil
}
