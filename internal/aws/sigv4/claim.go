package sigv4

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A presigned request is good for as long as it says, at most AWS's seven days.
// AWS's own services that read no X-Amz-Expires use 15 minutes, as we do for a
// request without it (the Go SDK's presigned GetCallerIdentity is such a one).
const (
	maxExpires     = 7 * 24 * time.Hour
	defaultExpires = 15 * time.Minute
)

// claimOf finds the signature of a request, in its header or in its query.
func claimOf(r *http.Request, query url.Values) (*claim, error) {
	header := r.Header.Values("Authorization")
	switch {
	case query.Has("X-Amz-Signature") || query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Credential"):
		if len(header) > 0 {
			return nil, incomplete("Only one auth mechanism allowed; " +
				"only the X-Amz-Algorithm query parameter or the Authorization header should be specified.")
		}
		return presignedClaim(query)
	case len(header) == 0:
		return nil, missingToken()
	case len(header) > 1:
		return nil, incomplete("The request has more than one Authorization header.")
	}
	c, err := parseAuthorization(header[0])
	if err != nil {
		return nil, err
	}
	return c, c.dateFromHeader(r.Header)
}

// dateFromHeader takes X-Amz-Date, or Date when there is none, as AWS does.
func (c *claim) dateFromHeader(h http.Header) error {
	c.timestamp = h.Get("X-Amz-Date")
	if c.timestamp == "" {
		c.timestamp = h.Get("Date")
	}
	if c.timestamp == "" {
		return incomplete("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.")
	}
	t, err := time.Parse(timeLayout, c.timestamp)
	if err != nil {
		if t, err = http.ParseTime(c.timestamp); err != nil {
			return incomplete("Date must be in ISO-8601 'basic format'. Got '%s'.", clip(c.timestamp))
		}
	}
	c.signedAt = t.UTC()
	c.timestamp = c.signedAt.Format(timeLayout)
	return nil
}

func presignedClaim(query url.Values) (*claim, error) {
	for _, name := range []string{
		"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature", "X-Amz-SignedHeaders", "X-Amz-Date",
	} {
		if len(query[name]) != 1 || query.Get(name) == "" {
			return nil, incomplete("AWS query-string parameters must include '%s'. Re-examine the query-string parameters.", name)
		}
	}
	if got := query.Get("X-Amz-Algorithm"); got != algorithm {
		return nil, incomplete("Unsupported AWS 'algorithm': '%s'. Only %s is supported.", clip(got), algorithm)
	}
	c := &claim{presigned: true, expires: defaultExpires, timestamp: query.Get("X-Amz-Date")}
	if err := c.fill(query.Get("X-Amz-Credential"), query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Signature")); err != nil {
		return nil, err
	}
	t, err := time.Parse(timeLayout, c.timestamp)
	if err != nil {
		return nil, incomplete("Date must be in ISO-8601 'basic format'. Got '%s'.", clip(c.timestamp))
	}
	c.signedAt = t
	return c, c.parseExpires(query)
}

func (c *claim) parseExpires(query url.Values) error {
	if !query.Has("X-Amz-Expires") {
		return nil
	}
	text := strings.Join(query["X-Amz-Expires"], ",")
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds < 1 || seconds > int64(maxExpires/time.Second) {
		return incomplete("X-Amz-Expires must be between 1 and %d seconds, got '%s'", int(maxExpires/time.Second), clip(text))
	}
	c.expires = time.Duration(seconds) * time.Second
	return nil
}

// ServiceOf is the signing name that a request claims to be for, "" of one that does not say.
// Nobody has verified it.
func ServiceOf(r *http.Request) string {
	c, err := claimOf(r, r.URL.Query())
	if err != nil {
		return ""
	}
	return c.service
}
