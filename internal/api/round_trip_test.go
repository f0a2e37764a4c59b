package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchschemas "github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
	"github.com/aws/smithy-go/transport/http/protocol/awsquery"
	"github.com/aws/smithy-go/transport/http/protocol/rpcv2"

	"kurabe"
	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/aws/shape"
)

// monitoringService speaks each protocol that CloudWatch does.
func monitoringService(rows ...Operation) Service {
	const target = "GraniteServiceVersion20100801"
	return Service{
		Name:      shape.Monitoring.Service,
		Protocols: []Protocol{CBOR{Service: target, Model: shape.Monitoring}, JSON{Target: target, Version: "1.0", Model: shape.Monitoring}, Query{shape.Monitoring}},
		Ops:       Table(rows...), Errors: Errors{kurabe.CodeInstanceNotFound: {"ResourceNotFound", 404}}, NotOffered: func(string) string { return "no reason" },
	}
}

func logsService(rows ...Operation) Service {
	return Service{
		Name: shape.Logs.Service, Protocols: []Protocol{JSON{Target: "Logs_20140328", Version: "1.1", Model: shape.Logs}},
		Ops: Table(rows...), Errors: Errors{kurabe.CodeInstanceNotFound: {"ResourceNotFoundException", 400}}, NotOffered: func(string) string { return "no reason" },
	}
}

var testCredentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret}, nil
})

func monitoringClient(t *testing.T, s *Server, protocol smithyhttp.ClientProtocol) *cloudwatch.Client {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return cloudwatch.New(cloudwatch.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, HTTPClient: sdkhttp.Client(), Credentials: testCredentials,
		DisableRequestCompression: true,
	}, func(o *cloudwatch.Options) { o.Protocol = protocol })
}

func logsClient(t *testing.T, s *Server) *cloudwatchlogs.Client {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return cloudwatchlogs.New(cloudwatchlogs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, HTTPClient: sdkhttp.Client(), Credentials: testCredentials,
	})
}

// protocolsOfMonitoring are those of the Go SDK's client of CloudWatch.
var protocolsOfMonitoring = map[string]smithyhttp.ClientProtocol{
	"CBOR":  rpcv2.NewCBOR(cloudwatchschemas.GraniteServiceVersion20100801),
	"JSON":  awsjson.New10(cloudwatchschemas.GraniteServiceVersion20100801),
	"query": awsquery.New(cloudwatchschemas.GraniteServiceVersion20100801),
}

// Every action of the SDK's clients, with every member set, arrives as it was sent and returns as
// it was answered. This holds our tables against the SDK's own serializers, which are newer than
// the models that the tables come from.
func TestEveryActionRoundTrips(t *testing.T) {
	t.Run("rds", func(t *testing.T) {
		s := New(testConfig(rdsService()))
		roundTrips(t, s.byName["rds"], shape.RDS, rdsClient(t, s, testSecret))
	})
	t.Run("sns", func(t *testing.T) {
		s := New(testConfig(Service{Name: "sns", Protocols: []Protocol{Query{shape.SNS}}, Ops: Table()}))
		server := httptest.NewServer(s)
		defer server.Close()
		roundTrips(t, s.byName["sns"], shape.SNS, sns.New(sns.Options{Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, HTTPClient: sdkhttp.Client(), Credentials: testCredentials}))
	})
	t.Run("secretsmanager", func(t *testing.T) {
		s := New(testConfig(Service{Name: "secretsmanager", Protocols: []Protocol{JSON{Target: "secretsmanager", Version: "1.1", Model: shape.Secrets}}, Ops: Table()}))
		server := httptest.NewServer(s)
		defer server.Close()
		roundTrips(t, s.byName["secretsmanager"], shape.Secrets, secretsmanager.New(secretsmanager.Options{Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, HTTPClient: sdkhttp.Client(), Credentials: testCredentials}))
	})
	for name, protocol := range protocolsOfMonitoring {
		t.Run("monitoring "+name, func(t *testing.T) {
			s := New(testConfig(monitoringService()))
			roundTrips(t, s.byName["monitoring"], shape.Monitoring, monitoringClient(t, s, protocol))
		})
	}
	t.Run("logs", func(t *testing.T) {
		s := New(testConfig(logsService()))
		roundTrips(t, s.byName["logs"], shape.Logs, logsClient(t, s), "GetLogObject", "StartLiveTail", "PutIntegration") // streams and a union
	})
}

func roundTrips(t *testing.T, service *Service, model *shape.Model, of any, but ...string) {
	var in, out any // what arrived; what is answered
	client, seen := reflect.ValueOf(of), len(but)
	for i := range client.NumMethod() {
		name, method := client.Type().Method(i).Name, client.Method(i)
		if !model.Has(name) || slices.Contains(but, name) {
			continue // Options and the like
		}
		seen++
		sent := reflect.New(method.Type().In(1).Elem())
		answer := reflect.New(method.Type().Out(0).Elem())
		(&filler{}).fill(sent.Elem(), "")
		(&filler{n: 1000}).fill(answer.Elem(), "")
		out = answer.Interface()
		service.Ops[name] = Operation{
			Name:   name,
			In:     sent.Type().Elem(),
			handle: func(_ context.Context, got any) (any, error) { in = got; return out, nil },
		}
		reply := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), sent})
		if err, _ := reply[1].Interface().(error); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantSame(t, name+" request", sent.Interface(), in)
		wantSame(t, name+" reply", out, reply[0].Interface())
	}
	if seen != len(model.Actions()) {
		t.Errorf("the client has %d of %d actions", seen, len(model.Actions()))
	}
}

// filler gives every member a value of its own.
type filler struct{ n, depth int }

func (f *filler) fill(v reflect.Value, name string) {
	const deepest = 16 // of types that hold themselves
	if f.depth == deepest {
		return
	}
	f.depth++
	defer func() { f.depth-- }()
	f.n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 5, 6, 7, 8, 9, f.n%1000*1e6, time.UTC)))
		return
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), name)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			// SourceRegion is for the client's own use: it is not sent.
			if field.IsExported() && field.Name != "ResultMetadata" && field.Name != "SourceRegion" {
				f.fill(v.Field(i), field.Name)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0), name)
		f.fill(v.Index(1), name)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{name, "b"} {
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value, name)
			v.SetMapIndex(reflect.ValueOf(key), value)
		}
	case reflect.Interface: // a union, which no action takes
	case reflect.String:
		v.SetString(fmt.Sprintf("%s %d <比&>\n", name, f.n))
	case reflect.Bool:
		v.SetBool(f.n%2 == 0)
	case reflect.Uint8:
		v.SetUint(uint64(f.n % 256))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n) - 50)
	case reflect.Float64:
		v.SetFloat(float64(f.n) / 4)
	default:
		panic("teach the filler " + v.Type().String())
	}
}

// zoned are times in JSON that are not in UTC: the SDK reads CBOR's in the machine's zone.
var zoned = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*[+-]\d\d:\d\d"`)

func inUTC(text string) string {
	at, err := time.Parse(`"`+time.RFC3339Nano+`"`, text)
	if err != nil {
		return text
	}
	return at.UTC().Format(`"` + time.RFC3339Nano + `"`)
}

// wantSame compares through JSON: the SDK adds metadata of its own to a reply.
func wantSame(t *testing.T, what string, want, got any) {
	t.Helper()
	text := func(v any) string {
		if m := reflect.ValueOf(v).Elem().FieldByName("ResultMetadata"); m.IsValid() {
			m.SetZero()
		}
		b, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return zoned.ReplaceAllStringFunc(string(b), inUTC)
	}
	a, b := strings.Split(text(want), "\n"), strings.Split(text(got), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s: line %d: want %s, got %s", what, i, a[i], b[i])
			return
		}
	}
	if len(a) != len(b) {
		t.Errorf("%s: want %d lines, got %d", what, len(a), len(b))
	}
}
