package main

import (
	"errors"
	"io"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/smithy-go"

	"kurabe/cmd/kurabe/client"
)

// A service that cannot be asked has not said that the instance is gone.
func TestGone(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		gone bool
	}{
		{"still there", nil, false},
		{"not found", &types.DBInstanceNotFoundFault{Message: aws.String("DBInstance shop not found.")}, true},
		{"other refusal", &smithy.GenericAPIError{Code: "InvalidClientTokenId", Message: "m"}, false},
		{"no service", &url.Error{Op: "Post", URL: "http://h", Err: io.EOF}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.err
			if err != nil {
				err = client.Friendly(&smithy.OperationError{ServiceID: "RDS", OperationName: "DescribeDBInstances", Err: c.err})
			}
			done, failure := gone(types.DBInstance{}, err)
			if done != c.gone || (failure != nil) != (c.err != nil && !c.gone) || failure != nil && !errors.Is(failure, err) {
				t.Errorf("%v, %v", done, failure)
			}
		})
	}
	if done, err := gone(types.DBInstance{}, client.NoDatabase{What: "DB cluster", Name: "shop"}); !done || err != nil {
		t.Errorf("a cluster that is not there: %v, %v", done, err)
	}
	if got := client.Friendly(&types.DBInstanceNotFoundFault{Message: aws.String("m")}).Error(); got != "DBInstanceNotFoundFault: m" && got != "DBInstanceNotFound: m" {
		t.Error(got)
	}
}
