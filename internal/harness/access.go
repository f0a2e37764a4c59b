package harness

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
)

// endpointOf finds the service where it is now: each life has its own port.
type endpointOf struct{ s *Service }

// ResolveEndpoint implements rds.EndpointResolverV2.
func (e endpointOf) ResolveEndpoint(context.Context, rds.EndpointParameters) (smithyendpoints.Endpoint, error) {
	at := e.s.URL()
	if at == "" {
		return smithyendpoints.Endpoint{}, errors.New("the service is not ready")
	}
	u, err := url.Parse(at)
	if err != nil {
		return smithyendpoints.Endpoint{}, err
	}
	return smithyendpoints.Endpoint{URI: *u}, nil
}

// credentials are those of the environment that the service was given, else
// those that it wrote to its folder.
func (s *Service) credentials(context.Context) (aws.Credentials, error) {
	var c aws.Credentials
	for _, e := range s.options.Env {
		name, value, _ := strings.Cut(e, "=")
		switch name {
		case "KURABE_ROOT_ACCESS_KEY":
			c.AccessKeyID = value
		case "KURABE_ROOT_SECRET_KEY":
			c.SecretAccessKey = value
		}
	}
	if c.AccessKeyID != "" {
		return c, nil
	}
	data, err := os.ReadFile(filepath.Join(s.Data, "credentials"))
	if err != nil {
		return c, err
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		name, value, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			c.AccessKeyID = strings.TrimSpace(value)
		case "aws_secret_access_key":
			c.SecretAccessKey = strings.TrimSpace(value)
		}
	}
	return c, nil
}

// Credentials are the root credentials.
func (s *Service) Credentials() (aws.Credentials, error) { return s.credentials(context.Background()) }
