package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// A client of another service reads the refusal in its own protocol.
func TestForeignProtocols(t *testing.T) {
	for _, c := range []struct {
		name, header, value, code, said, kind string
		status                                int
	}{
		{name: "JSON RPC", header: headerTarget, value: "Pi.Get", status: 404, code: "UnknownOperationException", said: "Unknown target Pi.Get: this endpoint serves rds"},
		{name: "JSON REST", header: "Content-Type", value: "application/json", status: 403, code: "MissingAuthenticationToken", said: "Token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := send(t, New(testConfig(rdsService())), "{}", func(r *http.Request) {
				r.Header.Set(c.header, c.value)
				if c.status == http.StatusForbidden {
					r.Header.Del("Authorization")
				}
			})
			var got struct {
				Type    string `json:"__type"`
				Message string
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != c.status || got.Type != c.code || !strings.Contains(got.Message, c.said) {
				t.Errorf("%d %s %v", w.Code, w.Body, err)
			}
			if w.Header().Get("X-Amzn-ErrorType") != c.code || w.Header().Get("x-amzn-RequestId") == "" || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%v", w.Header())
			}
		})
	}
	t.Run("CBOR", func(t *testing.T) {
		w := send(t, New(testConfig(rdsService())), "", func(r *http.Request) { r.Header.Set("smithy-protocol", "rpc-v2-cbor") })
		const want = "\xa2f__typex\x19UnknownOperationExceptiongmessage"
		if w.Code != 404 || !strings.HasPrefix(w.Body.String(), want) || !strings.HasSuffix(w.Body.String(), "this endpoint serves rds.") {
			t.Errorf("%d %q", w.Code, w.Body)
		}
		if w.Header().Get("smithy-protocol") != "rpc-v2-cbor" || w.Header().Get("Content-Type") != "application/cbor" {
			t.Errorf("%v", w.Header())
		}
	})
}

// A service that is not here is said to be that, in its own protocol, and no signature is judged.
func TestForeignServices(t *testing.T) {
	const form = "application/x-www-form-urlencoded; charset=utf-8"
	for _, c := range []struct{ service, method, kind, body, want string }{
		{"monitoring", "POST", form, "Action=ListMetrics&Version=2010-08-01", "<ErrorResponse><Error><Type>Sender</Type><Code>UnknownOperationException</Code>"},
		{"ec2", "POST", form, "Action=DescribeVpcs&Version=2016-11-15", "<Response><Errors><Error><Code>UnknownOperationException</Code>"},
		{"s3", "PUT", "", "", "<Error><Code>UnknownOperationException</Code>"},
		{"lambda", "GET", "", "", `{"__type":"UnknownOperationException"`},
		{"pi", "POST", "application/x-amz-json-1.1", "{}", `{"__type":"UnknownOperationException"`},
	} {
		w := send(t, New(testConfig(rdsService())), c.body, func(r *http.Request) {
			r.Method = c.method
			r.Header.Set("Content-Type", c.kind)
			scope := r.Header.Get("Authorization")
			r.Header.Set("Authorization", strings.Replace(scope, "/rds/", "/"+c.service+"/", 1))
		})
		if w.Code != 404 || !strings.HasPrefix(w.Body.String(), c.want) || !strings.Contains(w.Body.String(), "Unknown service "+c.service) {
			t.Errorf("%s: %d %s", c.service, w.Code, w.Body)
		}
	}
}
