package service

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Config is what a service is told at its start, by the flags of the same names.
type Config struct {
	HostConfig
	Listen, Region, Account, Zones, Zone, HostListen string
	PeerListen, Join, TokenFile                      string
	VerifyEvery                                      time.Duration
	Names                                            NameConfig
	Notify                                           NotifyConfig
	Etcd                                             EtcdConfig
	Given                                            func(flag string) bool // tells a flag that was given from its default
	joinedScope                                      *string                // scopeRegion of the service that this server has joined
}

// scopeRegion is the region that requests must be signed for. A service that was
// given none is the only one its clients know, whatever region they are set to.
func (f *Config) scopeRegion() string {
	if f.joinedScope != nil {
		return *f.joinedScope
	}
	if f.Given("region") {
		return f.Region
	}
	return ""
}

func (f *Config) zoneList() []string {
	if f.Zones != "" {
		return strings.Split(f.Zones, ",")
	}
	return []string{f.Region + "a", f.Region + "b", f.Region + "c"}
}

// hostZones are the zones of this machine.
func (f *Config) hostZones() []string {
	if f.Zone != "" {
		return strings.Split(f.Zone, ",")
	}
	return f.zoneList()
}

func (f *Config) check() error {
	if err := f.HostConfig.check(); err != nil {
		return err
	}
	if err := checkJoin(f.Join); err != nil {
		return err
	}
	if err := f.Etcd.Check(); err != nil {
		return err
	}
	if err := f.Names.check(); err != nil {
		return err
	}
	if err := f.Notify.check(); err != nil {
		return err
	}
	if f.HostListen != "" {
		if _, _, err := net.SplitHostPort(f.HostListen); err != nil {
			return fmt.Errorf("--host-listen %q is not HOST:PORT: %w", f.HostListen, err)
		}
	}
	if f.VerifyEvery < 0 {
		return fmt.Errorf("--verify-every %s is negative", f.VerifyEvery)
	}
	if len(f.Account) != 12 || strings.Trim(f.Account, "0123456789") != "" {
		return fmt.Errorf("--account %q is not 12 digits", f.Account)
	}
	if _, _, err := net.SplitHostPort(f.Listen); err != nil {
		return fmt.Errorf("--listen %q is not HOST:PORT: %w", f.Listen, err)
	}
	return nil
}

// checkZones is possible only when it is known whether the zones are another server's.
func (f *Config) checkZones() error {
	for _, zone := range f.hostZones() {
		if !slices.Contains(f.zoneList(), zone) {
			return fmt.Errorf("--zone %q is none of the zones %s", zone, strings.Join(f.zoneList(), ", "))
		}
	}
	return nil
}

// serve runs a service until ctx ends or a part of it fails; ready is called
// once it answers.
func Serve(ctx context.Context, f *Config, ready func(*Service) error) error {
	if err := f.check(); err != nil {
		return err
	}
	log, err := f.logger()
	if err != nil {
		return err
	}
	data, err := f.enter()
	if err != nil {
		return err
	}
	s, err := startService(ctx, f, data, log)
	if err != nil {
		return err
	}
	log.Info("service ready", "url", s.URL)
	failure := ready(s)
	if failure == nil {
		failure = s.wait(ctx)
	}
	return s.end(failure, s.stopControl, s.close)
}
