package sigv4

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"kurabe/internal/aws/fault"
)

func TestParseAuthorizationRefuses(t *testing.T) {
	const good = algorithm + " Credential=K/20260506/us-east-1/rds/aws4_request, SignedHeaders=host;x-amz-date, Signature=ab"
	if _, err := parseAuthorization(good); err != nil {
		t.Fatal(err)
	}
	cases := []struct{ name, header, message string }{
		{"empty", "", "Unsupported AWS 'algorithm'"},
		{"basic", "Basic dTpw", "Unsupported AWS 'algorithm': 'Basic'"},
		{"version 2", "AWS K:sig", "Unsupported AWS 'algorithm': 'AWS'"},
		{"no equal-sign", algorithm + " Credential", "missing equal-sign"},
		{"nothing but a credential", algorithm + " Credential=K",
			"Authorization header requires 'Signature' parameter. Authorization header requires 'SignedHeaders' parameter."},
		{"four elements", strings.Replace(good, "/rds", "", 1), "exactly 5 slash-delimited elements"},
		{"empty key", strings.Replace(good, "=K/", "=/", 1), "exactly 5 slash-delimited elements"},
		{"parameter twice", good + ", Signature=cd", "valid key=value"},
		{"unsorted headers", strings.Replace(good, "host;x-amz-date", "x-amz-date;host", 1), "sorted"},
		{"header twice", strings.Replace(good, "host;", "host;host;", 1), "sorted"},
		{"capital header", strings.Replace(good, "host;", "Host;", 1), "lower-case"},
		{"no host", strings.Replace(good, "host;", "", 1), "'Host' or ':authority' must be"},
		{"too long", good + strings.Repeat(" ", maxAuthorizationBytes), "longer than"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseAuthorization(c.header)
			var f *fault.Fault
			if !errors.As(err, &f) || !strings.Contains(f.Message, c.message) {
				t.Fatalf("got %v, want %q", err, c.message)
			}
		})
	}
}

func FuzzParseAuthorization(f *testing.F) {
	f.Add(algorithm + " Credential=K/20260506/us-east-1/rds/aws4_request, SignedHeaders=host;x-amz-date, Signature=ab")
	f.Add(algorithm + " Credential=K/20260506/us-east-1/rds/aws4_request,SignedHeaders=host,Signature=")
	f.Add("Basic dTpw")
	f.Fuzz(func(t *testing.T, header string) {
		c, err := parseAuthorization(header)
		if err != nil {
			if !errors.As(err, new(*fault.Fault)) {
				t.Fatalf("not a fault: %v", err)
			}
			return
		}
		if c.accessKeyID == "" || c.signature == "" || len(c.signedHeaders) == 0 || len(c.signedHeaders) > maxSignedHeaders {
			t.Fatalf("accepted %q as %+v", header, c)
		}
		if !strings.Contains(header, c.accessKeyID+"/"+c.scope()) {
			t.Fatalf("scope of %q read as %q", header, c.scope())
		}
	})
}

func TestReadBodyIsBounded(t *testing.T) {
	for _, c := range []struct {
		size int
		code string
	}{{MaxBodyBytes, ""}, {MaxBodyBytes + 1, "RequestEntityTooLarge"}} {
		r := httptest.NewRequest("POST", "/", io.LimitReader(zeros{}, int64(c.size)))
		body, err := ReadBody(httptest.NewRecorder(), r, MaxBodyBytes)
		var f *fault.Fault
		switch {
		case c.code == "" && (err != nil || len(body) != c.size):
			t.Errorf("%d bytes: got %d, %v", c.size, len(body), err)
		case c.code != "" && (!errors.As(err, &f) || f.Code != c.code || f.Status != 413):
			t.Errorf("%d bytes: got %v", c.size, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
