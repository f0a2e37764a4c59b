package api

import (
	"net/http"
	"slices"

	"kurabe"
	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/query"
	"kurabe/internal/aws/shape"
	"kurabe/internal/must"
)

// Service is one service behind the port.
type Service struct {
	Name      string               // its signing name
	Protocols []Protocol           // in which it is asked
	Ops       map[string]Operation // by action; use Table
	Errors    Errors               // its own errors, beside those that all services have

	// LargeBodies: its requests have up to sigv4.LargeBodyBytes.
	LargeBodies bool

	// NotOffered says why an action of the model has no row in Ops. A service without it has no
	// actions but those.
	NotOffered func(action string) (reason string)
}

// Protocol is one way to write requests and answers: Query, EC2, JSON or CBOR.
type Protocol interface {
	// has says whether the model of the service has the action, offered or not.
	has(action string) bool
	// head sets the headers of every answer.
	head(h http.Header)
	// decode reads the input of an action. A member that no part of us reads is refused: an
	// accepted parameter is a promise.
	decode(in input, into any) error
	encode(action, requestID string, out any) ([]byte, error)
	// refuse writes the answer to a request that failed, and what the headers say of it.
	refuse(h http.Header, f *fault.Fault, requestID string) []byte
}

// formProtocol is a protocol whose requests are forms; the version in them names the service.
type formProtocol interface {
	Protocol
	forms() *shape.Model
}

// documentProtocol is a protocol whose requests name their service outside the body.
type documentProtocol interface {
	Protocol
	target() string
}

// input is a request after its signature was verified.
type input struct {
	form *query.Form // of the protocols that send one
	body []byte
}

// Errors are the wire forms of the codes of one service, with the Fault suffix exactly where
// its model has it: the SDKs choose the error's type by this text.
type Errors map[kurabe.Code]Wire

// Wire is AWS's form of a code.
type Wire struct {
	Code   string
	Status int
}

// Table makes the Ops of a service. An action twice is our mistake.
func Table(rows ...Operation) map[string]Operation {
	ops := make(map[string]Operation, len(rows))
	for _, row := range rows {
		_, twice := ops[row.Name]
		must.True(!twice, "an action has one operation: "+row.Name)
		ops[row.Name] = row
	}
	return ops
}

// find returns the operation of an action, or why there is none.
func (c *call) find() (Operation, error) {
	if op, ok := c.service.Ops[c.action]; ok {
		return op, nil
	}
	if c.service.NotOffered == nil || !c.protocol.has(c.action) {
		if _, form := c.protocol.(formProtocol); form {
			return Operation{}, unknownAction(c.action, c.version)
		}
		return Operation{}, fault.New(http.StatusNotFound, "UnknownOperationException", "The service has no operation %.100s.", c.action)
	}
	// It is 400, not 501: SDKs and Terraform retry a 5xx, and asking again is no use.
	return Operation{}, fault.New(http.StatusBadRequest, "UnsupportedOperation",
		"%s is not offered by this version of Kurabe: %s; see docs/coverage.md", c.action, c.service.NotOffered(c.action))
}

func unknownAction(action, version string) error {
	if version == "" {
		version = "NO_VERSION_SPECIFIED"
	}
	return fault.New(http.StatusBadRequest, "InvalidAction", "Could not find operation %.100s for version %.100s", action, version)
}

// services finds the services of a server.
type services struct {
	names    []string // signing names
	byName   map[string]*Service
	versions map[string]*Service // by the Version that a form names
	targets  map[string]*Service // by what documentProtocol's target says
}

func newServices(list []Service) services {
	s := services{byName: map[string]*Service{}, versions: map[string]*Service{}, targets: map[string]*Service{}}
	for n := range list {
		service := &list[n]
		must.True(service.Name != "" && !slices.Contains(s.names, service.Name), "a signing name belongs to one service: "+service.Name)
		s.names = append(s.names, service.Name)
		s.byName[service.Name] = service
		for _, p := range service.Protocols {
			for action := range service.Ops {
				must.True(p.has(action), "an operation is an action of its model: "+action)
			}
			switch p := p.(type) {
			case formProtocol:
				version := p.forms().Version
				must.True(s.versions[version] == nil, "an API version belongs to one service: "+version)
				s.versions[version] = service
			case documentProtocol:
				other := s.targets[p.target()]
				must.True(other == nil || other == service, "a target belongs to one service: "+p.target())
				s.targets[p.target()] = service
			}
		}
	}
	return s
}

// protocolOf returns the protocol of a type that a service is asked in.
func protocolOf[P Protocol](s *Service) (P, bool) {
	if s != nil {
		for _, p := range s.Protocols {
			if found, ok := p.(P); ok {
				return found, true
			}
		}
	}
	return *new(P), false
}
