package api

import (
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"kurabe/internal/aws/fault"
	"kurabe/internal/aws/query"
)

// Clients of services that do not speak awsQuery cannot read its XML: a wrong
// endpoint would show them a parse error or a bare status. They are refused in
// their own protocol.

// The headers by which those protocols are told.
const (
	headerProtocol = "Smithy-Protocol"
	headerTarget   = "X-Amz-Target"
)

// encodeFault writes a refusal in the protocol of the request.
func (c *call) encodeFault(h http.Header, r *http.Request, f *fault.Fault) []byte {
	switch kind := r.Header.Get("Content-Type"); {
	case r.Header.Get(headerProtocol) == "rpc-v2-cbor":
		h.Set("Content-Type", "application/cbor")
		h.Set(headerProtocol, "rpc-v2-cbor")
		return cborFault(f)
	case r.Header.Get(headerTarget) != "" || strings.HasPrefix(kind, "application/json"):
		h.Set("Content-Type", "application/json")
		h.Set("X-Amzn-ErrorType", f.Code)
		return jsonFault(f)
	}
	if _, ok := protocolOf[EC2](c.service); ok {
		return ec2Fault(f, c.id)
	}
	if c.foreign != "" {
		return c.foreignFault(h, r, f)
	}
	return c.model().EncodeFault(f, c.id)
}

// model is that of the service's forms, nil where it has none or is not known.
func (c *call) model() *query.Model {
	if p, ok := protocolOf[formProtocol](c.service); ok {
		return p.model()
	}
	return nil
}

// xmlServices are those of AWS whose clients read an error in XML although they send no form.
var xmlServices = []string{"s3", "s3express", "s3-outposts", "route53", "cloudfront", "s3-object-lambda"}

// foreignFault is read by clients of the REST protocols, of EC2's and of the query protocol.
func (c *call) foreignFault(h http.Header, r *http.Request, f *fault.Fault) []byte {
	switch form := strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"); {
	case c.foreign == "ec2":
		return ec2Fault(f, c.id)
	case slices.Contains(xmlServices, c.foreign):
		h.Set("Content-Type", "application/xml")
		return []byte("<Error><Code>" + escaped(f.Code) + "</Code><Message>" + escaped(f.Message) + "</Message><RequestId>" + c.id + "</RequestId></Error>")
	case form || r.URL.Query().Has("Action"):
		return c.model().EncodeFault(f, c.id)
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Amzn-ErrorType", f.Code)
	return jsonFault(f)
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes everything
	return b.String()
}

func jsonFault(f *fault.Fault) []byte {
	body, _ := json.Marshal(map[string]string{"__type": f.Code, "message": f.Message}) // strings always marshal
	return body
}

// cborFault is the map {"__type": code, "message": message}.
func cborFault(f *fault.Fault) []byte {
	const mapOfTwo = 0xa2
	body := []byte{mapOfTwo}
	for _, text := range []string{"__type", f.Code, "message", f.Message} {
		const textWithLength32 = 0x7a
		body = binary.BigEndian.AppendUint32(append(body, textWithLength32), uint32(len(text)))
		body = append(body, text...)
	}
	return body
}
