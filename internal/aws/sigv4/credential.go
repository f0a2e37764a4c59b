package sigv4

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	terminator = "aws4_request"
	timeLayout = "20060102T150405Z"
	dateLayout = "20060102"
)

// Bounds of what a client may say about its own signature.
const (
	maxAuthorizationBytes = 8 << 10
	maxSignedHeaders      = 100
)

// claim is what a request says about its signature, before any of it is believed.
type claim struct {
	accessKeyID, date, region, service, terminator string

	signedHeaders []string
	signature     string
	signedAt      time.Time
	timestamp     string        // signedAt as the client wrote it, for messages
	expires       time.Duration // of a presigned request
	presigned     bool
}

func (c *claim) scope() string {
	return strings.Join([]string{c.date, c.region, c.service, c.terminator}, "/")
}

// parseAuthorization reads an Authorization header:
//
//	AWS4-HMAC-SHA256 Credential=K/D/R/S/aws4_request, SignedHeaders=a;b, Signature=hex
func parseAuthorization(header string) (*claim, error) {
	if len(header) > maxAuthorizationBytes {
		return nil, incomplete("The Authorization header is longer than %d bytes.", maxAuthorizationBytes)
	}
	scheme, rest, _ := strings.Cut(header, " ")
	if scheme != algorithm {
		return nil, incomplete("Unsupported AWS 'algorithm': '%s'. Only %s is supported.", clip(scheme), algorithm)
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if _, twice := parts[key]; !ok || twice {
			return nil, incomplete("'%s' not a valid key=value pair (missing equal-sign) in Authorization header.", clip(part))
		}
		parts[key] = value
	}
	var absent []string
	for _, key := range []string{"Credential", "Signature", "SignedHeaders"} {
		if parts[key] == "" {
			absent = append(absent, fmt.Sprintf("Authorization header requires '%s' parameter.", key))
		}
	}
	if len(absent) > 0 {
		return nil, incomplete("%s", strings.Join(absent, " "))
	}
	c := &claim{}
	return c, c.fill(parts["Credential"], parts["SignedHeaders"], parts["Signature"])
}

func (c *claim) fill(credential, signedHeaders, signature string) error {
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || slices.Contains(parts, "") {
		return incomplete("Credential must have exactly 5 slash-delimited elements, "+
			"e.g. keyid/date/region/service/term, got '%s'", clip(credential))
	}
	c.accessKeyID, c.date, c.region, c.service, c.terminator = parts[0], parts[1], parts[2], parts[3], parts[4]
	c.signedHeaders, c.signature = strings.Split(signedHeaders, ";"), signature
	if len(c.signedHeaders) > maxSignedHeaders {
		return incomplete("SignedHeaders names more than %d headers.", maxSignedHeaders)
	}
	for i, name := range c.signedHeaders {
		if name == "" || name != strings.ToLower(name) || i > 0 && name <= c.signedHeaders[i-1] {
			return incomplete("SignedHeaders must be lower-case, sorted and without repetition, got '%s'", clip(signedHeaders))
		}
	}
	if !slices.Contains(c.signedHeaders, "host") {
		return mismatch("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
	}
	return nil
}

// clip shortens what is quoted back to a client.
func clip(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
