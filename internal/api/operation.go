package api

import (
	"context"
	"reflect"
)

// Operation is one row of a service's table: an action and its handler.
type Operation struct {
	Name  string
	Reads bool // it changes nothing
	// Open: it may be asked for without a signature, by a GET whose query names the action:
	// links in messages lead to it. What it needs to be allowed is in the parameters.
	Open bool

	// Permit says why a signer may not do it, nil if it may. Without it every signer may.
	Permit func(ctx context.Context, in any) error

	In, Out reflect.Type // the structs of input and output

	handle func(ctx context.Context, in any) (any, error)
}

// Read makes a row of an action that changes nothing. In and Out are the SDK's input and
// output structs of the action.
//
// A handler reports what the user may know as a *kurabe.Error; any other error
// is an internal failure, of which the user gets the request id only.
func Read[In, Out any](name string, handle func(context.Context, *In) (*Out, error)) Operation {
	op := Write(name, handle)
	op.Reads = true
	return op
}

// Write makes a row of an action that may change something.
func Write[In, Out any](name string, handle func(context.Context, *In) (*Out, error)) Operation {
	return Operation{
		Name: name, In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out](),
		handle: func(ctx context.Context, in any) (any, error) {
			out, err := handle(ctx, in.(*In))
			if err != nil {
				return nil, err
			}
			return out, nil
		},
	}
}

// Opened makes an operation one that needs no signature; its handler has to look at who asks
// (Identity.AccessKeyID).
func Opened(op Operation) Operation {
	op.Open = true
	return op
}
