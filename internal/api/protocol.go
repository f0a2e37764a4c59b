package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/query"
)

// Query is the protocol awsQuery: a form, answered in XML.
type Query struct{ Model *query.Model }

func (p Query) has(action string) bool { return p.Model.Has(action) }
func (p Query) mediaType() string      { return query.ContentType }

func (p Query) decode(in input, into any) error {
	if err := p.Model.Decode(in.form, into); err != nil {
		return err
	}
	const most = 5 // names in the message
	if unknown := in.form.Unconsumed(); len(unknown) > 0 {
		return fault.New(http.StatusBadRequest, "InvalidParameterValue", "unknown parameter %s", strings.Join(unknown[:min(most, len(unknown))], ", "))
	}
	return nil
}

func (p Query) encode(action, requestID string, out any) ([]byte, error) {
	return p.Model.EncodeResult(action, requestID, out), nil
}

// JSON is the protocol awsJson: the header X-Amz-Target names the action, the body holds its
// input. Inputs and outputs are plain structs with AWS's names.
type JSON struct {
	Target  string // the part before the action in X-Amz-Target
	Version string // "1.0" or "1.1"
}

// has is true of each action: which ones AWS has besides is not known here.
func (p JSON) has(string) bool   { return true }
func (p JSON) mediaType() string { return "application/x-amz-json-" + p.Version }

func (p JSON) decode(in input, into any) error {
	d := json.NewDecoder(bytes.NewReader(in.body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	if err != nil && !(errors.Is(err, io.EOF) && len(bytes.TrimSpace(in.body)) == 0) {
		return fault.New(http.StatusBadRequest, "SerializationException", "The request's body cannot be read: %.200s.", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func (p JSON) encode(_, _ string, out any) ([]byte, error) { return json.Marshal(out) }
