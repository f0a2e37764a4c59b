package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"kurabe/internal/aws/fault"
	"kurabe/internal/logkey"
)

const (
	testKey    = "AKIDEXAMPLE"
	testSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	testBody   = "Action=DescribeDBInstances&Version=2014-10-31"
)

var testTime = time.Date(2026, 5, 6, 23, 59, 30, 0, time.UTC)

func testVerifier() *Verifier {
	return &Verifier{
		Lookup: func(id string) (logkey.Secret, bool) { return testSecret, id == testKey },
		Region: "us-east-1",
		Now:    func() time.Time { return testTime },
	}
}

// signing says how the real client signs a request.
type signing struct {
	method, url, body        string
	key, secret, token       string
	service, region, payload string
	header                   http.Header
	at                       time.Time
	presign                  bool
}

func defaultSigning() signing {
	return signing{
		method: "POST", url: "http://db.example:7380/", body: testBody, key: testKey, secret: testSecret,
		service: "rds", region: "us-east-1", at: testTime,
		header: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}},
	}
}

// request signs with aws-sdk-go-v2's signer and rebuilds what a server would see.
func (s signing) request(t testing.TB) *http.Request {
	t.Helper()
	r, err := http.NewRequest(s.method, s.url, strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = s.header.Clone()
	if s.payload == "" {
		sum := sha256.Sum256([]byte(s.body))
		s.payload = hex.EncodeToString(sum[:])
	}
	creds := aws.Credentials{AccessKeyID: s.key, SecretAccessKey: s.secret, SessionToken: s.token}
	signer, target := v4.NewSigner(), ""
	if s.presign {
		target, _, err = signer.PresignHTTP(t.Context(), creds, r, s.payload, s.service, s.region, s.at)
	} else {
		err = signer.SignHTTP(t.Context(), creds, r, s.payload, s.service, s.region, s.at)
		target = r.URL.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	got := httptest.NewRequest(s.method, target, strings.NewReader(s.body))
	got.Header = r.Header
	return got
}

// verifyCase is one request: signed by the real client, then tampered with.
type verifyCase struct {
	name    string
	sign    func(*signing)        // before the client signs
	tamper  func(r *http.Request) // between client and server
	body    string                // what arrives, when not what was signed
	code    string                // "" when it must pass
	message string
}

const badSignature = "The request signature we calculated does not match"

var verifyCases = []verifyCase{
	{name: "header form"},
	{name: "path with escapes", sign: func(s *signing) { s.url = "http://h/a%20b/%E6%AF%94/c%2Fd+e" }},
	{name: "query", sign: func(s *signing) { s.url = "http://h/?b=2&a=%E6%AF%94+%2F&a=1&a-b=&a1" }},
	{name: "folded header", sign: func(s *signing) { s.header.Set("X-Note", "  a   b\t c  ") }},
	{name: "repeated header", sign: func(s *signing) { s.header["X-Note"] = []string{"a", " b "} }},
	{name: "clock 5 minutes behind", sign: func(s *signing) { s.at = testTime.Add(-MaxSkew) }},
	{name: "next day already", sign: func(s *signing) { s.at = testTime.Add(time.Minute) }},
	{name: "payload hash sent", sign: func(s *signing) { s.header.Set("X-Amz-Content-Sha256", sha(testBody)) }},
	{name: "empty body", sign: func(s *signing) { s.method, s.body = "GET", "" }},
	{name: "presigned", sign: func(s *signing) { s.presign, s.method, s.body = true, "GET", "" }},
	{name: "presigned, 14 minutes on, without expiry", sign: func(s *signing) {
		s.presign, s.method, s.body, s.at = true, "GET", "", testTime.Add(-14*time.Minute)
	}},
	{name: "presigned, a day on, with expiry", sign: func(s *signing) {
		s.presign, s.method, s.body, s.at = true, "GET", "", testTime.Add(-24*time.Hour)
		s.url = "http://h/?Action=X&X-Amz-Expires=90000"
	}},

	{name: "no signature", tamper: drop("Authorization"),
		code: "MissingAuthenticationToken", message: "Request is missing Authentication Token"},
	{name: "unknown key", sign: func(s *signing) { s.key = "AKIDOTHER" },
		code: "InvalidClientTokenId", message: "The security token included in the request is invalid."},
	{name: "session token", sign: func(s *signing) { s.token = "t" },
		code: "InvalidClientTokenId", message: "issues no session tokens"},
	{name: "wrong secret", sign: func(s *signing) { s.secret = "x" }, code: "SignatureDoesNotMatch", message: badSignature},
	{name: "changed body", body: testBody + "&MaxRecords=20", code: "SignatureDoesNotMatch", message: badSignature},
	{name: "changed body and its claimed hash", body: "x",
		sign:   func(s *signing) { s.header.Set("X-Amz-Content-Sha256", sha(testBody)) },
		tamper: func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", sha("x")) },
		code:   "SignatureDoesNotMatch", message: badSignature},
	{name: "changed signed header", tamper: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		code: "SignatureDoesNotMatch", message: badSignature},
	{name: "dropped signed header", tamper: drop("Content-Type"), code: "SignatureDoesNotMatch", message: badSignature},
	{name: "changed host", tamper: func(r *http.Request) { r.Host = "other:7380" },
		code: "SignatureDoesNotMatch", message: badSignature},
	{name: "changed method", tamper: func(r *http.Request) { r.Method = "PUT" },
		code: "SignatureDoesNotMatch", message: badSignature},
	{name: "changed path", tamper: func(r *http.Request) { r.URL.Path = "/x" },
		code: "SignatureDoesNotMatch", message: badSignature},
	{name: "added query", tamper: func(r *http.Request) { r.URL.RawQuery = "Action=DeleteDBInstance" },
		code: "SignatureDoesNotMatch", message: badSignature},
	{name: "changed date of the same day", tamper: func(r *http.Request) { r.Header.Set("X-Amz-Date", "20260506T235931Z") },
		code: "SignatureDoesNotMatch", message: badSignature},
	{name: "changed day", tamper: func(r *http.Request) { r.Header.Set("X-Amz-Date", "20260507T000000Z") },
		code: "SignatureDoesNotMatch", message: "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '20260506' != '20260507', from '20260507T000000Z'."},
	{name: "old", sign: func(s *signing) { s.at = testTime.Add(-MaxSkew - time.Second) }, code: "SignatureDoesNotMatch",
		message: "Signature expired: 20260506T235429Z is now earlier than 20260506T235430Z (20260506T235930Z - 5 min.)"},
	{name: "future", sign: func(s *signing) { s.at = testTime.Add(MaxSkew + time.Second) }, code: "SignatureDoesNotMatch",
		message: "Signature not yet current: 20260507T000431Z is still later than 20260507T000430Z (20260506T235930Z + 5 min.)"},
	{name: "other service", sign: func(s *signing) { s.service = "ec2" }, code: "SignatureDoesNotMatch",
		message: "Credential should be scoped to correct service: 'rds'."},
	{name: "other region", sign: func(s *signing) { s.region = "eu-west-1" }, code: "SignatureDoesNotMatch",
		message: "Credential should be scoped to a valid region"},
	{name: "unsigned payload", sign: unsigned("rds"), code: "SignatureDoesNotMatch", message: badSignature},
	{name: "unsigned target", tamper: func(r *http.Request) { r.Header.Set("X-Amz-Target", "A.B") },
		code: "SignatureDoesNotMatch", message: "must be a 'SignedHeader'"},
	{name: "presigned, expired", sign: func(s *signing) {
		s.presign, s.method, s.body, s.at = true, "GET", "", testTime.Add(-16*time.Minute)
	}, code: "RequestExpired", message: "Request has expired."},
	{name: "presigned for ever", sign: func(s *signing) {
		s.presign, s.url = true, "http://h/?X-Amz-Expires=604801"
	}, code: "IncompleteSignature", message: "X-Amz-Expires must be between"},
	{name: "presigned, changed query", sign: func(s *signing) { s.presign = true },
		tamper: func(r *http.Request) { r.URL.RawQuery += "&Action=X" }, code: "SignatureDoesNotMatch", message: badSignature},
	{name: "presigned and header", sign: func(s *signing) { s.presign = true },
		tamper: func(r *http.Request) { r.Header.Set("Authorization", algorithm+" x") },
		code:   "IncompleteSignature", message: "Only one auth mechanism"},
}

func TestVerify(t *testing.T) {
	for _, c := range verifyCases {
		t.Run(c.name, func(t *testing.T) {
			s := defaultSigning()
			if c.sign != nil {
				c.sign(&s)
			}
			r := s.request(t)
			if c.tamper != nil {
				c.tamper(r)
			}
			if c.body == "" {
				c.body = s.body
			}
			signer, err := testVerifier().Verify(r, []byte(c.body), "rds")
			if c.code == "" {
				if err != nil || signer != (Signer{AccessKeyID: testKey, Service: "rds", Region: "us-east-1"}) {
					t.Fatalf("got %v, %v", signer, err)
				}
				return
			}
			wantFault(t, err, c.code, c.message)
		})
	}
}

// A verifier of no region takes every region, and still every byte is signed.
func TestVerifyAnyRegion(t *testing.T) {
	v := testVerifier()
	v.Region = ""
	s := defaultSigning()
	s.region = "eu-west-1"
	if _, err := v.Verify(s.request(t), []byte(s.body), "rds"); err != nil {
		t.Error(err)
	}
	tampered := s.request(t)
	tampered.Header.Set("Authorization", strings.Replace(tampered.Header.Get("Authorization"), "eu-west-1", "us-east-1", 1))
	if _, err := v.Verify(tampered, []byte(s.body), "rds"); err == nil {
		t.Error("the region of a signature may be changed")
	}
}

func TestVerifyS3(t *testing.T) {
	s := defaultSigning()
	unsigned("s3")(&s)
	v := testVerifier()
	if _, err := v.Verify(s.request(t), []byte("anything"), "s3"); err != nil {
		t.Fatal(err)
	}
	s.payload = sha("other")
	s.header.Set("X-Amz-Content-Sha256", s.payload)
	_, err := v.Verify(s.request(t), []byte(s.body), "s3")
	wantFault(t, err, "XAmzContentSHA256Mismatch", "does not match what was computed")
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func drop(name string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(name) }
}

func unsigned(service string) func(*signing) {
	return func(s *signing) {
		s.service, s.payload = service, unsignedPayload
		s.header.Set("X-Amz-Content-Sha256", unsignedPayload)
	}
}

func wantFault(t *testing.T, err error, code, message string) {
	t.Helper()
	var f *fault.Fault
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault %s", err, code)
	}
	status := map[string]int{"IncompleteSignature": 400, "RequestExpired": 400, "XAmzContentSHA256Mismatch": 400}[code]
	if status == 0 {
		status = 403
	}
	if f.Code != code || f.Status != status || !strings.Contains(f.Message, message) {
		t.Fatalf("got %d %s %q\nwant %d %s %q", f.Status, f.Code, f.Message, status, code, message)
	}
}
