package sts

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kurabe/internal/api"
	"kurabe/internal/logkey"
)

func TestRealClient(t *testing.T) {
	server := httptest.NewServer(api.New(api.Config{
		Credentials: func(string) (logkey.Secret, bool) { return "secret", true },
		Region:      "us-east-1", Account: "000000000000",
		Services: []api.Service{API()},
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	}))
	defer server.Close()
	client := sts.New(sts.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	})
	out, err := client.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	if *out.Account != "000000000000" || *out.UserId != "000000000000" || *out.Arn != "arn:aws:iam::000000000000:root" {
		t.Fatalf("%s %s %s", *out.Account, *out.UserId, *out.Arn)
	}
	_, err = client.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String("r"), RoleSessionName: aws.String("n")})
	if err == nil || !strings.Contains(err.Error(), "UnsupportedOperation: AssumeRole is not offered") {
		t.Fatalf("got %v", err)
	}
}
