package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/sigv4"
	"kurabe/internal/must"
)

// JSONService is an AWS service of the JSON 1.1 protocol: the header X-Amz-Target names the
// action, the body holds its input. Inputs and outputs are plain structs with AWS's names.
type JSONService struct {
	Name   string // its signing name
	Target string // what stands before the action in X-Amz-Target
	Ops    map[string]Operation

	// NotOffered says why an action has no row in Ops.
	NotOffered func(action string) (reason string)
}

const contentTypeJSON = "application/x-amz-json-1.1"

// JSONTable makes the Ops of a service. An action twice is our mistake.
func JSONTable(rows ...Operation) map[string]Operation {
	ops := make(map[string]Operation, len(rows))
	for _, row := range rows {
		_, twice := ops[row.Name]
		must.True(!twice, "an action has one operation: "+row.Name)
		ops[row.Name] = row
	}
	return ops
}

// serveJSON answers one request of the JSON 1.1 protocol.
func (s *Server) serveJSON(w http.ResponseWriter, r *http.Request, c *call, service JSONService) ([]byte, error) {
	_, c.action, _ = strings.Cut(r.Header.Get(headerTarget), ".")
	c.service, c.kind = service.Name, contentTypeJSON
	body, err := sigv4.ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	c.read = time.Now()
	signer, err := s.verifier.Verify(r, body, service.Name)
	if err != nil {
		return nil, err
	}
	c.signed(s, signer)
	op, ok := service.Ops[c.action]
	if !ok {
		return nil, notOffered(c.action, service.NotOffered(c.action))
	}
	in := op.newInput()
	if err := decodeJSON(body, in); err != nil {
		return nil, err
	}
	out, err := s.run(r, c, op, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// decodeJSON reads an input. A member that no part of us reads is refused: an accepted
// parameter is a promise.
func decodeJSON(body []byte, in any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(in)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err != nil && !(errors.Is(err, io.EOF) && len(bytes.TrimSpace(body)) == 0) {
		return fault.New(http.StatusBadRequest, "SerializationException", "The request's body cannot be read: %.200s.", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
