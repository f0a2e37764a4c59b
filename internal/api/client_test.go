package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kurabe"
	"kurabe/internal/aws/sdkhttp"
	"kurabe/internal/aws/shape"
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
	return Service{Name: "rds", Protocols: []Protocol{Query{shape.RDS}}, Ops: Table(rows...), Errors: testErrors, NotOffered: func(string) string { return "no reason" }}
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
	s := New(testConfig(Service{Name: "sts", Protocols: []Protocol{Query{shape.STS}}, Ops: Table(
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
