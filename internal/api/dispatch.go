package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/query"
	"kurabe/internal/aws/sigv4"
)

// maxHandling bounds a handler. Requests only store and read records; botocore
// and the Go SDK give up after a minute, and an answer nobody reads is no use.
const maxHandling = 30 * time.Second

// minAnswer is the least time between reading a request and answering it. The Go
// SDK closes the request's body as soon as it has the reply's head; if net/http is
// still finishing the write then, it cuts the connection and the SDK sends the
// request again (https://github.com/aws/aws-sdk-go-v2/issues/2737, smithy-go
// v1.28.8 still has it). On loopback that hit 44 of 3000 requests, none of 3000
// with 1 ms; without it a CreateDBInstance that worked would be reported as
// DBInstanceAlreadyExists.
const minAnswer = time.Millisecond

// call is what becomes known of one request while it is served.
type call struct {
	id          string
	started     time.Time
	read        time.Time    // when its body had come, by our own clock
	model       *query.Model // nil until the service is known
	action      string
	service     string // the signing name of a service without a model
	kind        string // Content-Type of the answer
	accessKeyID string
	region      string // that it was signed for, where any one is taken
	foreign     string // the signing name of a service that is not here
	status      int
	err         error
}

// serveAPI answers one request of an AWS client.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	c := &call{id: newRequestID(), started: s.config.Now(), status: http.StatusOK, kind: query.ContentType}
	body, err := s.guard(w, r, c)
	h := w.Header()
	h.Set("x-amzn-RequestId", c.id)
	h.Set("Content-Type", c.kind)
	var f *fault.Fault
	if err != nil {
		f = faultOf(err)
		f.Message = regions{s.config.Region, s.config.Account}.outward(f.Message, c.region)
		c.status, c.err, body = f.Status, err, c.encodeFault(h, r, f)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store") // replies may hold passwords
	c.settle()
	w.WriteHeader(c.status)
	_, _ = w.Write(body) // a client that has gone is not our failure
	s.log(r.Context(), c, f)
}

// settle waits until minAnswer has passed.
func (c *call) settle() {
	if !c.read.IsZero() {
		time.Sleep(minAnswer - time.Since(c.read))
	}
}

// guard turns a panic below into an error, so that it costs one request.
func (s *Server) guard(w http.ResponseWriter, r *http.Request, c *call) (body []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return s.route(w, r, c)
}

// route tells the protocols apart, in the order that tells the clients apart: a
// new client's CBOR or JSON request may look like a form to whoever looks at the
// body first.
func (s *Server) route(w http.ResponseWriter, r *http.Request, c *call) ([]byte, error) {
	// Before anything is verified: of a service that is not here no signature is right.
	if name := sigv4.ServiceOf(r); name != "" && !slices.Contains(s.names, name) {
		c.foreign = name
		return nil, s.unknownProtocol("service " + name)
	}
	prefix, _, _ := strings.Cut(r.Header.Get(headerTarget), ".")
	service, isJSON := s.targets[prefix]
	switch {
	case isJSON && r.Method == http.MethodPost && r.Header.Get(headerProtocol) == "":
		return s.serveJSON(w, r, c, service)
	case r.Header.Get(headerProtocol) != "":
		return nil, s.unknownProtocol("protocol " + r.Header.Get(headerProtocol))
	case r.Header.Get(headerTarget) != "":
		return nil, s.unknownProtocol("target " + r.Header.Get(headerTarget))
	case r.Method != http.MethodPost && r.Method != http.MethodGet:
		return nil, fault.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "Send POST or GET.")
	}
	return s.serveQuery(w, r, c)
}

// unknownProtocol answers what no service here speaks.
func (s *Server) unknownProtocol(what string) error {
	return fault.New(http.StatusNotFound, "UnknownOperationException", "No service here answers the %.100s; this endpoint is that of %s.",
		what, strings.Join(s.names, " and "))
}

// identify returns the context that a handler runs in.
func (s *Server) identify(ctx context.Context, c *call) (context.Context, context.CancelFunc) {
	ctx = WithIdentity(ctx, Identity{Account: s.config.Account, Region: s.config.Region, AccessKeyID: c.accessKeyID})
	ctx = context.WithValue(ctx, requestIDKey{}, c.id)
	return context.WithTimeout(ctx, maxHandling)
}

// signed keeps who has signed a request.
func (c *call) signed(s *Server, signer sigv4.Signer) {
	c.accessKeyID = signer.AccessKeyID
	if s.config.ScopeRegion == "" {
		c.region = signer.Region
	}
}

// run calls an operation, with the ARNs of its input and its output translated at the door.
func (s *Server) run(r *http.Request, c *call, op Operation, in any) (any, error) {
	here := regions{s.config.Region, s.config.Account}
	if c.region != "" {
		translate(in, here.inward)
	}
	ctx, cancel := s.identify(r.Context(), c)
	defer cancel()
	out, err := op.handle(ctx, in)
	if err != nil {
		return nil, err
	}
	if c.region != "" && c.region != here.own {
		translate(out, func(text string) string { return here.outward(text, c.region) })
	}
	return out, nil
}
