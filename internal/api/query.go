package api

import (
	"net/http"
	"strings"
	"time"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/query"
	"kurabe/internal/aws/sigv4"
)

// serveQuery answers one request of the awsQuery protocol. The form is read
// before the signature is checked, because only its Version tells which service
// the signature must be for; nothing else of it is used before.
func (s *Server) serveQuery(w http.ResponseWriter, r *http.Request, c *call) ([]byte, error) {
	body, err := sigv4.ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	c.read = time.Now()
	form, formErr := query.Parse(r.URL.RawQuery, string(body))
	var service Service
	var version string
	names := s.names
	if formErr == nil {
		c.action, version = form.Take("Action"), form.Take("Version")
		service = s.versions[version]
		if c.model = service.Model; c.model != nil {
			names = []string{c.model.Service}
		}
	}

	signer, err := s.verifier.Verify(r, body, names...)
	if err != nil {
		return nil, err
	}
	c.signed(s, signer)
	if formErr != nil {
		return nil, formErr
	}
	if r.Header.Get("Authorization") == "" { // presigned: the signature is in the query
		form.TakePrefix("X-Amz-")
	}

	op, err := service.find(c.action, version)
	if err != nil {
		return nil, err
	}
	in := op.newInput()
	if err := c.model.Decode(form, in); err != nil {
		return nil, err
	}
	if err := refuseUnknown(form); err != nil {
		return nil, err
	}
	out, err := s.run(r, c, op, in)
	if err != nil {
		return nil, err
	}
	return c.model.EncodeResult(c.action, c.id, out), nil
}

// find returns the operation of an action, or why there is none.
func (s Service) find(action, version string) (Operation, error) {
	if op, ok := s.Ops[action]; ok {
		return op, nil
	}
	switch {
	case action == "":
		return Operation{}, fault.New(http.StatusBadRequest, "MissingAction",
			"The request is missing an action or a required parameter.")
	case s.Model == nil || !s.Model.Has(action):
		if version == "" {
			version = "NO_VERSION_SPECIFIED"
		}
		return Operation{}, fault.New(http.StatusBadRequest, "InvalidAction",
			"Could not find operation %.100s for version %.100s", action, version)
	}
	return Operation{}, notOffered(action, s.NotOffered(action))
}

// notOffered is the answer to an action of AWS that this version does not have.
// It is 400, not 501: SDKs and Terraform retry a 5xx, and asking again is no use.
func notOffered(action, reason string) error {
	return fault.New(http.StatusBadRequest, "UnsupportedOperation",
		"%s is not offered by this version of Kurabe: %s; see docs/coverage.md", action, reason)
}

// refuseUnknown rejects a request with a parameter that no part of us has read:
// an accepted parameter is a promise.
func refuseUnknown(form *query.Form) error {
	const most = 5 // names in the message
	unknown := form.Unconsumed()
	if len(unknown) == 0 {
		return nil
	}
	return fault.New(http.StatusBadRequest, "InvalidParameterValue",
		"unknown parameter %s", strings.Join(unknown[:min(most, len(unknown))], ", "))
}
