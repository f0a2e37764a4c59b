package api

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/query"
)

// Query is the protocol awsQuery: a form, answered in XML.
type Query struct{ Model *query.Model }

func (p Query) model() *query.Model    { return p.Model }
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

// EC2 is the protocol ec2Query: a form whose lists are flat, answered in XML without a result
// element. Inputs are plain structs with the names of the form's parameters, outputs have those
// of the answer as tags of encoding/xml.
type EC2 struct{ Query }

// has is true of each action: which ones AWS has besides is not known here.
func (p EC2) has(string) bool { return true }

func (p EC2) encode(action, requestID string, out any) ([]byte, error) {
	var b bytes.Buffer
	start := xml.StartElement{Name: xml.Name{Local: action + "Response"}, Attr: []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: p.Model.Namespace}}}
	if err := xml.NewEncoder(&b).EncodeElement(out, start); err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(b.String(), ">")
	return []byte(head + "><requestId>" + requestID + "</requestId>" + rest), nil
}

func ec2Fault(f *fault.Fault, requestID string) []byte {
	return []byte("<Response><Errors><Error><Code>" + escaped(f.Code) + "</Code><Message>" + escaped(f.Message) +
		"</Message></Error></Errors><RequestID>" + requestID + "</RequestID></Response>")
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
