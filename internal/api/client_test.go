package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kurabe"
	"kurabe/internal/aws/query"
	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/logkey"
)

const testKey, testSecret = "AKIDEXAMPLE", "seeded-secret-access-key"

func testConfig(services ...Service) Config {
	return Config{
		Credentials: func(id string) (logkey.Secret, bool) { return testSecret, id == testKey },
		Region:      "us-east-1",
		Account:     "000000000000",
		Services:    services,
		Log:         slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

var testErrors = Errors{kurabe.CodeInstanceNotFound: {"DBInstanceNotFound", 404}, kurabe.CodeInvalidInstanceState: {"InvalidDBInstanceState", 400}}

func rdsService(rows ...Operation) Service {
	return Service{Name: "rds", Protocols: []Protocol{Query{query.RDS}}, Ops: Table(rows...), Errors: testErrors, NotOffered: func(string) string { return "no reason" }}
}

// rdsClient is the real client against a real port.
func rdsClient(t *testing.T, s *Server, secret string) *rds.Client {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return rds.New(rds.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, HTTPClient: sdkhttp.Client(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: testKey, SecretAccessKey: secret}, nil
		}),
	})
}

// filler gives every member a value of its own.
type filler struct{ n int }

func (f *filler) fill(v reflect.Value, name string) {
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
		v.Set(reflect.ValueOf(map[string]string{name: "比", "b": "<&>"}))
	case reflect.String:
		v.SetString(fmt.Sprintf("%s %d <比&>\n", name, f.n))
	case reflect.Bool:
		v.SetBool(f.n%2 == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n) - 50)
	case reflect.Float64:
		v.SetFloat(float64(f.n) / 4)
	default:
		panic("teach the filler " + v.Type().String())
	}
}

// Every action of the SDK's client, with every member set, arrives as it was
// sent and returns as it was answered. This holds our tables against the SDK's
// own serializers, which are newer than the model that the tables come from.
func TestEveryActionRoundTrips(t *testing.T) {
	var in, out any // what arrived; what is answered
	server := New(testConfig(rdsService()))
	client := reflect.ValueOf(rdsClient(t, server, testSecret))
	service, seen := server.versions[query.RDS.Version], 0
	for i := range client.NumMethod() {
		name, method := client.Type().Method(i).Name, client.Method(i)
		if !query.RDS.Has(name) {
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
	if seen != len(query.RDS.Actions()) {
		t.Errorf("the client has %d of %d actions", seen, len(query.RDS.Actions()))
	}
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
		return string(b)
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

func TestRealClientSeesTypedErrors(t *testing.T) {
	missing := kurabe.Errorf(kurabe.CodeInstanceNotFound, "DBInstance orders not found.")
	client := rdsClient(t, New(testConfig(rdsService(
		Read("DescribeDBInstances", func(context.Context, *rds.DescribeDBInstancesInput) (*rds.DescribeDBInstancesOutput, error) {
			return nil, fmt.Errorf("describe: %w", missing)
		}),
	))), testSecret)
	_, err := client.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
	var typed *types.DBInstanceNotFoundFault
	if !errors.As(err, &typed) || typed.ErrorMessage() != missing.Message {
		t.Fatalf("got %v", err)
	}
}

func TestRealClientWithWrongSecret(t *testing.T) {
	client := rdsClient(t, New(testConfig(rdsService())), "wrong")
	_, err := client.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
	if err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") || !strings.Contains(err.Error(), "StatusCode: 403") {
		t.Fatalf("got %v", err)
	}
}

// A presigned GetCallerIdentity is how other systems let a caller prove who it is.
func TestPresignedGet(t *testing.T) {
	s := New(testConfig(Service{Name: "sts", Protocols: []Protocol{Query{query.STS}}, Ops: Table(
		Read("GetCallerIdentity", func(ctx context.Context, _ *sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
			return &sts.GetCallerIdentityOutput{Arn: aws.String(IdentityFrom(ctx).ARN()), UserId: aws.String("me")}, nil
		}))}))
	presign := sts.NewPresignClient(sts.New(sts.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://example.com"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: testKey, SecretAccessKey: testSecret}, nil
		}),
	}))
	signed, err := presign.PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(signed.Method, signed.URL, nil))
	id := w.Header().Get("x-amzn-RequestId")
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, "arn:aws:iam::000000000000:root") || strings.Count(body, id) != 1 {
		t.Fatalf("%d %s", w.Code, body)
	}
}
