package sts

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kurabe/internal/api"
	"kurabe/internal/aws/shape"
)

// API returns the service.
func API() api.Service {
	return api.Service{
		Name: shape.STS.Service, Protocols: []api.Protocol{api.Query{Model: shape.STS}},
		Ops: api.Table(api.Read("GetCallerIdentity", getCallerIdentity)),
		NotOffered: func(string) string {
			return "there are no roles and no temporary credentials"
		},
	}
}

func getCallerIdentity(ctx context.Context, _ *sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
	who := api.IdentityFrom(ctx)
	return &sts.GetCallerIdentityOutput{
		Account: aws.String(who.Account),
		Arn:     aws.String(who.ARN()),
		UserId:  aws.String(who.Account), // the root's user id is the account's
	}, nil
}
