package api

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"

	"kurabe/internal/aws/fault"
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
		body, _ := json.Marshal(map[string]string{"__type": f.Code, "message": f.Message}) // strings always marshal
		return body
	}
	return c.model.EncodeFault(f, c.id)
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
