package sigv4

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"time"

	"kurabe/internal/logkey"
)

// MaxSkew is how far a client's clock may be from ours. S3 allows 15 minutes.
const (
	MaxSkew   = 5 * time.Minute
	maxSkewS3 = 15 * time.Minute
)

// Lookup finds the secret of an access key. It is asked once per request and
// must be safe for concurrent use.
type Lookup func(accessKeyID string) (secret logkey.Secret, ok bool)

const unsignedPayload = "UNSIGNED-PAYLOAD"

// Verifier checks signatures. Region is the only one that credentials may be
// scoped to; "" accepts any, which loosens nothing else: the region is part of what
// is signed.
type Verifier struct {
	Lookup Lookup
	Region string
	Now    func() time.Time
}

// Signer is who signed a request and for what.
type Signer struct {
	AccessKeyID string
	Service     string // the signing name in the credential's scope
	Region      string // in that scope
}

// Verify checks the signature of r, whose body has been read. services are the
// signing names that this request may carry. A failure is a *fault.Fault.
func (v *Verifier) Verify(r *http.Request, body []byte, services ...string) (Signer, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Signer{}, incomplete("The query string of the request is not well formed.")
	}
	c, err := claimOf(r, query)
	if err != nil {
		return Signer{}, err
	}
	if r.Header.Get("X-Amz-Security-Token") != "" || query.Has("X-Amz-Security-Token") {
		return Signer{}, invalidToken(": this service issues no session tokens, so unset AWS_SESSION_TOKEN")
	}
	secret, ok := v.Lookup(c.accessKeyID)
	if !ok || secret == "" { // nobody may sign with an empty key
		return Signer{}, invalidToken("")
	}
	if err := v.checkScope(c, services); err != nil {
		return Signer{}, err
	}
	if err := v.checkTime(c); err != nil {
		return Signer{}, err
	}
	if err := checkCoverage(r, c); err != nil {
		return Signer{}, err
	}
	payloadHash, err := payloadHash(r, c, body)
	if err != nil {
		return Signer{}, err
	}
	want := sign(secret.Reveal(), c, canonicalRequest(r, query, c, payloadHash))
	if subtle.ConstantTimeCompare([]byte(want), []byte(c.signature)) != 1 {
		return Signer{}, wrongSignature()
	}
	return Signer{AccessKeyID: c.accessKeyID, Service: c.service, Region: c.region}, nil
}

// checkScope compares what the credential is for with what it is used for.
func (v *Verifier) checkScope(c *claim, services []string) error {
	switch {
	case c.terminator != terminator:
		return mismatch("Credential should be scoped with a valid terminator: '%s', not '%s'.", terminator, clip(c.terminator))
	case c.date != c.signedAt.Format(dateLayout):
		return mismatch("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "+
			"'%s' != '%s', from '%s'.", clip(c.date), c.signedAt.Format(dateLayout), c.timestamp)
	case !slices.Contains(services, c.service):
		return WrongService(services...)
	case v.Region != "" && c.region != v.Region:
		return mismatch("Credential should be scoped to a valid region: '%s', not '%s'.", v.Region, clip(c.region))
	}
	return nil
}

func (v *Verifier) checkTime(c *claim) error {
	now, skew := v.Now().UTC(), MaxSkew
	if c.service == "s3" {
		skew = maxSkewS3
	}
	minutes := int(skew / time.Minute)
	switch latest, earliest := now.Add(skew), now.Add(-skew); {
	case c.signedAt.After(latest):
		return mismatch("Signature not yet current: %s is still later than %s (%s + %d min.)",
			c.timestamp, latest.Format(timeLayout), now.Format(timeLayout), minutes)
	case c.presigned && now.After(c.signedAt.Add(c.expires)):
		return requestExpired()
	case !c.presigned && c.signedAt.Before(earliest):
		return mismatch("Signature expired: %s is now earlier than %s (%s - %d min.)",
			c.timestamp, earliest.Format(timeLayout), now.Format(timeLayout), minutes)
	}
	return nil
}

// checkCoverage refuses a request whose action is in a header that nobody signed:
// whoever is in between could otherwise turn a Describe into a Delete.
func checkCoverage(r *http.Request, c *claim) error {
	if r.Header.Get("X-Amz-Target") != "" && !slices.Contains(c.signedHeaders, "x-amz-target") {
		return mismatch("'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.")
	}
	return nil
}

// payloadHash is the hash that the signature must cover: always the hash of the
// body that arrived, unless S3's rules let the client leave it out.
func payloadHash(r *http.Request, c *claim, body []byte) (string, error) {
	sum := sha256.Sum256(body)
	actual, claimed := hex.EncodeToString(sum[:]), r.Header.Get("X-Amz-Content-Sha256")
	switch {
	case c.service == "s3" && (claimed == unsignedPayload || claimed == "" && c.presigned):
		return unsignedPayload, nil
	case claimed != "" && claimed != actual && c.service == "s3":
		return "", payloadMismatch()
	case claimed != "" && claimed != actual:
		return "", wrongSignature()
	}
	return actual, nil
}
