package api

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strings"

	"kurabe/internal/aws/document"
	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/query"
	"kurabe/internal/aws/shape"
)

// The headers of the protocols.
const (
	headerProtocol   = "Smithy-Protocol"
	headerTarget     = "X-Amz-Target"
	headerErrorType  = "X-Amzn-ErrorType"
	headerQueryError = "X-Amzn-Query-Error"
	protocolCBOR     = "rpc-v2-cbor"
)

// plain is the model of structs that say all names themselves.
var plain = shape.New(shape.Text{})

// Query is the protocol awsQuery: a form, answered in XML.
type Query struct{ Model *shape.Model }

func (p Query) forms() *shape.Model    { return p.Model }
func (p Query) has(action string) bool { return p.Model.Has(action) }
func (p Query) head(h http.Header)     { h.Set("Content-Type", query.ContentType) }

func (p Query) decode(in input, into any) error {
	if err := query.Decode(p.Model, in.form, into); err != nil {
		return err
	}
	const most = 5 // names in the message
	if unknown := in.form.Unconsumed(); len(unknown) > 0 {
		return fault.New(http.StatusBadRequest, "InvalidParameterValue", "unknown parameter %s", strings.Join(unknown[:min(most, len(unknown))], ", "))
	}
	return nil
}

func (p Query) encode(action, requestID string, out any) ([]byte, error) {
	return query.EncodeResult(p.Model, action, requestID, out), nil
}

func (p Query) refuse(_ http.Header, f *fault.Fault, requestID string) []byte {
	return query.EncodeFault(p.Model, f, requestID)
}

// EC2 is the protocol ec2Query: a form whose lists are flat, answered in XML without a result
// element. Inputs are plain structs with the names of the form's parameters, outputs have those
// of the answer as tags of encoding/xml.
type EC2 struct{ Query }

func (p EC2) encode(action, requestID string, out any) ([]byte, error) {
	var b bytes.Buffer
	start := xml.StartElement{Name: xml.Name{Local: action + "Response"}, Attr: []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: p.Model.Namespace}}}
	if err := xml.NewEncoder(&b).EncodeElement(out, start); err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(b.String(), ">")
	return []byte(head + "><requestId>" + requestID + "</requestId>" + rest), nil
}

func (p EC2) refuse(_ http.Header, f *fault.Fault, requestID string) []byte {
	return []byte("<Response><Errors><Error><Code>" + escaped(f.Code) + "</Code><Message>" + escaped(f.Message) +
		"</Message></Error></Errors><RequestID>" + requestID + "</RequestID></Response>")
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes everything
	return b.String()
}

// JSON is the protocol awsJson: the header X-Amz-Target names the action, the body holds its
// input. Without a Model, inputs and outputs are plain structs: a member is named by its field or
// by the tag `json:"name"`, with omitempty or omitzero; outputs are as encoding/json writes them,
// with times in ISO 8601.
type JSON struct {
	Target  string // the part before the action in X-Amz-Target
	Version string // "1.0" or "1.1"; "" for REST, of which only errors are written
	Model   *shape.Model
}

func (p JSON) model() *shape.Model    { return modelOr(p.Model) }
func (p JSON) has(action string) bool { return p.Model == nil || p.Model.Has(action) }
func (p JSON) target() string         { return p.Target }

func (p JSON) head(h http.Header) {
	kind := "application/json"
	if p.Version != "" {
		kind = "application/x-amz-json-" + p.Version
	}
	h.Set("Content-Type", kind)
}

func (p JSON) decode(in input, into any) error { return document.DecodeJSON(p.model(), in.body, into) }

func (p JSON) encode(_, _ string, out any) ([]byte, error) {
	if p.Model == nil {
		return json.Marshal(out)
	}
	return document.EncodeJSON(p.model(), out), nil
}

func (p JSON) refuse(h http.Header, f *fault.Fault, _ string) []byte {
	refuseDocument(h, p.model(), f)
	return document.FaultJSON(p.model(), f)
}

// CBOR is the protocol RPCv2 CBOR: the path /service/SERVICE/operation/ACTION names the action,
// the body holds its input.
type CBOR struct {
	Service string // the name in the path, that of the Smithy model
	Model   *shape.Model
}

func (p CBOR) model() *shape.Model    { return modelOr(p.Model) }
func (p CBOR) has(action string) bool { return p.Model == nil || p.Model.Has(action) }
func (p CBOR) target() string         { return p.Service }

func (p CBOR) head(h http.Header) {
	h.Set("Content-Type", "application/cbor")
	h.Set(headerProtocol, protocolCBOR)
}

func (p CBOR) decode(in input, into any) error { return document.DecodeCBOR(p.model(), in.body, into) }

func (p CBOR) encode(_, _ string, out any) ([]byte, error) {
	return document.EncodeCBOR(p.model(), out), nil
}

func (p CBOR) refuse(h http.Header, f *fault.Fault, _ string) []byte {
	refuseDocument(h, p.model(), f)
	return document.FaultCBOR(p.model(), f)
}

func modelOr(m *shape.Model) *shape.Model {
	if m == nil {
		return plain
	}
	return m
}

// refuseDocument writes what the headers say of an error. The services that began with the query
// protocol tell its code there: programs compare that.
func refuseDocument(h http.Header, m *shape.Model, f *fault.Fault) {
	h.Set(headerErrorType, m.ErrorName(f.Code))
	if m.Compatible {
		h.Set(headerQueryError, f.Code+";"+f.Blame())
	}
}

// restXML is the protocol of S3 and its like, of which only errors are written.
type restXML struct{ Query }

func (restXML) head(h http.Header) { h.Set("Content-Type", "application/xml") }

func (restXML) refuse(_ http.Header, f *fault.Fault, requestID string) []byte {
	return []byte("<Error><Code>" + escaped(f.Code) + "</Code><Message>" + escaped(f.Message) + "</Message><RequestId>" + requestID + "</RequestId></Error>")
}
