package api

import (
	"net/http"
	"slices"
	"strings"
)

// Clients of services that do not speak awsQuery cannot read its XML: a wrong
// endpoint would show them a parse error or a bare status. They are refused in
// their own protocol.

// xmlServices are those of AWS whose clients read an error in XML although they send no form.
var xmlServices = []string{"s3", "s3express", "s3-outposts", "route53", "cloudfront", "s3-object-lambda"}

// spoken returns the protocol that a request looks like, for a refusal before its service is
// known. claimed is the signing name that it says, which may be that of a service not here.
func (s *Server) spoken(r *http.Request, claimed string) Protocol {
	kind := r.Header.Get("Content-Type")
	service := s.byName[claimed]
	forms, hasForms := protocolOf[formProtocol](service)
	switch {
	case r.Header.Get(headerProtocol) == protocolCBOR:
		return CBOR{}
	case r.Header.Get(headerTarget) != "" || strings.HasPrefix(kind, "application/json"):
		version := strings.TrimPrefix(kind, "application/x-amz-json-")
		if version != "1.0" && version != "1.1" {
			version = ""
		}
		return JSON{Version: version}
	case hasForms:
		return forms
	case claimed == "ec2":
		return EC2{}
	case slices.Contains(xmlServices, claimed):
		return restXML{}
	case claimed == "" || strings.HasPrefix(kind, "application/x-www-form-urlencoded") || r.URL.Query().Has("Action"):
		return Query{}
	}
	return JSON{}
}
