package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/rds"
)

// send signs a form for rds and returns the recorded reply.
func send(t *testing.T, s *Server, form string, tamper func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	return sendAs(t, s, "rds", form, nil, tamper)
}

// sendAs signs a request for a service after prepare and before tamper.
func sendAs(t *testing.T, s *Server, service, body string, prepare, tamper func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("POST", "http://h/", strings.NewReader(body))
	if prepare != nil {
		prepare(r)
	}
	sum := sha256.Sum256([]byte(body))
	err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret},
		r, hex.EncodeToString(sum[:]), service, "us-east-1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if tamper != nil {
		tamper(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func testRows() []Operation {
	return []Operation{
		Read("DescribeDBInstances", func(context.Context, *rds.DescribeDBInstancesInput) (*rds.DescribeDBInstancesOutput, error) {
			return &rds.DescribeDBInstancesOutput{}, nil
		}),
		Write("DeleteDBInstance", func(context.Context, *rds.DeleteDBInstanceInput) (*rds.DeleteDBInstanceOutput, error) {
			return nil, errors.New("disk on fire")
		}),
		Write("RebootDBInstance", func(context.Context, *rds.RebootDBInstanceInput) (*rds.RebootDBInstanceOutput, error) {
			panic("boom")
		}),
		Write("StartDBInstance", func(context.Context, *rds.StartDBInstanceInput) (*rds.StartDBInstanceOutput, error) {
			return nil, nil
		}),
	}
}

const version = "&Version=2014-10-31"

var dispatchCases = []struct {
	name, form string
	tamper     func(*http.Request)
	status     int
	code, text string // in the body
	log        string // the line's level and a part of it; "" for no line at Info
}{
	{name: "read", form: "Action=DescribeDBInstances" + version, status: 200, text: "<DBInstances></DBInstances>"},
	{name: "write", form: "Action=StartDBInstance&DBInstanceIdentifier=x" + version, status: 200,
		text: "<StartDBInstanceResult></StartDBInstanceResult>", log: "INFO action=rds:StartDBInstance user=" + testKey + " status=200"},
	{name: "internal failure", form: "Action=DeleteDBInstance&DBInstanceIdentifier=x" + version,
		status: 500, code: "InternalFailure", log: "ERROR code=InternalFailure error=\"disk on fire\""},
	{name: "panic", form: "Action=RebootDBInstance&DBInstanceIdentifier=x" + version,
		status: 500, code: "InternalFailure", log: "ERROR panic: boom"},
	{name: "unknown action", form: "Action=MakeCoffee" + version, status: 400, code: "InvalidAction",
		text: "Could not find operation MakeCoffee for version 2014-10-31", log: "INFO code=InvalidAction"},
	{name: "unknown version", form: "Action=DescribeDBInstances&Version=1999-01-01", status: 400, code: "InvalidAction",
		text: "for version 1999-01-01", log: "INFO"},
	{name: "no version", form: "Action=DescribeDBInstances", status: 400, code: "InvalidAction",
		text: "for version NO_VERSION_SPECIFIED", log: "INFO"},
	{name: "no action", form: version[1:], status: 400, code: "MissingAction", log: "INFO"},
	{name: "not offered", form: "Action=CreateDBCluster" + version, status: 400, code: "UnsupportedOperation",
		text: "CreateDBCluster is not offered by this version of Kurabe: no reason; see docs/coverage.md", log: "INFO"},
	{name: "unknown parameter", form: "Action=DescribeDBInstances&Bogus.member.1=1" + version, status: 400,
		code: "InvalidParameterValue", text: "unknown parameter Bogus.member.1", log: "INFO"},
	{name: "missing parameter", form: "Action=StartDBInstance" + version, status: 400, code: "MissingParameter",
		text: "The request must contain the parameter DBInstanceIdentifier.", log: "INFO"},
	{name: "malformed form", form: "Action=DescribeDBInstances&Action=x" + version, status: 400, code: "MalformedInput", log: "INFO"},
	{name: "malformed form, unsigned", form: "a..b=1", tamper: func(r *http.Request) { r.Header.Del("Authorization") },
		status: 403, code: "MissingAuthenticationToken", log: "INFO"},
	{name: "unsigned", form: "Action=DescribeDBInstances" + version, tamper: func(r *http.Request) { r.Header.Del("Authorization") },
		status: 403, code: "MissingAuthenticationToken", log: "INFO"},
	{name: "too large", form: "Action=" + strings.Repeat("x", 1<<20), status: 413, code: "RequestEntityTooLarge", log: "INFO"},
	{name: "method", tamper: func(r *http.Request) { r.Method = "DELETE" }, status: 405, code: "MethodNotAllowed", log: "INFO"},
}

func TestDispatch(t *testing.T) {
	for _, c := range dispatchCases {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			config := testConfig(rdsService(testRows()...))
			config.Log = slog.New(slog.NewTextHandler(&log, nil))
			w := send(t, New(config), c.form, c.tamper)
			id, body := w.Header().Get("x-amzn-RequestId"), w.Body.String()
			if w.Code != c.status || !strings.Contains(body, c.text) ||
				c.code != "" && !strings.Contains(body, "<Code>"+c.code+"</Code>") {
				t.Fatalf("%d %s", w.Code, body)
			}
			if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) ||
				!strings.Contains(body, "<RequestId>"+id+"</RequestId>") {
				t.Errorf("request id %q is not in %s", id, body)
			}
			if strings.Contains(body, "fire") || strings.Contains(body, "boom") {
				t.Errorf("the cause went to the client: %s", body)
			}
			wantLog(t, log.String(), c.log, id)
		})
	}
}

func wantLog(t *testing.T, got, want, id string) {
	t.Helper()
	if want == "" {
		if got != "" {
			t.Errorf("a read was logged: %s", got)
		}
		return
	}
	level, rest, _ := strings.Cut(want, " ")
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "level="+level) || !strings.Contains(got, rest) ||
		!strings.Contains(got, "request_id="+id) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

func TestHealthAndMounts(t *testing.T) {
	var notReady error
	config := testConfig()
	config.Ready = func(context.Context) error { return notReady }
	s := New(config)
	s.Handle("GET /ca.pem", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "PEM") }))
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	if w := get("/healthz"); w.Code != 200 || w.Body.String() != "ok\n" {
		t.Errorf("healthz: %d %s", w.Code, w.Body)
	}
	notReady = errors.New("no leader at 10.0.0.1")
	if w := get("/healthz"); w.Code != 503 || strings.Contains(w.Body.String(), "10.0.0.1") {
		t.Errorf("healthz: %d %s", w.Code, w.Body)
	}
	if w := get("/ca.pem"); w.Body.String() != "PEM" {
		t.Errorf("ca.pem: %d %s", w.Code, w.Body)
	}
	if w := get("/favicon.ico"); w.Code != 403 {
		t.Errorf("favicon: %d %s", w.Code, w.Body)
	}
}
