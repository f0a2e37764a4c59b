package warden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// protocol is the version of the messages. A warden refuses others, but for the two that
// lead to a warden of the right version: hello and succeed, whose fields never change.
const protocol = 1

// messageBytesMax bounds a message; a Config has a handful of paths of at most 4 KiB.
const messageBytesMax = 64 << 10

// addressesMax bounds what a server may listen at.
const addressesMax = 16

type op string

const (
	opHello   op = "hello"
	opExtend  op = "extend"
	opDisarm  op = "disarm"
	opSucceed op = "succeed"
)

type request struct {
	Version   int          `json:"version"`
	Op        op           `json:"op"`
	Until     int64        `json:"until,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Config    *Config      `json:"config,omitempty"` // of succeed
}

// code says why a request was refused, as far as the other end must know.
type code string

const (
	codeEnded     code = "ended"
	codeBackwards code = "backwards"
	codeBad       code = "bad"
)

type answer struct {
	Version int     `json:"version"`
	PID     int     `json:"pid"`
	Until   int64   `json:"until"` // 0 without a lease
	Ended   bool    `json:"ended,omitempty"`
	Config  *Config `json:"config,omitempty"`
	Code    code    `json:"code,omitempty"` // "" means done
	Message string  `json:"message,omitempty"`
}

// parseRequest takes nothing that it does not know entirely: what it misread would move the
// end of a lease.
func parseRequest(raw []byte) (request, error) {
	var r request
	if len(raw) > messageBytesMax {
		return request{}, fmt.Errorf("message of more than %d bytes", messageBytesMax)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return request{}, fmt.Errorf("parse message: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return request{}, errors.New("parse message: more than one")
	}
	return r, r.check()
}

func (r request) check() error {
	if r.Version != protocol && r.Op != opHello && r.Op != opSucceed {
		return fmt.Errorf("message of version %d, this warden speaks %d", r.Version, protocol)
	}
	switch r.Op {
	case opHello, opDisarm:
	case opExtend:
		if r.Until <= 0 || len(r.Addresses) > addressesMax {
			return fmt.Errorf("a lease until %d with %d addresses", r.Until, len(r.Addresses))
		}
		for _, a := range r.Addresses {
			if !a.IsValid() {
				return errors.New("an address is empty")
			}
		}
		return r.only(r.Config == nil)
	case opSucceed:
		if r.Config == nil {
			return errors.New("a successor without a config")
		}
		if err := r.Config.check(); err != nil {
			return err
		}
		return r.only(r.Until == 0 && r.Addresses == nil)
	default:
		return fmt.Errorf("unknown message %q", r.Op)
	}
	return r.only(r.Until == 0 && r.Addresses == nil && r.Config == nil)
}

func (r request) only(rest bool) error {
	if !rest {
		return fmt.Errorf("message %q with fields of another message", r.Op)
	}
	return nil
}
