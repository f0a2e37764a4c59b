package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/smithy-go"

	"kurabe"
	"kurabe/internal/aws/shape"
)

// Each client gets the types of its own service for one code, in whatever protocol it asks.
func TestTypedErrorsInEveryProtocol(t *testing.T) {
	var failure error
	s := New(testConfig(
		monitoringService(Read("DescribeAlarms", func(context.Context, *cloudwatch.DescribeAlarmsInput) (*cloudwatch.DescribeAlarmsOutput, error) {
			return nil, failure
		})),
		logsService(Read("DescribeLogGroups", func(context.Context, *cloudwatchlogs.DescribeLogGroupsInput) (*cloudwatchlogs.DescribeLogGroupsOutput, error) {
			return nil, failure
		})),
	))
	code := func(err error) string {
		var e smithy.APIError
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		return e.ErrorCode()
	}
	for name, protocol := range protocolsOfMonitoring {
		client := monitoringClient(t, s, protocol)
		failure = kurabe.Errorf(kurabe.CodeInstanceNotFound, "no")
		_, err := client.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{})
		if notFound := new(types.ResourceNotFound); !errors.As(err, &notFound) || code(err) != "ResourceNotFound" || notFound.ErrorMessage() != "no" {
			t.Errorf("%s: %v", name, err)
		}
		failure = kurabe.Errorf(kurabe.CodeInvalidParameterValue, "bad")
		_, err = client.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{})
		if !errors.As(err, new(*types.InvalidParameterValueException)) || name != "query" && code(err) != "InvalidParameterValue" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err = client.ListDashboards(t.Context(), &cloudwatch.ListDashboardsInput{}); code(err) != "UnsupportedOperation" || !strings.Contains(err.Error(), "no reason; see docs/coverage.md") {
			t.Errorf("%s: %v", name, err)
		}
		failure = errors.New("disk on fire")
		_, err = client.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{})
		if code(err) != "InternalFailure" || strings.Contains(err.Error(), "fire") {
			t.Errorf("%s: %v", name, err)
		}
	}
	failure = kurabe.Errorf(kurabe.CodeInstanceNotFound, "no")
	_, err := logsClient(t, s).DescribeLogGroups(t.Context(), &cloudwatchlogs.DescribeLogGroupsInput{})
	if !errors.As(err, new(*logstypes.ResourceNotFoundException)) {
		t.Errorf("logs: %v", err)
	}
}

// What each header and body of a document protocol says, beside what the SDKs make of it.
func TestDocumentProtocols(t *testing.T) {
	s := New(testConfig(monitoringService(
		Read("DescribeAlarms", func(_ context.Context, in *cloudwatch.DescribeAlarmsInput) (*cloudwatch.DescribeAlarmsOutput, error) {
			return &cloudwatch.DescribeAlarmsOutput{NextToken: in.NextToken}, nil
		}),
		Write("PutDashboard", func(context.Context, *cloudwatch.PutDashboardInput) (*cloudwatch.PutDashboardOutput, error) {
			return nil, nil
		}),
	)))
	cbor := func(path string) func(*http.Request) {
		return func(r *http.Request) { r.URL.Path = path; r.Header.Set(headerProtocol, protocolCBOR) }
	}
	const base = "/service/GraniteServiceVersion20100801/operation/"
	target := func(name string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set(headerTarget, name)
			r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		}
	}
	const granite = "GraniteServiceVersion20100801."
	for _, c := range []struct {
		name, body     string
		prepare        func(*http.Request)
		status         int
		want           string // in the answer
		queryError     string
		kind, protocol string
	}{
		{"JSON", `{"NextToken":"a"}`, target(granite + "DescribeAlarms"), 200, `{"CompositeAlarms":[],"LogAlarms":[],"MetricAlarms":[],"NextToken":"a"}`, "", "application/x-amz-json-1.0", ""},
		{"CBOR", "\xa1\x69NextToken\x61a", cbor(base + "DescribeAlarms"), 200, "\xa4oCompositeAlarms\x80iLogAlarms\x80lMetricAlarms\x80iNextTokenaa", "", "application/cbor", protocolCBOR},
		{"CBOR behind a path", "\xbf\xff", cbor("/aws" + base + "DescribeAlarms"), 200, "MetricAlarms", "", "application/cbor", protocolCBOR},
		{"JSON, unknown action", `{}`, target(granite + "MakeCoffee"), 404, `"UnknownOperationException"`, "UnknownOperationException;Sender", "application/x-amz-json-1.0", ""},
		{"CBOR, unknown action", "", cbor(base + "MakeCoffee"), 404, "UnknownOperationException", "UnknownOperationException;Sender", "application/cbor", protocolCBOR},
		{"CBOR, unknown service", "", cbor("/service/Other/operation/DescribeAlarms"), 404, "UnknownOperationException", "", "application/cbor", protocolCBOR},
		{"CBOR, no path", "", cbor("/"), 404, "UnknownOperationException", "", "application/cbor", protocolCBOR},
		{"JSON, unknown target", `{}`, target("Other.DescribeAlarms"), 404, "UnknownOperationException", "", "application/x-amz-json-1.0", ""},
		{"JSON, missing member", `{"DashboardName":"x"}`, target(granite + "PutDashboard"), 400, "MissingRequiredParameterException", "MissingParameter;Sender", "application/x-amz-json-1.0", ""},
		{"CBOR, unknown member", "\xa1\x61x\x01", cbor(base + "DescribeAlarms"), 400, "unknown member x", "SerializationException;Sender", "application/cbor", protocolCBOR},
		{"another protocol", "", func(r *http.Request) { r.Header.Set(headerProtocol, "rpc-v3") }, 404, "UnknownOperationException", "", "text/xml", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := sendAs(t, s, "monitoring", c.body, c.prepare, nil)
			h := w.Header()
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%d %q", w.Code, w.Body)
			}
			if h.Get(headerQueryError) != c.queryError || h.Get("Content-Type") != c.kind || h.Get(headerProtocol) != c.protocol || h.Get("x-amzn-RequestId") == "" {
				t.Errorf("%v", h)
			}
		})
	}
}

// echo offers every action of a client, each of which answers its own input.
func echo(model interface{ Has(string) bool }, client any) (rows []Operation) {
	methods := reflect.TypeOf(client)
	for i := range methods.NumMethod() {
		if m := methods.Method(i); model.Has(m.Name) {
			input := m.Type.In(2).Elem()
			rows = append(rows, Operation{
				Name:   m.Name,
				In:     input,
				handle: func(_ context.Context, in any) (any, error) { return in, nil },
			})
		}
	}
	return rows
}

// Every action of botocore's clients, with every member of its input set, arrives and comes back as
// it was sent: the names, times and numbers are botocore's in both directions.
func TestBotocoreReadsWhatItSent(t *testing.T) {
	python := "../../.cache/venv/bin/python" // scripts/install.sh test puts the clients there
	if _, err := os.Stat(python); err != nil {
		python = "python3"
	}
	if exec.Command(python, "-c", "import botocore; assert botocore.__version__ == '1.43.11'").Run() != nil {
		t.Skip("needs python3 with botocore 1.43.11")
	}
	server := httptest.NewServer(New(testConfig(monitoringService(echo(shape.Monitoring, &cloudwatch.Client{})...), logsService(echo(shape.Logs, &cloudwatchlogs.Client{})...))))
	t.Cleanup(server.Close)
	for _, c := range []struct{ service, protocol string }{{"cloudwatch", "smithy-rpc-v2-cbor"}, {"cloudwatch", "json"}, {"cloudwatch", "query"}, {"logs", "json"}} {
		t.Run(c.service+" "+c.protocol, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), python, "testdata/echo.py", c.service, c.protocol, server.URL, testKey, testSecret)
			out, err := cmd.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte(" actions")) {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
