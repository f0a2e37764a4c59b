package api

import (
	"context"
	"strings"

	"kurabe/internal/aws/query"
	"kurabe/internal/must"
)

// Operation is one row of a service's table: an action and its handler.
type Operation struct {
	Name     string
	newInput func() any
	handle   func(ctx context.Context, in any) (any, error)
}

// Op makes a row of an action and its typed handler. In and Out are the SDK's
// input and output structs of the action.
//
// A handler reports what the user may know as a *kurabe.Error; any other error
// is an internal failure, of which the user gets the request id only.
func Op[In, Out any](name string, handle func(context.Context, *In) (*Out, error)) Operation {
	return Operation{
		Name:     name,
		newInput: func() any { return new(In) },
		handle: func(ctx context.Context, in any) (any, error) {
			out, err := handle(ctx, in.(*In))
			if err != nil {
				return nil, err
			}
			return out, nil
		},
	}
}

// readPrefixes begin the actions that change nothing.
var readPrefixes = []string{"Describe", "List", "Get", "Download"}

// isRead says whether an action changes nothing.
func isRead(action string) bool {
	for _, prefix := range readPrefixes {
		if strings.HasPrefix(action, prefix) {
			return true
		}
	}
	return false
}

// Service is one AWS service behind the port.
type Service struct {
	Model *query.Model         // its signing name, version and wire form
	Ops   map[string]Operation // by action; use Table

	// NotOffered says why an action of the model has no row in Ops.
	NotOffered func(action string) (reason string)
}

// Table makes the Ops of a service. An action outside the model, or twice, is our mistake.
func Table(model *query.Model, rows ...Operation) map[string]Operation {
	ops := make(map[string]Operation, len(rows))
	for _, row := range rows {
		_, twice := ops[row.Name]
		must.True(model.Has(row.Name), "an operation is an action of its model: "+row.Name)
		must.True(!twice, "an action has one operation: "+row.Name)
		ops[row.Name] = row
	}
	return ops
}
