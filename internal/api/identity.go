package api

import (
	"context"
	"crypto/rand"
	"fmt"
)

// Identity is who asked. Until there are users, every access key is the root's.
type Identity struct {
	Account     string
	Region      string
	AccessKeyID string
}

// ARN names the identity as AWS does.
func (i Identity) ARN() string { return "arn:aws:iam::" + i.Account + ":root" }

type identityKey struct{}

// WithIdentity returns a context in which i asks.
func WithIdentity(ctx context.Context, i Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, i)
}

// IdentityFrom returns who asked; the dispatcher has always set it.
func IdentityFrom(ctx context.Context) Identity {
	i, _ := ctx.Value(identityKey{}).(Identity)
	return i
}

// newRequestID returns a random UUID (version 4), the form of AWS's request ids.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
