package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/spf13/pflag"

	"kurabe"
	ownapi "kurabe/internal/api/kurabe"
	"kurabe/internal/control"
	"kurabe/internal/nameserver"
	"kurabe/internal/store"
)

// nameFlags are about the names of endpoints.
type NameConfig struct {
	Suffix, Listen string
	set            *pflag.FlagSet
}

const SuffixFlag = "endpoint-suffix"

func (f *NameConfig) add(fs *pflag.FlagSet) {
	f.set = fs
	fs.StringVar(&f.Suffix, SuffixFlag, "", "domain that the names of endpoints end with, such as db.example: NAME.ID.REGION.rds.db.example. It is kept; an empty one takes the names away (default: what it was, at first none: clients are told addresses)")
	fs.StringVar(&f.Listen, "dns-listen", "", "address and port at which the names of endpoints are answered for, over UDP and TCP, such as 10.0.0.1:53 (default: nowhere; see kurabe exec)")
}

func (f *NameConfig) check() error {
	if f.Suffix != "" {
		if err := kurabe.CheckEndpointSuffix(f.Suffix); err != nil {
			return fmt.Errorf("--%s: %w", SuffixFlag, err)
		}
	}
	if f.Listen != "" {
		if _, _, err := net.SplitHostPort(f.Listen); err != nil {
			return fmt.Errorf("--dns-listen %q is not HOST:PORT: %w", f.Listen, err)
		}
	}
	return nil
}

// startNames notes what the names of endpoints end with, where that was said, and answers for
// them. A start that says nothing leaves it as it was, so that one of several servers does
// not take away what another was told.
func (s *Service) startNames(loopCtx context.Context, f *Config, kv store.KV, c *control.Control) error {
	if f.Names.set.Changed(SuffixFlag) {
		ctx, done := context.WithTimeout(loopCtx, startTime)
		defer done()
		if err := control.SetEndpointSuffix(ctx, kv, s.view, f.Region, f.Names.Suffix); err != nil {
			return fmt.Errorf("note --%s: %w", SuffixFlag, err)
		}
	}
	if f.Names.Listen == "" {
		return nil
	}
	server, err := nameserver.Listen(f.Names.Listen, c)
	if err != nil {
		return fmt.Errorf("--dns-listen: %w", err)
	}
	s.log.Info("names of endpoints are answered for", "at", server.Addr().String())
	s.loop("name server", func() error { return server.Run(loopCtx) })
	return nil
}

// namedEndpoints asks for the names of all endpoints.
func (c *client) namedEndpoints(ctx context.Context) ([]control.NamedEndpoint, error) {
	out, err := ask[ownapi.DescribeEndpointsOutput](ctx, c, "DescribeEndpoints", nil)
	return out.Endpoints, err
}

// resolve puts the address in the place of an endpoint's name: this machine's resolver need
// not know it, and the certificate is good for both.
func (c *client) resolve(ctx context.Context, i *types.DBInstance) error {
	address, err := c.addressOf(ctx, aws.ToString(i.Endpoint.Address))
	if err == nil {
		i.Endpoint = &types.Endpoint{Address: aws.String(address), Port: i.Endpoint.Port}
	}
	return err
}

// addressOf is the address behind an endpoint; one that is an address already stays.
func (c *client) addressOf(ctx context.Context, endpoint string) (string, error) {
	if _, err := netip.ParseAddr(endpoint); err == nil || endpoint == "" {
		return endpoint, nil
	}
	list, err := c.namedEndpoints(ctx)
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

// shellCommand is a command line that works on this machine as it is: an address in it needs
// no resolver.
func (c *client) shellCommand(ctx context.Context, f clientFlags, i types.DBInstance) string {
	if i.Endpoint != nil {
		_ = c.resolve(ctx, &i) // the name is as true
	}
	return f.shellCommand(i)
}
