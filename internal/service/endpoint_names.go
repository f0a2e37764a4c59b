package service

import (
	"context"
	"fmt"
	"net"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/nameserver"
	"kurabe/internal/store"
)

// nameFlags are about the names of endpoints.
type NameConfig struct {
	Suffix, Listen string
}

const SuffixFlag = "endpoint-suffix"

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
	if f.Given(SuffixFlag) {
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
