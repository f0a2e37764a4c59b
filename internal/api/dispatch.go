package api

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
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
	read        time.Time // when its body had come, by our own clock
	service     *Service  // nil until it is known
	protocol    Protocol  // that it looks like, until it is known
	action      string
	version     string // that a form names
	reads       bool   // it changes nothing
	accessKeyID string
	region      string // that it was signed for, where any one is taken
	status      int
	err         error
}

// serveAPI answers one request of an AWS client.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	c := &call{id: newRequestID(), started: s.config.Now(), status: http.StatusOK, protocol: Query{}}
	body, err := s.guard(w, r, c)
	h := w.Header()
	h.Set("x-amzn-RequestId", c.id)
	var f *fault.Fault
	if err != nil {
		f = c.service.faultOf(err)
		f.Message = regions{s.config.Region, s.config.Account}.outward(f.Message, c.region)
		c.status, c.err, body = f.Status, err, c.protocol.refuse(h, f, c.id)
	}
	c.protocol.head(h)
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
	name := sigv4.ServiceOf(r)
	c.protocol = s.spoken(r, name)
	if name != "" && !slices.Contains(s.names, name) {
		return nil, s.unknownProtocol("service " + name)
	}
	protocol, target := r.Header.Get(headerProtocol), r.Header.Get(headerTarget)
	switch {
	case protocol != "" && protocol != protocolCBOR:
		return nil, s.unknownProtocol("protocol " + protocol)
	case protocol != "":
		_, path, _ := strings.Cut(r.URL.Path, "/service/")
		service, action, _ := strings.Cut(path, "/operation/")
		if !bind[CBOR](s, r, c, service, action) {
			return nil, s.unknownProtocol("protocol " + protocol + " at " + r.URL.Path)
		}
	case target != "":
		service, action, _ := strings.Cut(target, ".")
		if !bind[JSON](s, r, c, service, action) {
			return nil, s.unknownProtocol("target " + target)
		}
	case r.Method != http.MethodPost && r.Method != http.MethodGet:
		return nil, fault.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "Send POST or GET.")
	}
	return s.serve(w, r, c, name)
}

// bind finds the service and the action of a request that names them outside its body.
func bind[P documentProtocol](s *Server, r *http.Request, c *call, target, action string) bool {
	p, ok := protocolOf[P](s.targets[target])
	if !ok || p.target() != target || r.Method != http.MethodPost {
		return false
	}
	c.service, c.protocol, c.action = s.targets[target], p, action
	return true
}

// serve answers a request of a service here. Nothing of its body is parsed before its
// signature is verified: whoever has no key costs a hash. claimed is the signing name that the
// request says it is signed for.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, c *call, claimed string) ([]byte, error) {
	names, form := s.names, c.service == nil
	switch {
	case !form:
		names = []string{c.service.Name}
	case claimed != "":
		// A form names its service in itself, by a version; that is compared below.
		c.service, names = s.byName[claimed], []string{claimed}
	}
	most := int64(sigv4.MaxBodyBytes)
	if c.service != nil && c.service.LargeBodies {
		most = sigv4.LargeBodyBytes
	}
	body, err := sigv4.ReadBody(w, r, most)
	if err != nil {
		return nil, err
	}
	c.read = time.Now()
	if open := s.openTo(r); open != nil && form {
		c.service, body = open, nil
	} else {
		signer, err := s.verifier.Verify(r, body, names...)
		if err != nil {
			return nil, err
		}
		c.signed(s, signer)
	}
	if body, err = inflate(r, body, most); err != nil {
		return nil, err
	}
	in := input{body: body}
	if form {
		if in.form, err = s.readForm(r, c, body); err != nil {
			return nil, err
		}
	}
	op, err := c.find()
	if err != nil {
		return nil, err
	}
	c.reads = op.Reads
	wish := reflect.New(op.In).Interface()
	if err := c.protocol.decode(in, wish); err != nil {
		return nil, err
	}
	out, err := s.run(r, c, op, wish)
	if err != nil {
		return nil, err
	}
	return c.protocol.encode(c.action, c.id, out)
}

// openTo returns the service whose link a request without a signature follows, nil if none.
func (s *Server) openTo(r *http.Request) *Service {
	q := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != "/" || r.Header.Get("Authorization") != "" || q.Has("X-Amz-Signature") {
		return nil
	}
	for _, service := range s.byName {
		if service.Ops[q.Get("Action")].Open {
			return service
		}
	}
	return nil
}

// readForm parses a form and finds the service that it is for, which has to be that of the
// signature.
func (s *Server) readForm(r *http.Request, c *call, body []byte) (*query.Form, error) {
	form, err := query.Parse(r.URL.RawQuery, string(body))
	if err != nil {
		return nil, err
	}
	c.action, c.version = form.Take("Action"), form.Take("Version")
	if p, ok := protocolOf[formProtocol](c.service); ok && c.version == "" && c.accessKeyID == "" {
		c.version = p.forms().Version // of a link
	}
	service := s.versions[c.version]
	p, ok := protocolOf[formProtocol](service)
	switch {
	case c.action == "":
		return nil, fault.New(http.StatusBadRequest, "MissingAction", "The request is missing an action or a required parameter.")
	case !ok:
		return nil, unknownAction(c.action, c.version)
	case service != c.service:
		return nil, sigv4.WrongService(service.Name)
	}
	c.protocol = p
	if r.Header.Get("Authorization") == "" { // presigned: the signature is in the query
		form.TakePrefix("X-Amz-")
	}
	return form, nil
}

// unknownProtocol answers what no service here speaks.
func (s *Server) unknownProtocol(what string) error {
	return fault.New(http.StatusNotFound, "UnknownOperationException", "Unknown %.100s: this endpoint serves %s.", what, strings.Join(s.names, ", "))
}

// identify returns the context that a handler runs in.
func (s *Server) identify(ctx context.Context, c *call) (context.Context, context.CancelFunc) {
	ctx = WithIdentity(ctx, Identity{Account: s.config.Account, Region: s.config.Region, AccessKeyID: c.accessKeyID})
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
	if op.Permit != nil {
		if err := op.Permit(ctx, in); err != nil {
			return nil, err
		}
	}
	out, err := op.handle(ctx, in)
	if err != nil {
		return nil, err
	}
	if c.region != "" && c.region != here.own {
		translate(out, func(text string) string { return here.outward(text, c.region) })
	}
	return out, nil
}
