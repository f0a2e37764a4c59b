package client

import (
	"context"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/control"
)

// NamedEndpoints asks for the names of all endpoints.
func (c *Client) NamedEndpoints(ctx context.Context) ([]control.NamedEndpoint, error) {
	out, err := Ask[ownapi.DescribeEndpointsOutput](ctx, c, "DescribeEndpoints", nil)
	return out.Endpoints, err
}

// Resolve puts the address in the place of an endpoint's name: this machine's resolver need
// not know it, and the certificate is good for both.
func (c *Client) Resolve(ctx context.Context, i *types.DBInstance) error {
	address, err := c.AddressOf(ctx, aws.ToString(i.Endpoint.Address))
	if err == nil {
		i.Endpoint = &types.Endpoint{Address: aws.String(address), Port: i.Endpoint.Port}
	}
	return err
}

// AddressOf is the address behind an endpoint; one that is an address already stays.
func (c *Client) AddressOf(ctx context.Context, endpoint string) (string, error) {
	if _, err := netip.ParseAddr(endpoint); err == nil || endpoint == "" {
		return endpoint, nil
	}
	list, err := c.NamedEndpoints(ctx)
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if e.Name == endpoint {
			return e.Address, nil
		}
	}
	return endpoint, nil // a service elsewhere, whose names the resolver knows
}

// ShellCommand is a command line that works on this machine as it is: an address in it needs
// no resolver.
func (c *Client) ShellCommand(ctx context.Context, i types.DBInstance) string {
	if i.Endpoint != nil {
		_ = c.Resolve(ctx, &i) // the name is as true
	}
	return c.Flags.shellCommand(i)
}
